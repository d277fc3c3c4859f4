//! Judging receipts: what passes, what does not, and in which words.

#[cfg(test)]
mod changed;
#[cfg(test)]
mod common;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod facts;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod linkage;
#[cfg(test)]
mod output;
#[cfg(test)]
mod recompute;
#[cfg(test)]
mod require;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod signature;
#[cfg(test)]
mod stamps;
#[cfg(test)]
mod time;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod weak_points;

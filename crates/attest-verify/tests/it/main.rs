//! Judging receipts: what passes, what does not, and in which words.

#[cfg(test)]
mod changed;
#[cfg(test)]
mod common;
#[cfg(test)]
mod signature;
#[cfg(test)]
mod vectors;

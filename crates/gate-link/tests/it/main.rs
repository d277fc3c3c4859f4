//! The link against recorded messages, their mutations, and itself.

#[cfg(test)]
mod control;
#[cfg(test)]
mod crossing;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod wire;

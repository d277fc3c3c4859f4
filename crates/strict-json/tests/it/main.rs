//! Tests of the reader and the writers through the public interface.

#[cfg(test)]
mod differential;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod reader;
#[cfg(test)]
mod writer;

//! Tests of the documents through the public interface; `tests/vectors` was made by the original.

#[cfg(test)]
mod byte_flips;
#[cfg(test)]
mod capsule;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod pipeline;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod problems;
#[cfg(test)]
mod random;
#[cfg(test)]
mod receipt;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod signed_fields;
#[cfg(test)]
mod vectors;

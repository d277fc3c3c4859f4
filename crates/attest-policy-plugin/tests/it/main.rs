//! The policy and the judge, fed with what nobody would write.

#[cfg(test)]
mod fuzz_corpus;

//! Archives, envelopes and ledgers: what other programs made, what nobody should have made, and
//! every byte changed.

#[cfg(test)]
mod causal;
#[cfg(test)]
mod flips;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod random;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;

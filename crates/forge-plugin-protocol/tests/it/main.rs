//! Tests of both sessions: against scripts, against each other, and against hostile peers.

#[cfg(test)]
mod cancel;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod negotiation;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod plugin;
#[cfg(test)]
mod results;
#[cfg(test)]
mod support;

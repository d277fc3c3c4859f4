//! Tests of both sessions: against scripts, against each other, and against hostile peers.

#[cfg(test)]
mod ending;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod model;
#[cfg(test)]
mod package;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod plugin;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verdicts;

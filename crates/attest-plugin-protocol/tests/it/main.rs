//! Tests of both sessions: against scripts, against each other, and against hostile peers.

#[cfg(test)]
mod ending;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod plugin;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verdicts;

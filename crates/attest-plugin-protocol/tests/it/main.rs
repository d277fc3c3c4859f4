//! Tests of both sessions: against scripts, against each other, and against hostile peers.

#[cfg(test)]
mod ending;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verdicts;

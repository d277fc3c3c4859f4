//! The real `attest`, judged by what it prints, the code that it ends with and the files it leaves.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program that they judge"
)]

#[cfg(test)]
mod authority;
#[cfg(test)]
mod bed;
#[cfg(test)]
mod capsule;
#[cfg(test)]
mod causal;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod hash;
#[cfg(test)]
mod init;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod named;
#[cfg(test)]
mod places;
#[cfg(test)]
mod plugin;
#[cfg(test)]
mod plugin_cli;
#[cfg(test)]
mod plugin_conformance;
#[cfg(test)]
mod plugin_denials;
#[cfg(test)]
mod plugin_failures;
#[cfg(test)]
mod plugin_guarantees;
#[cfg(test)]
mod plugin_hooks;
#[cfg(test)]
mod plugin_words;
#[cfg(test)]
#[path = "../../../../crates/attest-engine/tests/run/read_only.rs"]
mod read_only;
#[cfg(test)]
mod records;
#[cfg(test)]
mod run;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod show;
#[cfg(test)]
mod sign;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod timestamp;
#[cfg(test)]
mod traced;
#[cfg(test)]
mod unread;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod wrap;

//! Pipelines with real commands.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests may fail by panicking, too"
)]

mod asked;
mod cache;
mod commands;
mod faults;
mod hooks;
mod order;
#[cfg(test)]
mod read_only;
mod receipt;
mod secrets;
mod support;

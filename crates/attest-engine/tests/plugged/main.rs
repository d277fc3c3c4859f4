//! Runs with plugins that are real processes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests may fail by panicking, too"
)]

#[expect(dead_code, reason = "shared with the tests of pipelines")]
#[path = "../run/support.rs"]
mod support;

mod builds;
mod denials;
mod guarantees;
mod interrupted;
mod payloads;
mod plugin;

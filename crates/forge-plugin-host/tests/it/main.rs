//! Sessions with real plugin processes: how they end, and that nothing is left of them.
//!
//! Each test runs in a process of its own under nextest, which the counting one needs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail by panicking, too"
)]

mod support;

mod cancelled;
mod hostile;
#[cfg(target_os = "linux")]
mod many;
mod outcomes;
mod refused;

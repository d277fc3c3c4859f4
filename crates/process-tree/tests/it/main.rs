//! Real processes: what is started, what is left of it, and how it is told.
//!
//! Each test runs in a process of its own under nextest, which the counting ones need.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail by panicking, too"
)]

mod support;

mod cancel;
mod capture;
mod given;
mod refused;

#[cfg(target_os = "linux")]
mod many;
/// What only the wrapper can promise.
#[cfg(all(target_os = "linux", not(portable_process)))]
mod tree;
#[cfg(all(target_os = "linux", not(portable_process)))]
mod wrapper_faults;

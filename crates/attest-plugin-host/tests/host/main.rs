//! The host against plugins that are shell scripts, each written where it is tested.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail by panicking, too"
)]

mod asked;
mod ended;
mod given;
mod records;
mod started;
mod stderr;
mod support;

//! Plugins as real processes: what runs is what was hashed, and what becomes of it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail by panicking, too"
)]

mod support;

mod pinned;

//! Manifests of real trees: known ones, hostile ones, random ones, and ones that change meanwhile.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail by panicking, too"
)]

mod known;
mod race;
mod random;
mod refused;
mod tree;

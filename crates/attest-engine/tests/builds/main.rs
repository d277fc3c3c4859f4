//! Wrapped commands, builds that are made twice, and capsules, with real commands.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests may fail by panicking, too"
)]

#[path = "../run/asked.rs"]
mod asked;
#[expect(dead_code, reason = "shared with the tests of pipelines")]
#[path = "../run/support.rs"]
mod support;

mod capsule;
mod repro;
mod repro_hooks;
mod wrap;
mod wrap_hooks;

use support::World;

impl World {
    fn read_or_empty(&self, below: &str) -> String {
        fs_err::read_to_string(self.path(below)).unwrap_or_default()
    }
}

//! Judges receipts in memory: nothing here opens a file, starts a process or asks a network.
//!
//! [`verify`] takes the bytes of a receipt, the keys that are trusted and what the caller asks for,
//! and returns an [`Outcome`]: five checks in a fixed order, warnings, and a verdict that is `pass`
//! only if no check failed and everything required was established by a check that ran. What
//! cannot be judged at all (too long, no document) is [`Operational`], not a verdict.
//!
//! Whatever needs the disk comes in through [`Workspace`]. Records of plugins are shown and never
//! change the verdict by themselves; no plugin is needed to reach it.

pub mod chain;
#[doc(hidden)]
pub mod fuzz_entry;
mod judge;
mod outcome;
pub mod policy;
mod problems;
mod recompute;
mod render;
mod require;
mod signature;
pub mod timestamp;
pub mod trust;

pub use judge::{Operational, Options, verify, verify_with_tokens};
pub use outcome::{
    Check, CheckName, Execution, Outcome, PluginSummary, PolicyOutcome, Status, TrustMaterial,
    Unmet, Verdict,
};
pub use policy::Policy;
pub use recompute::Workspace;
pub use render::error_record;
pub use require::{RequireError, Requirement};
pub use signature::holds as signature_holds;

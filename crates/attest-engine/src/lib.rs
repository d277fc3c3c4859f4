//! Runs pipelines and wrapped commands, and writes receipts of what they did.
//!
//! Facts are measured here and stay in memory until the receipt is written: nothing is read back
//! from disk once it was hashed, whatever a step or a plugin does meanwhile. The private key is
//! loaded when the last step has ended. Nothing here prints or reads the process's environment;
//! both come as arguments.

pub mod cache;
pub mod capsule;
pub mod ci;
mod copy;
pub mod hooks;
pub mod isolation;
pub mod layout;
pub mod ledger;
pub mod output;
pub mod places;
pub mod plugins;
pub mod recompute;
pub mod repro;
pub mod run;
mod scratch;
pub mod source;
pub mod step;
mod told;
pub mod wrap;

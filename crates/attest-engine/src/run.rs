//! A pipeline from its file to its receipt.
//!
//! ```text
//! checks ─ lock ─ plan ─ commit ─ pipeline_validate
//!   └ per step: inputs hashed ─ cache ─ step_pre ─ command ─ inputs again ─ outputs ─ step_post
//! receipt ─ receipt_finalize ─ hooks end ─ key loaded ─ events signed and written ─ receipt signed and written
//! ```
//!
//! A run either ends with a receipt that says all that happened, or leaves none.

mod before;
mod boxed;
mod changes;
mod conclude;
mod error;
pub(crate) mod gate;
mod one;
mod options;
mod outcome;
mod overlap;
mod pipeline;
mod plan;
mod schedule;

pub(crate) use before::check_key;
pub use before::{load, refuse_plugins};
pub use changes::Changes;
pub use conclude::{Closing, Draft, check_place, conclude};
pub use error::RunError;
pub use options::{Environment, Execution, LoadKey, Place, RunOptions, SigningKey};
pub use outcome::{RunOutcome, Skipped};
pub use pipeline::pipeline;
pub(crate) use pipeline::{build, farewell, records};
pub use plan::{HERMETIC, secrets};

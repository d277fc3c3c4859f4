//! A pipeline from its file to its receipt.

mod error;
mod options;
mod outcome;

pub use error::RunError;
pub use options::{Environment, Execution, LoadKey, Place, RunOptions, SigningKey};
pub use outcome::{RunOutcome, Skipped};

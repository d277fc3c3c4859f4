//! Tests a plugin of attest against attest-plugin/1, from outside, through its process.
//!
//! A table of named scenarios, each with processes of its own that get what a run would give them:
//! the same executable, variables, folder and descriptors. Messages are written and read by hand,
//! without the protocol crate, on which plugins under test may be built: a mistake there cannot hide.
//!
//! A scenario judges one thing and overlooks what others judge, so that a plugin with one fault
//! fails one line. What the document demands fails; what it only makes wise warns.
//!
//! Nothing here verifies a digest, reads a declaration or touches a receipt.

mod answer;
mod limits;
mod message;
mod payload;
mod report;
mod runner;
mod scenario;
mod session;
mod shown;
mod stage;
mod target;

pub use limits::Limits;
pub use report::{Report, Totals};
pub use runner::Runner;
pub use scenario::{Scenario, UnknownScenario, all, select};
pub use stage::{Status, Verdict};
pub use target::{Target, TargetError};

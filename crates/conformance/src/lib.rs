//! Tests a forge plugin executable against the plugin protocol v1.
//!
//! A table of named scenarios, each run in a fresh process: one session as a Worker would lead it,
//! and many that break one rule and must be refused; `--strict` adds every form that lenient
//! readers let pass, and sessions of which one aspect each is judged. The tool sees a plugin only from outside,
//! through its process; it never trusts the exit code of a process that it could not watch.

mod args;
mod conduct;
mod dialog;
mod excerpt;
mod ground;
mod heard;
mod operation;
mod report;
mod run;
mod scenario;
mod session;
mod target;
mod tool;
mod verdict;
mod wire;

pub use args::Args;
pub use operation::Operation;
pub use report::{Report, ReportFormat, Totals};
pub use run::{Limits, Runner};
pub use scenario::{Scenario, UnknownScenario, all, select};
pub use target::{Target, TargetError};
pub use tool::{command, main_from};
pub use verdict::{Status, Verdict};

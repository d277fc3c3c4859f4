//! Runs one operation of a forge plugin in a fresh process and says how it ended.

mod drive;
mod error;
mod request;
mod stderr_tail;

pub use drive::run;
pub use error::{InvalidRequest, RunError};
pub use request::{PluginCommand, RunLimits};

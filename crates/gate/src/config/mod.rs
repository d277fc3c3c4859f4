//! The Gate's configuration file: what it may say, and what it may not say yet.

mod execution;
mod file;
mod later;

pub use execution::{Execution, Lifecycle};
pub use file::{GateConfig, Repository, Tls, TokenSource, Worker};
pub use web_server::Listen;

//! What every program shares: output, errors and exit codes, arguments, configuration, logs, help.
//!
//! This crate is the only one that prints, that reads the environment and that asks the machine
//! for the time. It opens no socket but the one that tells a service manager of readiness, never
//! starts a process and holds no state of a job.
//!
//! A program is three lines: [`main_with`] normalises the arguments, answers `--help`,
//! `--version` and the hidden `--generate`, calls the body and turns its error into a message,
//! hints and an exit code.

mod args;
pub mod clock;
pub mod config;
pub mod env;
mod error;
pub mod exit;
mod finding;
pub mod generate;
pub mod junit;
pub mod layout;
pub mod logging;
mod options;
mod run;
mod secret;
pub mod service;
mod ui;
mod version;

pub use args::normalize_args;
pub use bounded::text::{visible, visible_bytes, visible_json, visible_lines};
pub use error::{CliError, ErrorKind};
pub use finding::{Finding, Grade};
pub use options::{Color, Format, GlobalOpts, ServerOpts};
pub use run::{main_with, parse, run};
pub use secret::{Secret, SecretError};
pub use ui::{Captured, Progress, Ui};
pub use version::{version, version_line};

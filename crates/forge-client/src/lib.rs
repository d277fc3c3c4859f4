//! The operator's commands: an HTTP client of the Gate.
//!
//! Every command is a request or a few; what the Gate answers is shown as lines for people or
//! passed on as JSON. Text from elsewhere is made visible before it is printed. Nothing here
//! decides about a job, and nothing pushes, merges or touches a branch: `fetch` writes one ref.

mod answer;
mod api;
mod commands;
mod doctor;
mod error;
mod follow;
mod http;
mod layout;
mod options;
mod repository;
mod show;
mod view;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli_shell::{CliError, GlobalOpts, Ui};

pub use api::{Seen, Submitted};
pub use commands::{Commands, HostCheck, HostChecks};
pub use error::ClientError;
pub use follow::{Change, follow};
pub use http::{GateClient, Settings};
pub use layout::wrap;
pub use options::{Connection, Waiting};
pub use show::{
    checks_text, event_text, job_text, report_text, result_text, stage_text, waiting_text,
};
pub use view::{
    Activity, Attempt, Event, Evidence, Job, JobResult, Pool, Report, WhyWaiting, Worker,
};
pub use words::split as split_words;

/// Talks to a Gate: submits tasks, follows them, fetches what they made.
#[derive(Debug, Parser)]
#[command(name = "forge", version = cli_shell::version(), max_term_width = 80)]
struct Cli {
    #[command(flatten)]
    global: GlobalOpts,
    #[command(subcommand)]
    command: Commands,
}

/// Returns the definition of the commands, under the name `forge`.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the client commands alone, without what the `forge` program adds to them.
pub fn main_from(args: impl IntoIterator<Item = OsString>, hosts: &HostChecks) -> ExitCode {
    cli_shell::main_with(args, |cli: Cli| {
        run(&cli.command, &Ui::new(&cli.global), hosts)
    })
}

/// Runs one command to its end on a runtime of its own; `hosts` is what `doctor` may look at.
///
/// # Errors
/// What went wrong, with hints on what to do.
pub fn run(command: &Commands, ui: &Ui, hosts: &HostChecks) -> Result<ExitCode, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::operation(error).because("cannot start the runtime"))?
        .block_on(commands::dispatch(command, ui, hosts))
}

#[cfg(test)]
mod tests;

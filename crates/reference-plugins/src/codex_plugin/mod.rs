//! `forge-codex-plugin`: workspace edits by the Codex CLI.
//!
//! The CLI gets the task on standard input, works in its own sandbox, and writes one object about
//! its edit into a private file. What it prints is discarded: it repeats the task, commands and
//! their output, and none of that belongs into frames or logs. The plugin never reads git's
//! configuration of the workspace and never starts git.

mod args;
mod final_message;
mod head;
mod perform;
mod prompt;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use forge_plugin_kit::Plugin;

use args::Args;
use perform::Codex;

/// The name of the program.
pub const NAME: &str = "forge-codex-plugin";

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program. Its `main` starts with [`process_tree::run_wrapper_if_asked`].
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with::<Args>(args, |Args {}| {
        let codex = Codex::from_environment()?;
        Ok(Plugin::new(NAME)
            .workspace(move |task, context| codex.perform(&task, context))
            .serve())
    })
}

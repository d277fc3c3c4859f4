//! `forge-exec-plugin`: any command as a workspace plugin.
//!
//! The command gets the instruction on standard input and the workspace as its working directory.
//! What it prints goes nowhere, so that no output of an agent ends up in frames or logs; what it
//! wants to say about its edit it writes into two files.

mod answer;
mod args;
mod perform;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use forge_plugin_kit::Plugin;

use args::Args;
use perform::Command;

/// The name of the program.
pub const NAME: &str = "forge-exec-plugin";

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program. Its `main` starts with [`process_tree::run_wrapper_if_asked`].
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with::<Args>(args, |args| {
        let command = Command::new(args)?;
        Ok(Plugin::new(NAME)
            .workspace(move |task, context| command.perform(&task, context))
            .serve())
    })
}

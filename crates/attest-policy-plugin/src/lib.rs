//! The reference plugin of attest-plugin/1: a policy in a small file, judged from payloads alone.
//!
//! It never starts a process, opens a socket, reads a clock or looks at a file of the workspace
//! but its own policy, once, when it is greeted. What it is not told it does not know, and says so.

mod args;
mod check;
#[doc(hidden)]
pub mod fuzz_entry;
mod judge;
mod pattern;
mod plugin;
mod policy;
mod shown;
mod source;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use cli_shell::Ui;

use args::{Args, Commands};

pub use judge::judge;
pub use policy::{MAX_BYTES, MAX_RULES, Policy, PolicyError};

/// The name of the program.
pub const NAME: &str = "attest-policy";

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Parses the arguments, serves or checks, and returns the exit code: a whole `main`.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with(args, |args: Args| {
        let ui = Ui::new(&args.global);
        match args.command {
            None => plugin::serve(&ui),
            Some(Commands::Check(check)) => check::run(&check, &ui),
        }
    })
}

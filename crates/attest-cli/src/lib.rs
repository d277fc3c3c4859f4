//! The commands of attest: they read arguments, call the crates below and say what came of it.
//!
//! Nothing is judged here. Only `run`, `capsule run` and `plugins conformance` start processes, and
//! only they start a runtime; `verify`, `show`, `diff`, `hash`, `sign` and `keys` are plain calls, so that a receipt
//! is verified in the time that reading it takes.

mod answer;
mod commands;
mod delivered;
mod difference;
mod elsewhere;
mod guard;
mod in_place;
mod new_file;
mod places;
mod prerequisite;
mod receipt_file;
mod receipt_text;
mod shown;
mod signing;
mod stamping;
mod trust_files;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli_shell::{CliError, GlobalOpts, Ui};

pub use commands::Commands;

const ABOUT_VARIABLES: &str = "\
Environment:
  ATTEST_KEYS_DIR   Folder of the private keys; a relative one is below
                    the workspace [default: .attest/keys]
  ATTEST_STATE_DIR  Folder of receipts, cache and ledger, as
                    `--state-dir` [default: .attest]
  NO_COLOR          No colours

Exit codes:
  0  success, or the answer is yes
  1  the work was done and the answer is no: a step failed, a receipt
     does not verify
  2  usage, configuration or the operation failed
`run --wrap` ends with the code of the command that it wraps.";

/// Runs pipelines, writes signed receipts of what they did, and verifies receipts.
#[derive(Debug, Parser)]
#[command(
    name = "attest",
    version = cli_shell::version(),
    max_term_width = 80,
    after_help = ABOUT_VARIABLES
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOpts,
    #[command(subcommand)]
    command: Commands,
}

/// Returns the definition of the commands.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments, runs the command and returns the exit code: a whole `main`.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(error) = elsewhere::asked(&args) {
        return cli_shell::run(|| Err(error));
    }
    cli_shell::main_with(args, |cli: Cli| run(&cli.command, &Ui::new(&cli.global)))
}

/// Runs one command to its end.
///
/// # Errors
/// What went wrong, with hints on what to do.
pub fn run(command: &Commands, ui: &Ui) -> Result<ExitCode, CliError> {
    commands::dispatch(command, ui).map_err(words::short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_help_text_fits_the_screen_and_explains_every_argument() {
        let mut command = command();
        command.build();
        let mut seen = 0;
        examine(&mut command, &mut seen);
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn what_stands_below_the_help_fits_a_page_of_the_manual() {
        // Such a page indents it by 7 columns.
        for line in ABOUT_VARIABLES.lines() {
            assert!(line.chars().count() <= 73, "{line}");
        }
    }

    fn examine(command: &mut clap::Command, seen: &mut usize) {
        *seen += 1;
        for line in command.render_long_help().to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let name = command.get_name().to_owned();
        for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "`{id}` of `{name}`");
        }
        for below in command.get_subcommands_mut() {
            if !below.is_hide_set() && below.get_name() != "help" {
                examine(below, seen);
            }
        }
    }
}

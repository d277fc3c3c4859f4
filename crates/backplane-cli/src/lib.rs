//! The commands of backplane: they read arguments, call the crates below and say what came of it.
//!
//! Nothing is judged here. No command starts a process or runs anything of a package.

mod artifact;
mod commands;
mod credentials;
mod name;
mod package;
mod pages;
mod registry;
mod release;
mod settings;
mod staged;
mod waiting;
mod wire;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli_shell::{CliError, GlobalOpts, Ui};

pub use commands::Commands;

const ABOUT_EXITS: &str = "\
Environment:
  BACKPLANE_URL         The registry, as `--registry`
  BACKPLANE_TOKEN_FILE  A file with the token for it, as `--token-file`
  BACKPLANE_TOKEN       The token itself, instead of a file
  BACKPLANE_CA_FILE     The authorities to trust, as `--ca-file`
  HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY
                        Proxies on the way to a registry
  NO_COLOR              No colours

Files:
  $XDG_CONFIG_HOME/backplane/config.toml, /etc/backplane/config.toml
                        `registry`, `token_file`, `ca_file`,
                        `allow_plain_http`
  $XDG_CONFIG_HOME/backplane/credentials.toml
                        The tokens that `backplane login` keeps

Exit codes:
  0  success, or the answer is yes
  1  the work was done and the answer is no: a package is rejected, two
     packages differ, nothing of that name is there, a release is yanked,
     a registry refuses what is published
  2  usage, configuration or the operation failed";

/// Inspects, packs, publishes, serves and fetches Agent Plugins packages.
#[derive(Debug, Parser)]
#[command(
    name = "backplane",
    version = cli_shell::version(),
    max_term_width = 80,
    after_help = ABOUT_EXITS
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
    cli_shell::main_with(args, |cli: Cli| run(&cli.command, &Ui::new(&cli.global)))
}

/// Runs one command to its end.
///
/// # Errors
/// What went wrong, with hints on what to do.
pub fn run(command: &Commands, ui: &Ui) -> Result<ExitCode, CliError> {
    commands::dispatch(command, ui)
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
        assert!(seen > 1, "{seen}");
    }

    #[test]
    fn what_stands_below_the_help_fits_a_page_of_the_manual() {
        // Such a page indents it by 7 columns.
        for line in ABOUT_EXITS.lines() {
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

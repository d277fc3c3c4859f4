//! One file per command: the arguments as a struct, and `run(&self, ui)`.

mod digest;

use std::process::ExitCode;

use clap::Subcommand;
use cli_shell::{CliError, Ui};

/// What backplane can be asked to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Commands {
    /// Print the digest of an archive, which a registry knows it by
    Digest(digest::Digest),
}

pub(crate) fn dispatch(command: &Commands, ui: &Ui) -> Result<ExitCode, CliError> {
    match command {
        Commands::Digest(digest) => digest.run(ui),
    }
}

//! One file per command: the arguments as a struct, and `run(&self, ui)`.

mod diff;
mod digest;
mod init;
mod inspect;
mod pack;
mod unpack;

use std::process::ExitCode;

use clap::Subcommand;
use cli_shell::{CliError, Ui};

/// What backplane can be asked to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Commands {
    /// Begin a package: a manifest, a skill and a page for readers
    Init(init::Init),
    /// Show what a package holds, and everything that is wrong with it
    Inspect(inspect::Inspect),
    /// Make the archive of a package
    Pack(pack::Pack),
    /// Write the files of an archive into a new directory
    Unpack(unpack::Unpack),
    /// Print the digest of an archive, which a registry knows it by
    Digest(digest::Digest),
    /// Compare two packages, file by file
    Diff(diff::Diff),
    /// Serve a registry of plugins from a folder
    Serve(backplane_registry::ServeArgs),
}

pub(crate) fn dispatch(command: &Commands, ui: &Ui) -> Result<ExitCode, CliError> {
    match command {
        Commands::Init(init) => init.run(ui),
        Commands::Inspect(inspect) => inspect.run(ui),
        Commands::Pack(pack) => pack.run(ui),
        Commands::Unpack(unpack) => unpack.run(ui),
        Commands::Digest(digest) => digest.run(ui),
        Commands::Diff(diff) => diff.run(ui),
        Commands::Serve(serve) => backplane_registry::run(serve, ui),
    }
}

//! One file per command: the arguments as a struct, and `run(&self, ui)`.

mod catalog;
mod diff;
mod digest;
mod download;
mod init;
mod inspect;
mod login;
pub(crate) mod pack;
mod promote;
mod publish;
mod releases;
mod resolve;
mod unpack;
mod yank;

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
    /// List the plugins of a registry
    Catalog(catalog::CatalogArgs),
    /// Show the release that a name means
    Resolve(resolve::ResolveArgs),
    /// List the releases of a plugin, newest first
    Releases(releases::ReleasesArgs),
    /// Get an artifact, and keep it only if it has its digest
    Download(download::DownloadArgs),
    /// Keep a token for a registry
    Login(login::LoginArgs),
    /// Publish a package as a release
    Publish(publish::PublishArgs),
    /// Point a channel at a release
    Promote(promote::PromoteArgs),
    /// Yank a release, or take that back
    Yank(yank::YankArgs),
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
        Commands::Catalog(args) => catalog::run(args, ui),
        Commands::Resolve(args) => resolve::run(args, ui),
        Commands::Releases(args) => releases::run(args, ui),
        Commands::Download(args) => download::run(args, ui),
        Commands::Login(args) => login::run(args, ui),
        Commands::Publish(args) => publish::run(args, ui),
        Commands::Promote(args) => promote::run(args, ui),
        Commands::Yank(args) => yank::run(args, ui),
        Commands::Serve(serve) => backplane_registry::run(serve, ui),
    }
}

//! One file per command: the arguments as a struct, and `run(&self, ui)`.
//!
//! A command that starts processes makes its runtime itself; `dispatch` makes none.
//! `export` and `import` have a `--format in-toto` of their own: an argument with the id `format`,
//! the type [`cli_shell::Format`] and a parser of its own takes the place of the global one.

mod aside;
mod capsule;
mod causal;
mod diff;
mod export;
mod format;
mod hash;
mod import;
mod init;
mod keys;
mod plugins;
mod run;
mod show;
mod sign;
mod through;
mod timestamp;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;
use cli_shell::{CliError, Ui};

/// What attest can be asked to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Commands {
    /// Make this folder a workspace: a first pipeline, and folders that git ignores
    Init(init::Init),
    /// Run a pipeline and write a receipt of what it did
    Run(Box<run::Run>),
    /// Verify receipts: is this what a trusted key signed, and is it coherent
    Verify(Box<verify::Verify>),
    /// Show a receipt for people: who, when, what was run and made
    Show(show::Show),
    /// Show what differs between two receipts; exit code 1 if anything tells them apart
    Diff(diff::Diff),
    /// Sign a receipt that was made elsewhere, without running anything
    Sign(sign::Sign),
    /// Have the signature of a receipt timestamped by an authority
    Timestamp(timestamp::Timestamp),
    /// Make, list, export, import and revoke keys
    Keys(keys::Keys),
    /// Hash the files that a step declares, as a receipt would have it
    Hash(hash::Hash),
    /// Run steps and commands in containers that are pinned by digest
    Capsule(capsule::Capsule),
    /// List, verify and pin the plugins that runs consult
    Plugins(plugins::Plugins),
    /// Ask the ledger which step followed from which, or hand a receipt on with its part of it
    Causal(causal::Causal),
    /// Hand a receipt on as an in-toto statement with SLSA provenance
    Export(export::Export),
    /// Verify an in-toto statement and the receipt in it
    Import(import::Import),
}

pub(crate) fn dispatch(command: &Commands, ui: &Ui) -> Result<ExitCode, CliError> {
    match command {
        Commands::Init(init) => init.run(ui),
        Commands::Run(run) => run.run(ui),
        Commands::Verify(verify) => verify.run(ui),
        Commands::Sign(sign) => sign.run(ui),
        Commands::Timestamp(timestamp) => timestamp.run(ui),
        Commands::Keys(keys) => keys.run(ui),
        Commands::Hash(hash) => hash.run(ui),
        Commands::Show(show) => show.run(ui),
        Commands::Diff(diff) => diff.run(ui),
        Commands::Capsule(capsule) => capsule.run(ui),
        Commands::Plugins(plugins) => plugins.run(ui),
        Commands::Causal(causal) => causal.run(ui),
        Commands::Export(export) => export.run(ui),
        Commands::Import(import) => import.run(ui),
    }
}

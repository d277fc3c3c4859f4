//! `plugins`: what `.attest/plugins.toml` declares, and whether it still is what was reviewed.
//!
//! Nothing of a declared plugin is started here: its file is found, opened and hashed. Only
//! `conformance` starts one, which reads no declaration.

mod conformance;
mod list;
mod look;
mod pin;
mod verify;

use std::process::ExitCode;

use attest_plugin_host::{DeclareError, Plugins as Declarations, Strictness};
use clap::{Args, Subcommand};
use cli_shell::{CliError, Ui};

use crate::places::Workspace;

/// What to do with plugins.
#[derive(Debug, Clone, Args)]
pub struct Plugins {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List the declared plugins, what file each is and whether its digest holds
    List(Of),
    /// Compare every declared digest with the file that would run
    ///
    /// Exit code 0: every digest matches. 1: one differs. 2: the declarations are refused, or a
    /// plugin cannot be found or read.
    Verify(Of),
    /// Write the digests of these plugins into .attest/plugins.toml
    Pin(pin::Pin),
    /// Test a plugin against attest-plugin/1, for those who write one; no digest is checked
    ///
    /// Exit code 0: nothing failed. 1: a scenario failed. 2: the arguments are wrong, or the
    /// plugin cannot be opened.
    #[command(override_usage = "attest plugins conformance [OPTIONS] CMD [ARG]...")]
    Conformance(Box<conformance::Conformance>),
}

#[derive(Debug, Clone, Args)]
struct Of {
    #[command(flatten)]
    workspace: Workspace,
}

impl Plugins {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::List(of) => list::run(&of.workspace, ui),
            Action::Verify(of) => verify::run(&of.workspace, ui),
            Action::Pin(pin) => pin.run(ui),
            Action::Conformance(conformance) => conformance.run(ui),
        }
    }
}

/// Reads the declarations; says so where there are none.
fn declared(
    workspace: &Workspace,
    strictness: Strictness,
    ui: &Ui,
) -> Result<Declarations, CliError> {
    let declared = Declarations::load(workspace.path(), strictness).map_err(refused)?;
    let declared = declared.unwrap_or_default();
    if declared.plugins.is_empty() {
        ui.status("no plugins are declared");
    }
    Ok(declared)
}

/// The declarations are refused.
pub(super) fn refused(error: DeclareError) -> CliError {
    CliError::config(error).because("the declarations of plugins are refused")
}

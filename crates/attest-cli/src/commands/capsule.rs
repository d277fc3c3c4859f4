//! `capsule`: containers pinned by digest, in which steps and commands run.

use std::ffi::OsString;
use std::process::ExitCode;

use attest_engine::capsule::{self, CapsuleFault, Client};
use attest_engine::output::{Record, Secrets};
use attest_engine::run::Environment;
use attest_engine::step::{StepError, Tap};
use attest_receipt::capsule::CapsuleError;
use clap::{Args, Subcommand};
use cli_shell::{CliError, Format, Ui, env, exit, visible};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::run::{block_on, wrapper};
use super::through::pass;
use crate::places::Workspace;
use crate::prerequisite::{self, Rule};

/// What to do with a capsule.
#[derive(Debug, Clone, Args)]
pub struct Capsule {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make a capsule of an image that is pinned by digest
    Init(Init),
    /// Run a command in a capsule, with docker or podman; ends with its exit code
    Run(Run),
    /// Print the hash of a capsule; exit code 1 if it is not the one that the capsule claims
    Hash(Named),
}

#[derive(Debug, Clone, Args)]
struct Init {
    /// The image: REPOSITORY@sha256:<64 hexadecimal digits>; tags are refused
    #[arg(long, value_name = "REF")]
    image: String,
    /// The name of the capsule, which becomes the name of a folder
    #[arg(long, value_name = "NAME")]
    name: String,
    #[command(flatten)]
    workspace: Workspace,
}

#[derive(Debug, Clone, Args)]
struct Run {
    #[command(flatten)]
    named: Named,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
struct Named {
    /// The name of the capsule
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    workspace: Workspace,
}

/// What `--format json` prints of a new capsule.
#[derive(Debug, Serialize)]
struct Made<'a> {
    capsule: &'a str,
    file: String,
}

/// What `--format json` prints of a hash.
#[derive(Debug, Serialize)]
struct Hashed<'a> {
    capsule: &'a str,
    capsule_hash: String,
}

impl Capsule {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Init(init) => init.run(ui),
            Action::Run(run) => run.run(ui),
            Action::Hash(named) => named.hash(ui),
        }
    }
}

impl Init {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let made = capsule::init(self.workspace.path(), &self.name, &self.image);
        let path = made.map_err(|fault| match &fault {
            CapsuleFault::Invalid {
                source: CapsuleError::NotPinned(_),
                ..
            }
            | CapsuleFault::Name { .. } => CliError::usage(fault),
            _ => CliError::no(fault),
        })?;
        let record = Made {
            capsule: &self.name,
            file: path.display().to_string(),
        };
        ui.record(&record, |record| {
            let (name, path) = (visible(record.capsule), visible(&record.file));
            format!("capsule '{name}' written to {path}")
        })?;
        Ok(exit::ok())
    }
}

impl Named {
    fn hash(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let loaded = capsule::load(self.workspace.path(), &self.name).map_err(CliError::no)?;
        let record = Hashed {
            capsule: &self.name,
            capsule_hash: loaded.capsule_hash.unwrap_or_default(),
        };
        ui.record(&record, |record| record.capsule_hash.clone())?;
        Ok(exit::ok())
    }
}

impl Run {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        prerequisite::check(&[Rule {
            option: "--format json",
            given: ui.format() == Format::Json,
            requires: "another command",
            met: false,
            why: "standard output is that of the command in the capsule",
        }])?;
        let workspace = self.named.workspace.path();
        let name = &self.named.name;
        let loaded = capsule::load(workspace, name).map_err(CliError::operation)?;
        let environment = Environment(env::all());
        let (cancel, wrapper) = (CancellationToken::new(), wrapper()?);
        let secrets = Secrets::default();
        let ran = pass(ui, |through| {
            let tap = Tap {
                step: name,
                observer: through,
                secrets: &secrets,
                record: Record::None,
            };
            block_on(exit::FAILED_CODE, &cancel, async {
                let client = Client::find(&environment, &cancel).await?;
                let command = &self.command;
                capsule::run(workspace, &loaded, command, &client, &wrapper, tap, &cancel).await
            })
        })?;
        let code = ran.done.map_err(refused)?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
    }
}

fn refused(fault: CapsuleFault) -> CliError {
    match &fault {
        CapsuleFault::Step(StepError::Cancelled) => {
            CliError::operation("interrupted; the container was removed")
        }
        CapsuleFault::NoEngine { .. } => CliError::operation(fault)
            .hint("start the engine, or install podman, which needs none that runs all the time"),
        _ => CliError::operation(fault),
    }
}

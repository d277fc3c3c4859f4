//! `hash`: the hash, or the manifest behind it, that a step's declared paths would get.

use std::process::ExitCode;

use attest_engine::layout::State;
use attest_engine::places::state_in;
use attest_receipt::encode::blake3_hex;
use attest_receipt::manifest::{Entry, Manifest};
use attest_receipt::receipt::ArtifactKind;
use clap::Args;
use cli_shell::{CliError, Format, Ui, env, exit, visible, visible_lines};
use serde::Serialize;
use tree_manifest::{ManifestError, Options};

use crate::places::Workspace;
use crate::prerequisite::{self, Rule};

/// What to hash: a command with its inputs, or outputs.
#[derive(Debug, Clone, Args)]
pub struct Hash {
    /// The command of the step, as its `run` has it: hash it with the inputs
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// A declared input: a file or a folder, taken literally (repeatable)
    #[arg(long = "input", value_name = "PATH")]
    inputs: Vec<String>,
    /// A declared output: a file or a folder, taken literally (repeatable)
    #[arg(long = "output", value_name = "PATH")]
    outputs: Vec<String>,
    /// The name of the step in messages
    #[arg(long, value_name = "STEP", default_value = "hash")]
    name: String,
    /// Print the manifest that is hashed, a line per file, instead of its hash
    #[arg(long)]
    manifest: bool,
    #[command(flatten)]
    workspace: Workspace,
}

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Record<'x> {
    hash: String,
    /// The hash in the manifest's line `run:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<Vec<File<'x>>>,
}

#[derive(Debug, Serialize)]
struct File<'x> {
    path: &'x str,
    kind: ArtifactKind,
    digest: &'x str,
}

impl<'x> File<'x> {
    fn of((path, entry): (&'x str, &'x Entry)) -> Self {
        Self {
            path,
            kind: entry.kind,
            digest: &entry.digest,
        }
    }
}

impl Hash {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let manifest = self.make(ui)?;
        if ui.format() == Format::Json {
            let files = manifest.entries().map(File::of);
            ui.json(&Record {
                hash: manifest.hash(),
                command_hash: self.command_hash().filter(|_| self.manifest),
                manifest: self.manifest.then(|| files.collect()),
            })?;
        } else if !self.manifest {
            ui.data(manifest.hash())?;
        } else if ui.writes_to_terminal() {
            ui.raw(visible_lines(&manifest.text()).as_bytes())?;
        } else {
            // Byte for byte, so that its BLAKE3 is the hash.
            ui.raw(manifest.text().as_bytes())?;
        }
        Ok(exit::ok())
    }

    fn make(&self, ui: &Ui) -> Result<Manifest, CliError> {
        let (inputs, outputs) = (!self.inputs.is_empty(), !self.outputs.is_empty());
        prerequisite::check(&[
            Rule {
                option: "--input",
                given: inputs,
                requires: "--run",
                met: self.run.is_some(),
                why: "the hash of inputs covers the command that reads them",
            },
            Rule {
                option: "--output",
                given: outputs,
                requires: "no --run",
                met: self.run.is_none(),
                why: "the hash of outputs covers no command",
            },
        ])?;
        self.warn_of_state(ui);
        if self.run.as_deref().is_some_and(|run| run.trim().is_empty()) {
            return Err(CliError::usage(
                "--run is blank; a step of a pipeline has a command",
            ));
        }
        let (workspace, options) = (self.workspace.path(), Options::default());
        let made = match &self.run {
            Some(_) => {
                let command = self.command_hash().unwrap_or_default();
                tree_manifest::inputs(workspace, &command, &self.inputs, &options)
            }
            None if outputs => tree_manifest::outputs(workspace, &self.outputs, &options),
            None => {
                return Err(CliError::usage("there is nothing to hash").hint(
                    "use `--run COMMAND` with `--input PATH`, or `--output PATH` alone; both may be repeated",
                ));
            }
        };
        made.map_err(|error| self.refused(error))
    }

    fn command_hash(&self) -> Option<String> {
        self.run.as_ref().map(|run| blake3_hex(run.as_bytes()))
    }

    /// What runs write changes from run to run, and with it the hash of a folder that holds it.
    fn warn_of_state(&self, ui: &Ui) {
        let variable = env::var_os("ATTEST_STATE_DIR");
        let state = State::choose(self.workspace.path(), None, variable.as_deref());
        for path in self.inputs.iter().chain(&self.outputs) {
            let found = state_in(&state, path).filter(|folder| folder.exists());
            if let Some(folder) = found {
                let (path, folder) = (visible(path), visible(&folder.display().to_string()));
                ui.warn(format!(
                    "the state folder `{folder}` lies in `{path}`: every run changes the hash, and `attest run` refuses a step that declares it"
                ));
            }
        }
    }

    /// That something cannot be hashed is an answer; that there is no workspace is not.
    fn refused(&self, error: ManifestError) -> CliError {
        match error {
            ManifestError::Workspace { .. } => CliError::operation(error),
            _ => CliError::no(StepError {
                step: visible(&self.name),
                source: error,
            }),
        }
    }
}

/// A fault with the name of the step in front, in one line.
#[derive(Debug, thiserror::Error)]
#[error("step '{step}': {source}")]
struct StepError {
    step: String,
    source: ManifestError,
}

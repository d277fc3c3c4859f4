//! One operation: the CLI edits the workspace, HEAD is held against what it was, and the final
//! message is read.

use std::ffi::OsString;
use std::path::Path;

use cli_shell::CliError;
use forge_plugin_kit::{Context, Edit, Failure, Stage, WorkspaceTask};

use super::final_message::FinalFiles;
use super::head::{Head, HeadError};
use super::prompt::prompt;
use crate::executor::{Executor, ExecutorError, PrivateError, Run, begin};

/// The variable that names the CLI, and the name without it.
const PROGRAM: &str = "CODEX_BIN";
const DEFAULT_PROGRAM: &str = "codex";

/// The CLI, for every operation of this process, of which there is one.
#[derive(Debug)]
pub(super) struct Codex(Executor);

/// Why the CLI did not edit the workspace.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodexError {
    #[error("cannot tell where HEAD of the workspace is")]
    Head(#[from] HeadError),
    #[error("HEAD of the workspace is no longer {before} but {after}; the CLI may edit files only")]
    HeadMoved { before: String, after: String },
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error("the Codex CLI `{program}` (see CODEX_BIN) did not do it")]
    Run {
        program: String,
        #[source]
        source: ExecutorError,
    },
    #[error("the final message of the Codex CLI is refused: {reason}")]
    Final { reason: String },
}

impl Codex {
    /// Takes the CLI that the environment names.
    pub(super) fn from_environment() -> Result<Self, CliError> {
        let named = cli_shell::env::var_os(PROGRAM).filter(|name| !name.is_empty());
        let program = named.unwrap_or_else(|| DEFAULT_PROGRAM.into());
        Ok(Self(Executor::new(vec![program])?))
    }

    /// Performs one operation.
    pub(super) fn perform(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, Failure> {
        begin(task, context)?;
        self.edit(task, context).map_err(|error| match error {
            CodexError::Run {
                source: ExecutorError::Cancelled,
                ..
            } => Failure::cancelled(),
            error => Failure::from(error),
        })
    }

    fn edit(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, CodexError> {
        let before = Head::read(&task.workspace)?;
        let files = FinalFiles::create(&task.workspace, context)?;
        let prompt = prompt(&task.instruction);
        let run = Run {
            arguments: arguments(&task.workspace, &files),
            input: prompt.as_bytes(),
            timeout: task.timeout,
            ..Run::default()
        };
        self.0.run(run, context).map_err(|source| CodexError::Run {
            program: self.0.program().display().to_string(),
            source,
        })?;
        context.progress(Stage::Finalizing, "finalizing");
        // The exit code and the files say how it went; what the CLI reports on its way, errors
        // included, does not: it reports some in runs that succeed.
        let after = Head::read(&task.workspace)?;
        if after != before {
            return Err(CodexError::HeadMoved {
                before: before.describe(),
                after: after.describe(),
            });
        }
        files.read(context)
    }
}

fn arguments(workspace: &Path, files: &FinalFiles) -> Vec<OsString> {
    let fixed = [
        "exec",
        "--ephemeral",
        "--sandbox",
        "workspace-write",
        "--color",
        "never",
        "-C",
    ];
    fixed
        .into_iter()
        .map(OsString::from)
        .chain([workspace.into()])
        .chain(files.options())
        .chain(["-".into()])
        .collect()
}

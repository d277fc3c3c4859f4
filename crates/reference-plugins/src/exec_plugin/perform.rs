//! One operation: the command edits the workspace, and what it says about it is read.

use bounded::text::visible_lines;
use cli_shell::CliError;
use forge_plugin_kit::{Context, Edit, Failure, Stage, WorkspaceTask};

use super::answer::AnswerFiles;
use super::args::Args;
use crate::executor::{Executor, ExecutorError, PrivateError, Run, begin};

/// How much of the end of the command's standard error is shown when it fails.
const STDERR_TAIL: usize = 4_096;

/// What runs for every operation of this process, of which there is one.
#[derive(Debug)]
pub(super) struct Command(Executor);

/// Why the command did not edit the workspace.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error(transparent)]
    Run(#[from] ExecutorError),
    #[error("the file at FORGE_SUBJECT_FILE holds no commit subject: {reason}")]
    Subject { reason: String },
    #[error("the file at FORGE_REPORT_FILE holds no report: {reason}")]
    Report { reason: String },
}

impl Command {
    /// Fixes what the command is.
    pub(super) fn new(args: Args) -> Result<Self, CliError> {
        let executor = Executor::new(args.command)?;
        Ok(Self(
            executor.ask(args.signal.into()).stderr_tail(STDERR_TAIL),
        ))
    }

    /// Performs one operation.
    pub(super) fn perform(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, Failure> {
        begin(task, context)?;
        self.edit(task, context).map_err(|error| match error {
            ExecError::Run(ExecutorError::Cancelled) => Failure::cancelled(),
            ExecError::Run(
                ExecutorError::Timeout { ref stderr, .. } | ExecutorError::Ended { ref stderr, .. },
            ) => Failure::execution_failed(with_tail(&error, stderr)),
            error => Failure::from(error),
        })
    }

    fn edit(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, ExecError> {
        let files = AnswerFiles::create(&task.workspace, context)?;
        let workspace = (
            "FORGE_WORKSPACE".into(),
            task.workspace.clone().into_os_string(),
        );
        let run = Run {
            variables: files.variables().into_iter().chain([workspace]).collect(),
            directory: Some(task.workspace.clone()),
            input: task.instruction.as_bytes(),
            timeout: task.timeout,
            ..Run::default()
        };
        self.0.run(run, context)?;
        context.progress(Stage::Finalizing, "finalizing");
        files.read(context)
    }
}

fn with_tail(error: &ExecError, stderr: &[u8]) -> String {
    let from = stderr.len().saturating_sub(STDERR_TAIL);
    let text = String::from_utf8_lossy(stderr.get(from..).unwrap_or_default());
    let tail = visible_lines(text.trim());
    if tail.is_empty() {
        return error.to_string();
    }
    format!("{error}; the end of its standard error:\n{tail}")
}

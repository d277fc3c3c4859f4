//! One operation: the command is started, fed, drained, and ended.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bounded::text::visible_lines;
use cli_shell::CliError;
use forge_plugin_kit::{Context, Edit, Failure, Stage, WorkspaceTask};
use process_tree::{
    Child, ChildStdin, Exit, Ladder, Leftovers, Signal, Spec, StartError, Stdin, WaitError, Wrapper,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::answer::AnswerFiles;
use super::args::Args;

/// How long a cancelled command may take after the signal. The host waits 250 ms for the answer;
/// the rest is for the kill, the reaping and the answer itself.
const CANCEL_GRACE: Duration = Duration::from_millis(150);

/// How long the pipes are still read once the command and all it started are gone.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// How much of the end of the command's standard error is shown when it fails.
const STDERR_TAIL: usize = 4_096;

/// What runs for every operation of this process, of which there is one.
#[derive(Debug)]
pub(super) struct Command {
    argv: Vec<OsString>,
    signal: Signal,
    environment: Vec<(OsString, OsString)>,
    wrapper: Wrapper,
}

/// Why the command did not edit the workspace.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecError {
    #[error("cannot resolve the temporary directory")]
    TemporaryDirectory(#[source] io::Error),
    #[error("cannot resolve the workspace")]
    Workspace(#[source] io::Error),
    #[error("the temporary directory `{}` lies inside the workspace; set TMPDIR to another", temporary.display())]
    TemporaryInside { temporary: PathBuf },
    #[error("cannot use the private directory or a file in it")]
    Files(#[from] safe_fs::SafeFsError),
    #[error("the file at FORGE_SUBJECT_FILE holds no commit subject: {reason}")]
    Subject { reason: String },
    #[error("the file at FORGE_REPORT_FILE holds no report: {reason}")]
    Report { reason: String },
    #[error("cannot prepare to run the command")]
    Runtime(#[source] io::Error),
    #[error("cannot start the command")]
    Start(#[from] StartError),
    #[error("cannot learn how the command ended")]
    Wait(#[from] WaitError),
    #[error("the command took longer than the {limit:?} of the operation")]
    Timeout { limit: Duration, stderr: Vec<u8> },
    #[error("the command ended with {}", exit.status)]
    Ended { exit: Exit, stderr: Vec<u8> },
    #[error("the operation was cancelled")]
    Cancelled,
}

impl Command {
    /// Fixes what the command is before its working directory changes what names mean.
    pub(super) fn new(args: Args) -> Result<Self, CliError> {
        let mut argv = args.command;
        if let Some(program) = argv.first_mut()
            && program.as_encoded_bytes().contains(&b'/')
        {
            *program = std::path::absolute(&*program)
                .map_err(CliError::operation)?
                .into_os_string();
        }
        Ok(Self {
            argv,
            signal: args.signal.into(),
            environment: own_environment(),
            wrapper: Wrapper::current_exe().map_err(CliError::operation)?,
        })
    }

    /// Performs one operation.
    pub(super) fn perform(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, Failure> {
        context.progress(Stage::Started, "started");
        if !task.workspace.is_dir() {
            return Err(Failure::invalid_request(format!(
                "`{}` is no directory",
                task.workspace.display()
            )));
        }
        self.edit(task, context).map_err(|error| match error {
            ExecError::Cancelled => Failure::cancelled(),
            ExecError::Timeout { ref stderr, .. } | ExecError::Ended { ref stderr, .. } => {
                Failure::execution_failed(with_tail(&error, stderr))
            }
            error => Failure::from(error),
        })
    }

    fn edit(&self, task: &WorkspaceTask, context: &Context) -> Result<Edit, ExecError> {
        let files = AnswerFiles::create(&task.workspace)?;
        let cancelled = CancellationToken::new();
        context.cancel().on_cancel({
            let cancelled = cancelled.clone();
            move || cancelled.cancel()
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ExecError::Runtime)?;
        runtime.block_on(self.run(task, context, &files, &cancelled))?;
        context.progress(Stage::Finalizing, "finalizing");
        files.read(context)
    }

    async fn run(
        &self,
        task: &WorkspaceTask,
        context: &Context,
        files: &AnswerFiles,
        cancelled: &CancellationToken,
    ) -> Result<(), ExecError> {
        let spec = Spec::new(self.argv.iter().cloned())
            .env(self.environment.iter().cloned())
            .env([("FORGE_WORKSPACE", &task.workspace)])
            .env(files.variables())
            .cwd(&task.workspace)
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::KillAndWarn);
        if cancelled.is_cancelled() {
            return Err(ExecError::Cancelled);
        }
        let mut child = process_tree::spawn(&self.wrapper, spec).await?;
        context.progress(Stage::Working, "working");
        let mut stderr = Vec::new();
        let pipes = Pipes::of(&mut child);
        let end = self.watch(&mut child, task.timeout, cancelled);
        // The pipes stay open while the command is asked to stop: a command that says good-bye
        // must not die of it.
        match with_pipes(end, pipes.serve(task.instruction.as_bytes(), &mut stderr)).await? {
            End::Cancelled => Err(ExecError::Cancelled),
            End::Timeout => Err(ExecError::Timeout {
                limit: task.timeout,
                stderr,
            }),
            End::Exit(exit) if exit.is_success() => Ok(()),
            End::Exit(exit) => Err(ExecError::Ended { exit, stderr }),
        }
    }

    /// Waits for the command to end, or ends it.
    async fn watch(
        &self,
        child: &mut Child,
        timeout: Duration,
        cancelled: &CancellationToken,
    ) -> Result<End, WaitError> {
        let end = tokio::select! {
            // What is cancelled stays cancelled, whatever else has become ready meanwhile.
            biased;
            () = cancelled.cancelled() => End::Cancelled,
            exit = child.wait() => return Ok(End::Exit(exit?)),
            () = tokio::time::sleep(timeout) => End::Timeout,
        };
        child
            .cancel(Ladder {
                ask: Some(self.signal),
                grace: CANCEL_GRACE,
            })
            .await;
        Ok(end)
    }
}

/// How the run of a command came to its end.
enum End {
    Exit(Exit),
    Timeout,
    Cancelled,
}

/// The three pipes of a command.
struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }

    /// Writes the instruction and reads both outputs to their ends, all at once.
    async fn serve(self, instruction: &[u8], tail: &mut Vec<u8>) {
        let write = async {
            if let Some(mut stdin) = self.stdin {
                // A command need not read its instruction to the end.
                drop(stdin.write_all(instruction).await);
            }
        };
        let mut unwanted = Vec::new();
        tokio::join!(
            write,
            keep_tail(self.stdout, 0, &mut unwanted),
            keep_tail(self.stderr, STDERR_TAIL, tail)
        );
    }
}

/// Serves the pipes while something else decides, and for a moment after that.
async fn with_pipes<T>(end: impl Future<Output = T>, pipes: impl Future<Output = ()>) -> T {
    tokio::pin!(end, pipes);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            end = &mut end => {
                // A process that nobody could kill may hold them for ever.
                if open {
                    drop(tokio::time::timeout(LAST_WORDS, pipes).await);
                }
                return end;
            }
            () = &mut pipes, if open => open = false,
        }
    }
}

/// Reads to the end and keeps at least the last `keep` bytes.
async fn keep_tail(from: Option<impl AsyncRead + Unpin>, keep: usize, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    while from.read_buf(into).await.is_ok_and(|count| count > 0) {
        if into.len() > 2 * keep {
            into.drain(..into.len() - keep);
        }
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

#[expect(
    clippy::disallowed_methods,
    reason = "the command gets the plugin's own environment, whole"
)]
fn own_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

//! The program behind a workspace plugin: it is started, fed, drained, and ended, with all that it
//! started.
//!
//! What the program prints is read to its end and goes nowhere; at most the end of its standard
//! error is kept, for a plugin that shows it when the program failed.

mod pipes;
mod private;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use cli_shell::CliError;
use forge_plugin_kit::{Context, Failure, Stage, WorkspaceTask};
use process_tree::{Child, Exit, Ladder, Leftovers, Signal, Spec, Stdin, WaitError, Wrapper};
use tokio_util::sync::CancellationToken;

use pipes::{Pipes, with_pipes};
pub(crate) use private::{PrivateError, private_directory};

/// How long a cancelled program may take after the signal. The host waits 250 ms for the answer;
/// the rest is for the kill, the reaping and the answer itself.
const CANCEL_GRACE: Duration = Duration::from_millis(150);

/// What runs for every operation of this process, of which there is one.
#[derive(Debug)]
pub(crate) struct Executor {
    argv: Vec<OsString>,
    ask: Signal,
    environment: Vec<(OsString, OsString)>,
    stderr_tail: usize,
    wrapper: Wrapper,
}

/// What one run adds to the program.
#[derive(Debug, Default)]
pub(crate) struct Run<'a> {
    /// Arguments behind those of the program.
    pub(crate) arguments: Vec<OsString>,
    /// Variables besides the plugin's own.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The working directory; without it, the plugin's own.
    pub(crate) directory: Option<PathBuf>,
    /// What the program reads on standard input.
    pub(crate) input: &'a [u8],
    /// The longest that it may take.
    pub(crate) timeout: Duration,
}

/// Why the program did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecutorError {
    #[error("cannot prepare to run the command")]
    Runtime(#[source] std::io::Error),
    #[error("cannot start the command")]
    Start(#[from] process_tree::StartError),
    #[error("cannot learn how the command ended")]
    Wait(#[from] WaitError),
    #[error("the command took longer than the {limit:?} of the operation")]
    Timeout { limit: Duration, stderr: Vec<u8> },
    #[error("the command ended with {}", exit.status)]
    Ended { exit: Exit, stderr: Vec<u8> },
    #[error("the operation was cancelled")]
    Cancelled,
}

/// Says that the operation has begun, and refuses a workspace that is none.
pub(crate) fn begin(task: &WorkspaceTask, context: &Context) -> Result<(), Failure> {
    context.progress(Stage::Started, "started");
    if task.workspace.is_dir() {
        return Ok(());
    }
    Err(Failure::invalid_request(format!(
        "`{}` is no directory",
        task.workspace.display()
    )))
}

impl Executor {
    /// Fixes what the program is before a working directory changes what names mean, and takes
    /// this process's own environment for it.
    pub(crate) fn new(mut argv: Vec<OsString>) -> Result<Self, CliError> {
        if let Some(program) = argv.first_mut()
            && program.as_encoded_bytes().contains(&b'/')
        {
            *program = std::path::absolute(&*program)
                .map_err(CliError::operation)?
                .into_os_string();
        }
        Ok(Self {
            argv,
            ask: Signal::Interrupt,
            environment: own_environment(),
            stderr_tail: 0,
            wrapper: Wrapper::current_exe().map_err(CliError::operation)?,
        })
    }

    /// Chooses the signal that asks the program to stop; without it, the interrupt.
    pub(crate) fn ask(self, ask: Signal) -> Self {
        Self { ask, ..self }
    }

    /// Keeps so many bytes of the end of standard error for the error.
    pub(crate) fn stderr_tail(self, bytes: usize) -> Self {
        Self {
            stderr_tail: bytes,
            ..self
        }
    }

    /// The program's name or path.
    pub(crate) fn program(&self) -> &OsStr {
        self.argv
            .first()
            .map_or(OsStr::new(""), OsString::as_os_str)
    }

    /// Runs the program to a good end.
    pub(crate) fn run(&self, run: Run<'_>, context: &Context) -> Result<(), ExecutorError> {
        let cancelled = CancellationToken::new();
        context.cancel().on_cancel({
            let cancelled = cancelled.clone();
            move || cancelled.cancel()
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ExecutorError::Runtime)?;
        runtime.block_on(self.drive(run, context, &cancelled))
    }

    async fn drive(
        &self,
        run: Run<'_>,
        context: &Context,
        cancelled: &CancellationToken,
    ) -> Result<(), ExecutorError> {
        let mut spec = Spec::new(self.argv.iter().cloned().chain(run.arguments))
            .env(self.environment.iter().cloned())
            .env(run.variables)
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::KillAndWarn);
        if let Some(directory) = run.directory {
            spec = spec.cwd(directory);
        }
        if cancelled.is_cancelled() {
            return Err(ExecutorError::Cancelled);
        }
        let mut child = process_tree::spawn(&self.wrapper, spec).await?;
        context.progress(Stage::Working, "working");
        let mut stderr = Vec::new();
        let pipes = Pipes::of(&mut child);
        let end = self.watch(&mut child, run.timeout, cancelled);
        // The pipes stay open while the program is asked to stop: one that says good-bye must not
        // die of it.
        let served = pipes.serve(run.input, self.stderr_tail, &mut stderr);
        match with_pipes(end, served).await? {
            End::Cancelled => Err(ExecutorError::Cancelled),
            End::Timeout => Err(ExecutorError::Timeout {
                limit: run.timeout,
                stderr,
            }),
            End::Exit(exit) if exit.is_success() => Ok(()),
            End::Exit(exit) => Err(ExecutorError::Ended { exit, stderr }),
        }
    }

    /// Waits for the program to end, or ends it.
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
                ask: Some(self.ask),
                grace: CANCEL_GRACE,
            })
            .await;
        Ok(end)
    }
}

/// How the run of a program came to its end.
enum End {
    Exit(Exit),
    Timeout,
    Cancelled,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program gets the plugin's own environment, whole"
)]
fn own_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

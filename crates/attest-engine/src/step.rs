//! One command, from its start to the last process that it left.

mod input;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use process_tree::{
    Child, Exit, Ladder, Leftovers, Outlived, Signal, Spec, StartError, Status, WaitError, Wrapper,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub use input::Input;

use crate::output::{Keeper, Observer, Record, Recorded, Redactor, Secrets, Stream};
use crate::told::told;

/// The code that is recorded when a command took too long.
pub const TIMED_OUT: i32 = 124;
/// The code that is recorded when a signal ended a pipeline's command.
pub const SIGNALLED: i32 = -1;

/// How long a pipe may stay silent, yet open, once the command is gone.
const IDLE: Duration = Duration::from_millis(250);
/// How long pipes are read at most, once the command is gone.
const DRAIN: Duration = Duration::from_secs(2);
const PIECE: usize = 16 * 1024;
/// The longest `PATH` that is shown.
const LONGEST_PATH: usize = 60;

/// What is started. The environment is whole: nothing else is inherited.
#[derive(Debug, Clone)]
pub struct Command {
    /// The argument vector; a program without `/` is looked up in the `PATH` of `environment`.
    pub argv: Vec<OsString>,
    /// The whole environment; later values replace earlier ones.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// After how long everything is killed.
    pub timeout: Option<Duration>,
    /// What it reads.
    pub input: Input,
}

impl Command {
    /// Makes `sh -c TEXT`.
    #[must_use]
    pub fn shell(
        text: &str,
        environment: Vec<(OsString, OsString)>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        Self {
            argv: vec!["sh".into(), "-c".into(), text.into()],
            environment,
            directory: directory.into(),
            timeout: None,
            input: Input::Nothing,
        }
    }
}

/// Tells whether a variable of this process can be handed on: the system passes anything, and a
/// name with `=` in it would arrive as another one.
#[must_use]
pub fn can_be_passed_on(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=')
}

/// Who sees what the command writes, and how much of it is kept.
#[derive(Clone, Copy)]
pub struct Tap<'a> {
    /// The step, for the observer.
    pub step: &'a str,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// What is replaced before anybody sees it.
    pub secrets: &'a Secrets,
    /// How much is kept.
    pub record: Record,
}

impl std::fmt::Debug for Tap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap")
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a code of its own
    Code(i32),
    /// By a signal
    Signal(i32),
    /// By being killed after so many seconds
    TimedOut(u64),
}

impl End {
    /// Returns the code that a pipeline's receipt records.
    #[must_use]
    pub const fn recorded(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(_) => SIGNALLED,
            Self::TimedOut(_) => TIMED_OUT,
        }
    }
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// How it ended.
    pub end: End,
    /// The kept end of its standard output.
    pub stdout: Recorded,
    /// The kept end of its standard error, with a note after a time-out.
    pub stderr: Recorded,
    /// How long it ran.
    pub duration: Duration,
}

/// Says why a command has no end that could be recorded.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It was not started.
    #[error("cannot start the command: {}", not_started(.0))]
    Start(StartError),
    /// Nobody knows how it ended.
    #[error("cannot tell how the command ended")]
    Wait(#[from] WaitError),
    /// The run was cancelled; everything of the command was killed.
    #[error("cancelled")]
    Cancelled,
}

impl From<StartError> for StepError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

/// Says why a command was not started; a long `PATH` is told by its length.
pub(crate) fn not_started(error: &StartError) -> String {
    match error {
        StartError::NotInPath { program, path } if path.len() > LONGEST_PATH => {
            let folders = path.split(':').count();
            format!("no executable `{program}` in the {folders} folders of the program's PATH")
        }
        error => told(error),
    }
}

/// Runs a command to its end. Whatever it leaves running is killed, with a warning.
///
/// # Errors
/// It did not start, its end is unknown, or `cancel` came first. Nothing of it runs any more then.
pub async fn execute(
    wrapper: &Wrapper,
    command: Command,
    tap: Tap<'_>,
    cancel: &CancellationToken,
) -> Result<Executed, StepError> {
    if cancel.is_cancelled() {
        return Err(StepError::Cancelled);
    }
    let spec = Spec::new(command.argv)
        .env(command.environment)
        .cwd(command.directory)
        .stdin(command.input.stdin())
        .leftovers(Leftovers::KillAndWarn);
    let started = Instant::now();
    let mut child = process_tree::spawn(wrapper, spec).await?;
    let typed = command.input.feed(child.stdin.take());
    let running = Running::new(child, tap, started, command.timeout);
    tokio::select! {
        biased;
        executed = running.finish(cancel) => executed,
        never = typed => match never {},
    }
}

/// A started command whose output is read while it runs.
struct Running<'a> {
    child: Child,
    out: Pipe<'a, ChildStdout>,
    err: Pipe<'a, ChildStderr>,
    tap: Tap<'a>,
    started: Instant,
    timeout: Option<Duration>,
}

enum Event {
    Ended(Result<Exit, WaitError>),
    TimedOut,
    Cancelled,
}

impl<'a> Running<'a> {
    fn new(mut child: Child, tap: Tap<'a>, started: Instant, timeout: Option<Duration>) -> Self {
        Self {
            out: Pipe::new(child.stdout.take(), Stream::Out, tap),
            err: Pipe::new(child.stderr.take(), Stream::Err, tap),
            child,
            tap,
            started,
            timeout,
        }
    }

    async fn finish(mut self, cancel: &CancellationToken) -> Result<Executed, StepError> {
        let event = self.until_event(cancel).await;
        let (exit, timed_out) = match event {
            Event::Ended(exit) => (exit?, false),
            Event::TimedOut => (self.child.cancel(Ladder::KILL).await, true),
            Event::Cancelled => {
                self.child.cancel(Ladder::ask(Signal::Terminate)).await;
                return Err(StepError::Cancelled);
            }
        };
        let duration = self.started.elapsed();
        // Time that is up is up, also for a slow reader.
        let patience = if timed_out {
            Some(Instant::now())
        } else {
            self.deadline()
        };
        self.drain(cancel, patience).await?;
        self.warn_of_leftovers(exit.leftovers);
        let end = match (timed_out, exit.status) {
            (true, _) => End::TimedOut(self.timeout.unwrap_or_default().as_secs()),
            (false, Status::Code(code)) => End::Code(code),
            (false, Status::Signal(signal)) => End::Signal(signal),
            // Only a wrapper that was killed leaves this, and then `wait` has failed already.
            (false, Status::Lost) => End::Signal(0),
        };
        if let End::TimedOut(seconds) = end {
            self.err.note(seconds);
        }
        Ok(Executed {
            end,
            stdout: self.out.finish(),
            stderr: self.err.finish(),
            duration,
        })
    }

    /// Reads both outputs until the command ends or has to be ended.
    async fn until_event(&mut self, cancel: &CancellationToken) -> Event {
        let deadline = self.deadline();
        loop {
            // Cancellation and deadline come first, so that no flood of output hides them.
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Event::Cancelled,
                () = until(deadline) => return Event::TimedOut,
                exit = self.child.wait() => return Event::Ended(exit),
                () = self.out.read_on(), if self.out.is_open() => {}
                () = self.err.read_on(), if self.err.is_open() => {}
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let limit = self.timeout?;
        self.started.checked_add(limit)
    }

    /// Reads what is left in the pipes. Everybody who could write is dead, or could not be killed.
    /// A slow reader is waited for until `patience` ends; what is left is recorded all the same.
    async fn drain(
        &mut self,
        cancel: &CancellationToken,
        patience: Option<Instant>,
    ) -> Result<(), StepError> {
        let mut left = DRAIN;
        let whole = self.out.drain(cancel, patience, &mut left).await?
            && self.err.drain(cancel, patience, &mut left).await?;
        if !whole {
            let message = format!(
                "step `{}`: its output is still held open by a process that could not be ended",
                self.tap.step
            );
            self.tap.observer.warning(&message);
        }
        Ok(())
    }

    fn warn_of_leftovers(&self, leftovers: Outlived) {
        let step = self.tap.step;
        let message = match leftovers {
            Outlived::None => return,
            Outlived::Killed(count) | Outlived::HeldOutput(count) => {
                format!("step `{step}` left {count} process(es) running; they were killed")
            }
            Outlived::Survived(count) => {
                format!("step `{step}` left {count} process(es) running that could not be killed")
            }
        };
        self.tap.observer.warning(&message);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// One output of a command, on its way to the observer and to the receipt.
struct Pipe<'a, R> {
    reader: Option<R>,
    stream: Stream,
    tap: Tap<'a>,
    redactor: Redactor<'a>,
    keeper: Keeper,
    last_byte: Option<u8>,
    piece: Vec<u8>,
}

impl<'a, R: AsyncRead + Unpin> Pipe<'a, R> {
    fn new(reader: Option<R>, stream: Stream, tap: Tap<'a>) -> Self {
        Self {
            reader,
            stream,
            tap,
            redactor: Redactor::new(tap.secrets),
            keeper: Keeper::new(tap.record),
            last_byte: None,
            piece: vec![0; PIECE],
        }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Reads once; an error is the end like any other. May be dropped without losing a byte.
    async fn read(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        match reader.read(&mut self.piece).await {
            Ok(count) if count > 0 => {
                let bytes = self.piece.get(..count).unwrap_or_default();
                let shown = self.redactor.push(bytes);
                self.pass(&shown);
            }
            Ok(_) | Err(_) => self.reader = None,
        }
    }

    /// Reads once there is room; ends where nobody will ever read on.
    async fn read_on(&mut self) {
        let observer = self.tap.observer;
        tokio::select! {
            biased;
            () = observer.gone(self.stream) => self.reader = None,
            () = async {
                observer.room(self.stream).await;
                self.read().await;
            } => {}
        }
    }

    /// Reads to the end; false if somebody keeps it from coming.
    async fn drain(
        &mut self,
        cancel: &CancellationToken,
        patience: Option<Instant>,
        left: &mut Duration,
    ) -> Result<bool, StepError> {
        while self.is_open() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(StepError::Cancelled),
                () = self.tap.observer.room(self.stream) => {}
                () = until(patience) => {}
            }
            let since = Instant::now();
            tokio::select! {
                () = self.read() => {}
                () = sleep(IDLE.min(*left)) => return Ok(false),
            }
            *left = left.saturating_sub(since.elapsed());
        }
        Ok(true)
    }

    fn note(&mut self, seconds: u64) {
        let held = self.redactor.finish();
        self.pass(&held);
        let line_feed = match self.last_byte {
            None | Some(b'\n') => "",
            Some(_) => "\n",
        };
        let note = format!("{line_feed}command timed out after {seconds}s and was killed\n");
        self.pass(note.as_bytes());
    }

    fn pass(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.last_byte = bytes.last().copied();
        self.keeper.push(bytes);
        self.tap.observer.output(self.tap.step, self.stream, bytes);
    }

    fn finish(mut self) -> Recorded {
        let held = self.redactor.finish();
        self.pass(&held);
        self.keeper.finish()
    }
}

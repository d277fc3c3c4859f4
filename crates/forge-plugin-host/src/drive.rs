//! Moves bytes between a plugin process and its session, and watches the clock.
//!
//! What a frame means and when the session is over is the session's business; this file knows
//! pipes, budgets, deadlines and who wins when several things happen at once.

use std::io;

use forge_plugin_protocol::{
    Capability, Conclusion, HostEvent, HostSession, Operation, Outcome, PluginExit, Progress,
    SessionId,
};
use process_tree::{Child, ChildStdin, Exit, Ladder, Outlived, Status, WaitError, Wrapper, spawn};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{InvalidRequest, RunError};
use crate::request::{PluginCommand, RunLimits};
use crate::stderr_tail::StderrTail;

/// How long stderr may stay open once everything of the plugin was reaped.
const STDERR_GRACE: Duration = Duration::from_millis(100);
/// The size of one read.
const CHUNK: usize = 16 * 1024;

/// Runs one operation in a fresh process of the plugin.
///
/// Returns once the process and all its descendants are gone. The time limit counts as a
/// cancellation; a cancellation that is there before this returns wins over everything but an
/// output limit exceeded before it. `progress` is called in order, only with valid frames.
///
/// # Errors
/// See [`RunError`]; only [`RunError::Protocol`] carries bytes of the plugin, escaped and cut.
pub async fn run(
    wrapper: &Wrapper,
    command: &PluginCommand,
    operation: &Operation,
    offer: &[Capability],
    limits: &RunLimits,
    cancel: &CancellationToken,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Outcome, RunError> {
    command.check().map_err(RunError::Invalid)?;
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| RunError::Invalid(InvalidRequest::Id(error)))?;
    let session = HostSession::new(SessionId::from_bytes(id), operation.clone(), offer)
        .map_err(|error| RunError::Invalid(InvalidRequest::Offer(error)))?;
    if cancel.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    let deadline = Instant::now() + limits.timeout;
    let child = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RunError::Cancelled),
        () = sleep_until(deadline) => return Err(RunError::Cancelled),
        child = spawn(wrapper, command.spec()) => child.map_err(RunError::Start)?,
    };
    let mut drive = Drive::new(session, child, deadline, limits.output_bytes);
    drive.until_finished(cancel, progress).await;
    drive.conclude(cancel).await
}

struct Drive {
    session: HostSession,
    child: Child,
    stdin: Option<ChildStdin>,
    outgoing: Vec<u8>,
    sent: usize,
    stdout: Reader,
    stderr: Reader,
    tail: StderrTail,
    left: u64,
    deadline: Instant,
    cancelled: bool,
    /// Cancelled in the middle of a frame.
    stuck: bool,
    initialized: bool,
    exit: Option<Result<Exit, WaitError>>,
    /// Until when stderr may stay open; set by the exit.
    stderr_deadline: Option<Instant>,
    exit_told: bool,
}

enum Step {
    Stdout(io::Result<usize>),
    Stderr(io::Result<usize>),
    Sent(io::Result<usize>),
    Exited(Result<Exit, WaitError>),
    StderrStaysOpen,
}

impl Drive {
    fn new(session: HostSession, mut child: Child, deadline: Instant, output_bytes: u64) -> Self {
        Self {
            session,
            stdin: child.stdin.take(),
            outgoing: Vec::new(),
            sent: 0,
            stdout: Reader::new(child.stdout.take()),
            stderr: Reader::new(child.stderr.take()),
            tail: StderrTail::default(),
            left: output_bytes,
            deadline,
            cancelled: false,
            stuck: false,
            initialized: false,
            exit: None,
            stderr_deadline: None,
            exit_told: false,
            child,
        }
    }

    async fn until_finished(
        &mut self,
        cancel: &CancellationToken,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) {
        loop {
            if self.obey(progress) {
                return;
            }
            let timeout = self.session.poll_timeout();
            // Cancellation and the time limit come first, so that no flood hides them; what the
            // plugin did comes before its deadlines, so that a busy host fails no one in time.
            let step = tokio::select! {
                biased;
                () = cancel.cancelled(), if !self.cancelled => {
                    self.cancel();
                    continue;
                }
                () = sleep_until(self.deadline), if !self.cancelled => {
                    self.cancel();
                    continue;
                }
                step = step(
                    &mut self.child,
                    &mut self.stdin,
                    self.outgoing.get(self.sent..).unwrap_or_default(),
                    &mut self.stdout,
                    &mut self.stderr,
                    self.exit.is_none(),
                    self.stderr_deadline.filter(|_| !self.exit_told),
                ) => step,
                () = until(timeout) => {
                    self.session.handle_timeout(now());
                    continue;
                }
            };
            self.note(step, cancel);
        }
    }

    /// Does what the session asks for; true when it is finished.
    fn obey(&mut self, progress: &mut (dyn FnMut(Progress) + Send)) -> bool {
        let mut finished = self.session.is_finished();
        while let Some(event) = self.session.poll_event() {
            match event {
                HostEvent::Progress(frame) => progress(frame),
                HostEvent::CloseStdin => {
                    self.stdin = None;
                    self.outgoing.clear();
                    self.sent = 0;
                }
                HostEvent::Finished { kill: _ } => finished = true,
                HostEvent::Initialized(_) => self.initialized = true,
            }
        }
        // The wrapper's loss says nothing about the plugin that a session could judge.
        finished |= matches!(self.exit, Some(Err(_)));
        if self.sent >= self.outgoing.len() {
            self.outgoing = self.session.poll_transmit().unwrap_or_default();
            self.sent = 0;
        }
        finished || self.stuck
    }

    fn cancel(&mut self) {
        self.cancelled = true;
        // A frame that is not written to its end can be followed by nothing, not by `cancel`
        // either: a plugin that does not read is not asked but ended.
        self.stuck = self.sent < self.outgoing.len();
        self.session.cancel(now());
    }

    fn note(&mut self, step: Step, cancel: &CancellationToken) {
        match step {
            Step::Stdout(Ok(count)) if count > 0 => {
                if self.within_budget(count, cancel) {
                    self.session.receive(now(), self.stdout.fresh(count));
                }
            }
            // A pipe that cannot be read has nothing more to say.
            Step::Stdout(_) => {
                self.stdout.pipe = None;
                self.session.stdout_closed(now());
            }
            Step::Stderr(Ok(count)) if count > 0 => {
                self.tail.push(self.stderr.fresh(count));
                self.within_budget(count, cancel);
            }
            Step::Stderr(_) => {
                self.stderr.pipe = None;
                self.tell_exit(false);
            }
            Step::Sent(Ok(count)) if count > 0 => self.sent += count,
            // The plugin closed its input; what it writes and how it ends says the rest.
            Step::Sent(_) => self.stdin = None,
            Step::Exited(exit) => {
                self.exit = Some(exit);
                self.stderr_deadline = Some(Instant::now() + STDERR_GRACE);
                self.tell_exit(false);
            }
            Step::StderrStaysOpen => self.tell_exit(true),
        }
    }

    /// Counts output; the first byte over the budget ends the session, unless it was cancelled.
    fn within_budget(&mut self, count: usize, cancel: &CancellationToken) -> bool {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if let Some(left) = self.left.checked_sub(count) {
            self.left = left;
            return true;
        }
        self.left = 0;
        self.note_cancellation(cancel);
        self.session.output_limit_exceeded();
        false
    }

    /// Tells the session of the exit, once all of stderr was counted.
    fn tell_exit(&mut self, stderr_stays_open: bool) {
        let Some(Ok(exit)) = &self.exit else { return };
        if self.exit_told || (self.stderr.pipe.is_some() && !stderr_stays_open) {
            return;
        }
        self.exit_told = true;
        let exit = match (exit.leftovers, exit.status) {
            _ if stderr_stays_open => PluginExit::OutputHeld,
            (Outlived::HeldOutput(_) | Outlived::Survived(_), _) => PluginExit::OutputHeld,
            (_, Status::Code(0)) => PluginExit::Success,
            (_, Status::Code(code)) => PluginExit::Code(code),
            (_, Status::Signal(signal)) => PluginExit::Signal(signal),
            (_, Status::Lost) => PluginExit::Signal(9),
        };
        self.session.exited(now(), exit);
    }

    fn note_cancellation(&mut self, cancel: &CancellationToken) {
        if !self.cancelled && (cancel.is_cancelled() || Instant::now() >= self.deadline) {
            self.cancel();
        }
    }

    /// Ends whatever is left of the plugin and gives the verdict.
    async fn conclude(mut self, cancel: &CancellationToken) -> Result<Outcome, RunError> {
        let lost = match &self.exit {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some(error.to_string()),
            None => {
                self.child.cancel(Ladder::KILL).await;
                self.read_last_words().await;
                None
            }
        };
        self.note_cancellation(cancel);
        let stderr_tail = self.tail.shown();
        match self.session.conclude() {
            Conclusion::Cancelled => Err(RunError::Cancelled),
            Conclusion::Completed(outcome) => Ok(outcome),
            Conclusion::Reported(category) => Err(RunError::Reported {
                category,
                stderr_tail,
            }),
            Conclusion::Broken(error) => Err(RunError::Protocol {
                reason: lost.unwrap_or_else(|| error.to_string()),
                stderr_tail,
                initialized: self.initialized,
            }),
        }
    }
}

impl Drive {
    /// Reads what a killed plugin had already written to stderr, for the error message: a pipe
    /// holds at most 64 KiB, and nobody is left to write more.
    async fn read_last_words(&mut self) {
        if self.stderr.pipe.is_none() {
            return;
        }
        let words = async {
            while let Ok(count @ 1..) = self.stderr.read().await {
                self.tail.push(self.stderr.fresh(count));
            }
        };
        // An empty, open pipe would mean that somebody escaped; the words are not worth a wait.
        tokio::time::timeout(STDERR_GRACE, words).await.ok();
    }
}

/// Does the next thing that is possible, chosen fairly among those that are ready.
async fn step(
    child: &mut Child,
    stdin: &mut Option<ChildStdin>,
    outgoing: &[u8],
    stdout: &mut Reader,
    stderr: &mut Reader,
    running: bool,
    stderr_deadline: Option<Instant>,
) -> Step {
    let sending = stdin.is_some() && !outgoing.is_empty();
    tokio::select! {
        count = stdout.read() => Step::Stdout(count),
        count = stderr.read() => Step::Stderr(count),
        count = send(stdin, outgoing), if sending => Step::Sent(count),
        exit = child.wait(), if running => Step::Exited(exit),
        () = until(stderr_deadline.map(Instant::into_std)) => Step::StderrStaysOpen,
    }
}

async fn send(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

struct Reader {
    pipe: Option<Box<dyn AsyncRead + Send + Unpin>>,
    chunk: Box<[u8]>,
}

impl Reader {
    fn new(pipe: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        Self {
            pipe: pipe.map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>),
            chunk: vec![0; CHUNK].into_boxed_slice(),
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.chunk).await,
            None => std::future::pending().await,
        }
    }

    fn fresh(&self, count: usize) -> &[u8] {
        self.chunk.get(..count).unwrap_or_default()
    }
}

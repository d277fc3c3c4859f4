//! Runs a program to its end and keeps its output, under a time limit and a byte budget.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::child::{Child, ChildStdin, spawn, spawn_direct};
use crate::error::CaptureError;
use crate::spec::{Exit, Ladder, Outlived, Spec, Stdin};
use crate::wrapper::Wrapper;

/// How long a pipe may stay silent, yet open, once the program is gone.
const IDLE: Duration = Duration::from_millis(250);
/// How long a pipe may be read at most, once the program is gone.
const DRAIN: Duration = Duration::from_secs(2);

/// The limits of a captured run, and what it reads.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The time from the start to the end of the program.
    pub timeout: Duration,
    /// The bytes of stdout and stderr together; exactly so many are fine.
    pub output_bytes: u64,
    /// What happens at the first byte over the budget.
    pub on_limit: OnLimit,
    /// What is written to the program's stdin; nothing means `/dev/null`.
    pub stdin: Vec<u8>,
    /// How the program is ended at a limit or a cancellation.
    pub ladder: Ladder,
}

impl Capture {
    /// Makes limits that kill at the first byte over the budget, without input.
    pub const fn new(timeout: Duration, output_bytes: u64) -> Self {
        Self {
            timeout,
            output_bytes,
            on_limit: OnLimit::Kill,
            stdin: Vec::new(),
            ladder: Ladder::KILL,
        }
    }

    /// Sets what is written to the program's stdin.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets what happens at the first byte over the budget.
    #[must_use]
    pub const fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.on_limit = on_limit;
        self
    }

    /// Sets how the program is ended at a limit or a cancellation.
    #[must_use]
    pub const fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }
}

/// What happens at the first byte over the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLimit {
    /// The program is killed: [`CaptureError::OutputLimit`].
    Kill,
    /// The rest is read and thrown away: [`Captured::truncated`].
    Truncate,
}

/// A program's output and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// How it ended. [`Outlived::HeldOutput`] also says that output stayed open to others.
    pub exit: Exit,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: Vec<u8>,
    /// Whether bytes over the budget were thrown away.
    pub truncated: bool,
    /// The time from the start to the end of the program.
    pub duration: Duration,
}

/// Runs a program under the wrapper and keeps its output.
///
/// # Errors
/// The program was not started, or did not end by itself within the limits; see [`CaptureError`].
/// A nonzero exit code is no error.
pub async fn capture(
    wrapper: &Wrapper,
    spec: Spec,
    capture: Capture,
    cancel: &CancellationToken,
) -> Result<Captured, CaptureError> {
    if cancel.is_cancelled() {
        return Err(CaptureError::Cancelled);
    }
    let started = Instant::now();
    let spec = with_stdin(spec, &capture);
    let child = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(CaptureError::Cancelled),
        child = spawn(wrapper, spec) => child?,
    };
    Run::new(child, capture, started).finish(cancel).await
}

/// Runs a program in a process group of its own, without the wrapper, and keeps its output.
///
/// For short calls of trusted programs: what leaves the group is not found.
///
/// # Errors
/// As [`capture`].
pub async fn capture_direct(
    spec: Spec,
    capture: Capture,
    cancel: &CancellationToken,
) -> Result<Captured, CaptureError> {
    if cancel.is_cancelled() {
        return Err(CaptureError::Cancelled);
    }
    let started = Instant::now();
    let spec = with_stdin(spec, &capture);
    let child = spawn_direct(spec).await?;
    Run::new(child, capture, started).finish(cancel).await
}

fn with_stdin(spec: Spec, capture: &Capture) -> Spec {
    spec.stdin(if capture.stdin.is_empty() {
        Stdin::Null
    } else {
        Stdin::Pipe
    })
}

/// One captured run: reads both outputs, feeds the input and waits, all at once.
struct Run {
    child: Child,
    stdin: Option<ChildStdin>,
    fed: usize,
    stdout: Output,
    stderr: Output,
    left: u64,
    over: bool,
    exit: Option<(Exit, Duration)>,
    capture: Capture,
    started: Instant,
}

enum Step {
    Stdout(io::Result<usize>),
    Stderr(io::Result<usize>),
    Fed(io::Result<usize>),
    Ended(Result<Exit, crate::error::WaitError>),
}

enum Stop {
    Done,
    Timeout,
    Cancelled,
    OutputLimit,
}

impl Run {
    fn new(mut child: Child, capture: Capture, started: Instant) -> Self {
        Self {
            stdin: child.stdin.take(),
            fed: 0,
            stdout: Output::new(child.stdout.take()),
            stderr: Output::new(child.stderr.take()),
            left: capture.output_bytes,
            over: false,
            exit: None,
            child,
            capture,
            started,
        }
    }

    async fn finish(mut self, cancel: &CancellationToken) -> Result<Captured, CaptureError> {
        let stop = self.pump(cancel).await?;
        let (after, limit) = (self.capture.timeout, self.capture.output_bytes);
        if !matches!(stop, Stop::Done) {
            let exit = self.child.cancel(self.capture.ladder).await;
            self.exit = Some((exit, self.started.elapsed()));
        }
        let captured = self.captured();
        match stop {
            Stop::Done => Ok(captured),
            Stop::Cancelled => Err(CaptureError::Cancelled),
            Stop::Timeout => Err(CaptureError::Timeout {
                after,
                partial: Box::new(captured),
            }),
            Stop::OutputLimit => Err(CaptureError::OutputLimit {
                limit,
                partial: Box::new(captured),
            }),
        }
    }

    async fn pump(&mut self, cancel: &CancellationToken) -> Result<Stop, CaptureError> {
        let mut deadline = self.started + self.capture.timeout;
        let mut drained_by = deadline;
        loop {
            if self.exit.is_some() && self.stdout.is_closed() && self.stderr.is_closed() {
                return Ok(Stop::Done);
            }
            // Cancellation and deadline come first, so that no flood of output hides them.
            let step = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Stop::Cancelled),
                () = sleep_until(deadline) => {
                    if self.exit.is_none() {
                        return Ok(Stop::Timeout);
                    }
                    self.held();
                    return Ok(Stop::Done);
                }
                step = step(
                    &mut self.child,
                    &mut self.stdin,
                    self.capture.stdin.get(self.fed..).unwrap_or_default(),
                    &mut self.stdout,
                    &mut self.stderr,
                    self.exit.is_none(),
                ) => step,
            };
            match step {
                Step::Stdout(count) => {
                    let count = count.map_err(CaptureError::Read)?;
                    self.over |= !self.stdout.keep(count, &mut self.left);
                }
                Step::Stderr(count) => {
                    let count = count.map_err(CaptureError::Read)?;
                    self.over |= !self.stderr.keep(count, &mut self.left);
                }
                Step::Fed(Ok(count)) if count > 0 => {
                    self.fed += count;
                    if self.fed >= self.capture.stdin.len() {
                        self.stdin = None;
                    }
                }
                // The program closed its stdin early, which is its own affair.
                Step::Fed(_) => self.stdin = None,
                Step::Ended(exit) => {
                    self.exit = Some((exit?, self.started.elapsed()));
                    self.stdin = None;
                    drained_by = Instant::now() + DRAIN;
                }
            }
            if self.over && self.capture.on_limit == OnLimit::Kill {
                return Ok(Stop::OutputLimit);
            }
            if self.exit.is_some() {
                deadline = drained_by.min(Instant::now() + IDLE);
            }
        }
    }

    fn held(&mut self) {
        if let Some((exit, _)) = &mut self.exit {
            exit.leftovers = match exit.leftovers {
                Outlived::None => Outlived::HeldOutput(1),
                Outlived::Killed(n) | Outlived::HeldOutput(n) | Outlived::Survived(n) => {
                    Outlived::HeldOutput(n)
                }
            };
        }
    }

    fn captured(self) -> Captured {
        let (exit, duration) = self.exit.unwrap_or((
            Exit {
                status: crate::spec::Status::Lost,
                leftovers: Outlived::None,
            },
            self.started.elapsed(),
        ));
        Captured {
            exit,
            stdout: self.stdout.kept,
            stderr: self.stderr.kept,
            truncated: self.over,
            duration,
        }
    }
}

/// Does the next thing that is possible, chosen fairly among those that are ready.
async fn step(
    child: &mut Child,
    stdin: &mut Option<ChildStdin>,
    input: &[u8],
    stdout: &mut Output,
    stderr: &mut Output,
    running: bool,
) -> Step {
    let feeding = stdin.is_some();
    tokio::select! {
        count = stdout.read() => Step::Stdout(count),
        count = stderr.read() => Step::Stderr(count),
        count = feed(stdin, input), if feeding => Step::Fed(count),
        exit = child.wait(), if running => Step::Ended(exit),
    }
}

async fn feed(stdin: &mut Option<ChildStdin>, input: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(input).await,
        None => std::future::pending().await,
    }
}

/// One output pipe, what was just read from it, and what is kept of it.
struct Output {
    pipe: Option<Box<dyn AsyncRead + Send + Unpin>>,
    chunk: Box<[u8]>,
    kept: Vec<u8>,
}

impl Output {
    fn new(pipe: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        Self {
            pipe: pipe.map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>),
            chunk: vec![0; 16 * 1024].into_boxed_slice(),
            kept: Vec::new(),
        }
    }

    fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    async fn read(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.chunk).await,
            None => std::future::pending().await,
        }
    }

    /// Keeps what the budget allows of the chunk just read; false if that is not all.
    fn keep(&mut self, count: usize, left: &mut u64) -> bool {
        if count == 0 {
            self.pipe = None;
            return true;
        }
        let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(count);
        self.kept
            .extend_from_slice(self.chunk.get(..fits).unwrap_or_default());
        *left -= u64::try_from(fits).unwrap_or(*left);
        fits == count
    }
}

//! Moves bytes between a plugin process and its session, and watches the clock.
//!
//! What a message means and what follows from silence is the session's business; this file knows
//! pipes, the process and who comes first when several things happen at once: a cancellation, then
//! what the plugin did, then its deadlines, so that a busy machine fails no plugin in time.
//!
//! Between two questions nobody looks at stdin, stdout or the process; stderr is read by a task of
//! its own at all times. What came to stdout in between is looked at before the next question.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use attest_plugin_protocol::{
    Announcement, Decision, Failure, HostEvent, HostSession, Payload, PluginExit, RequestError,
    Verdict,
};
use process_tree::{
    Child, ChildStdin, Exit, Ladder, Outlived, Signal, Spec, StartError, Status, WaitError,
    Wrapper, spawn,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::log::{PluginLog, drain};

/// How long stderr may stay open once everything of the plugin was reaped.
const STDERR_GRACE: Duration = Duration::from_millis(100);
/// The size of one read.
const CHUNK: usize = 16 * 1024;

/// A running plugin. Dropping it kills it with all its descendants.
#[derive(Debug)]
pub(crate) struct Drive {
    session: HostSession,
    child: Child,
    ended: bool,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    /// The task that reads stderr; ends with this value.
    stderr: JoinSet<()>,
    outgoing: Vec<u8>,
    sent: usize,
    close_stdin: bool,
    chunk: Box<[u8]>,
    log: Arc<PluginLog>,
    clock: Clock,
}

/// How a question ended.
#[derive(Debug)]
pub(crate) enum Asked<T> {
    Answered(T),
    Failed(Failure),
    Cancelled,
}

/// Why a plugin's process does not run.
#[derive(Debug)]
pub(crate) enum NoStart {
    Refused(StartError),
    Cancelled,
}

/// What a session came to.
enum Told {
    Ready(Announcement),
    Verdict(Verdict),
    Failed(Failure),
    Over,
    Cancelled,
}

/// The next thing that is possible.
enum Step {
    Stdout(io::Result<usize>),
    Sent(io::Result<usize>),
    Exited(Result<Exit, WaitError>),
}

impl Drive {
    /// Starts a plugin's process; `session` makes the session once it runs.
    pub(crate) async fn start(
        wrapper: &Wrapper,
        spec: Spec,
        session: impl FnOnce(std::time::Instant) -> HostSession,
        log: Arc<PluginLog>,
        clock: Clock,
        cancel: &CancellationToken,
    ) -> Result<Self, NoStart> {
        let mut child = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(NoStart::Cancelled),
            child = spawn(wrapper, spec) => child.map_err(NoStart::Refused)?,
        };
        let mut stderr = JoinSet::new();
        if let Some(pipe) = child.stderr.take() {
            stderr.spawn(drain(pipe, Arc::clone(&log)));
        }
        Ok(Self {
            session: session(clock.now()),
            ended: false,
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr,
            outgoing: Vec::new(),
            sent: 0,
            close_stdin: false,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            log,
            clock,
            child,
        })
    }

    /// Waits for the answer to `hello`, which is on its way since the start.
    pub(crate) async fn greet(&mut self, cancel: &CancellationToken) -> Asked<Announcement> {
        match self.next(cancel).await {
            Told::Ready(announcement) => match self.pending_failure() {
                Some(failure) => Asked::Failed(failure),
                None => Asked::Answered(announcement),
            },
            Told::Failed(failure) => Asked::Failed(failure),
            Told::Cancelled => Asked::Cancelled,
            Told::Verdict(_) | Told::Over => Asked::Failed(out_of_turn()),
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(
        &mut self,
        payload: &Payload,
        cancel: &CancellationToken,
    ) -> Asked<Verdict> {
        self.read_waiting();
        if let Some(failure) = self.pending_failure() {
            return Asked::Failed(failure);
        }
        match self.session.request(self.clock.now(), payload) {
            Ok(()) => {}
            Err(RequestError::NotIdle) => return Asked::Failed(out_of_turn()),
            Err(error) => return Asked::Failed(Failure::Broken(error.to_string())),
        }
        match self.next(cancel).await {
            Told::Verdict(verdict) => match self.pending_failure() {
                // A no stands, whatever else there is in the same breath.
                Some(failure) if verdict.decision != Decision::Deny => Asked::Failed(failure),
                _ => Asked::Answered(verdict),
            },
            Told::Failed(failure) => Asked::Failed(failure),
            Told::Cancelled => Asked::Cancelled,
            Told::Ready(_) | Told::Over => Asked::Failed(out_of_turn()),
        }
    }

    /// Says `shutdown`, waits as the protocol has it, and ends what is left. A cancellation cuts
    /// the wait short.
    pub(crate) async fn end(mut self, cancel: &CancellationToken) {
        self.session.shutdown(self.clock.now());
        let ladder = loop {
            match self.next(cancel).await {
                Told::Over => break Ladder::KILL,
                Told::Cancelled => break Ladder::ask(Signal::Terminate),
                Told::Ready(_) | Told::Verdict(_) | Told::Failed(_) => {}
            }
        };
        self.bury(ladder).await;
    }

    /// Ends the plugin with all its descendants, and reads what it had written to stderr.
    pub(crate) async fn bury(mut self, ladder: Ladder) {
        self.kill(ladder).await;
        // Open and empty means that somebody escaped; the rest is not worth a wait.
        let _late = tokio::time::timeout(STDERR_GRACE, self.stderr.join_next()).await;
    }

    /// Moves bytes until there is something to tell.
    async fn next(&mut self, cancel: &CancellationToken) -> Told {
        loop {
            while let Some(event) = self.session.poll_event() {
                match event {
                    HostEvent::Ready(announcement) => return Told::Ready(announcement),
                    HostEvent::Verdict(verdict) => return Told::Verdict(verdict),
                    HostEvent::Failed(failure) => return Told::Failed(failure),
                    HostEvent::CloseStdin => self.close_stdin = true,
                    HostEvent::Terminate => self.child.ask(Signal::Terminate),
                    HostEvent::Kill => self.kill(Ladder::KILL).await,
                    HostEvent::Note(note) => self.log.own(&note),
                }
            }
            if self.session.is_over() {
                return Told::Over;
            }
            self.load();
            let timeout = self.session.poll_timeout();
            let clock = self.clock.clone();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Told::Cancelled,
                step = self.step() => self.note(step),
                () = clock.until(timeout) => self.session.handle_timeout(clock.now()),
            }
        }
    }

    /// Takes what the session wants to send.
    fn load(&mut self) {
        if self.sent >= self.outgoing.len() {
            self.outgoing.clear();
            self.sent = 0;
        }
        while let Some(message) = self.session.poll_transmit() {
            if self.outgoing.is_empty() {
                self.outgoing = message;
            } else {
                self.outgoing.extend_from_slice(&message);
            }
        }
        if self.close_stdin && self.outgoing.is_empty() {
            self.stdin = None;
        }
    }

    async fn step(&mut self) -> Step {
        let rest = self.outgoing.get(self.sent..).unwrap_or_default();
        let sending = self.stdin.is_some() && !rest.is_empty();
        tokio::select! {
            count = read(&mut self.stdout, &mut self.chunk) => Step::Stdout(count),
            count = send(&mut self.stdin, rest), if sending => Step::Sent(count),
            exit = self.child.wait(), if !self.ended => Step::Exited(exit),
        }
    }

    fn note(&mut self, step: Step) {
        let now = self.clock.now();
        match step {
            Step::Stdout(Ok(count @ 1..)) => {
                let bytes = self.chunk.get(..count).unwrap_or_default();
                self.session.receive(now, bytes);
            }
            // A pipe that cannot be read has nothing more to say.
            Step::Stdout(_) => {
                self.stdout = None;
                self.session.stdout_closed(now);
            }
            Step::Sent(Ok(count @ 1..)) => self.sent += count,
            // The plugin closed its input; what it writes and how it ends says the rest.
            Step::Sent(_) => self.stdin = None,
            Step::Exited(exit) => self.exited(exit),
        }
    }

    /// Reads what came to stdout since the last answer, without waiting for any. Past tokio, which
    /// may not have noticed yet that there is something.
    fn read_waiting(&mut self) {
        while let Some(stdout) = &self.stdout {
            match rustix::io::read(stdout, &mut self.chunk[..]) {
                Ok(count) => self.note(Step::Stdout(Ok(count))),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(error) => self.note(Step::Stdout(Err(error.into()))),
            }
            if self.session.is_over() {
                return;
            }
        }
    }

    /// Looks for a failure among what the session has to tell, and notes the rest.
    fn pending_failure(&mut self) -> Option<Failure> {
        let mut failure = None;
        while let Some(event) = self.session.poll_event() {
            match event {
                HostEvent::Failed(reason) => failure = Some(reason),
                HostEvent::Note(note) => self.log.own(&note),
                HostEvent::CloseStdin
                | HostEvent::Kill
                | HostEvent::Ready(_)
                | HostEvent::Terminate
                | HostEvent::Verdict(_) => {}
            }
        }
        failure
    }

    async fn kill(&mut self, ladder: Ladder) {
        if !self.ended {
            let exit = self.child.cancel(ladder).await;
            self.exited(Ok(exit));
        }
    }

    fn exited(&mut self, exit: Result<Exit, WaitError>) {
        self.ended = true;
        let status = match exit {
            Ok(exit) => {
                if let Some(problem) = left(exit.leftovers) {
                    self.log.own(&problem);
                }
                exit.status
            }
            Err(error) => {
                self.log.own(&error.to_string());
                Status::Lost
            }
        };
        let how = match status {
            Status::Code(code) => PluginExit::Code(code),
            Status::Signal(signal) => PluginExit::Signal(signal),
            // Whoever killed the wrapper has killed the plugin with it.
            Status::Lost => PluginExit::Signal(rustix::process::Signal::KILL.as_raw()),
        };
        self.session.exited(self.clock.now(), how);
    }
}

async fn read(stdout: &mut Option<ChildStdout>, chunk: &mut [u8]) -> io::Result<usize> {
    match stdout {
        Some(stdout) => stdout.read(chunk).await,
        None => std::future::pending().await,
    }
}

async fn send(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// A question was given up in the middle, so nobody knows what the next line answers.
fn out_of_turn() -> Failure {
    Failure::Broken("the answer to an earlier question was not waited for".to_owned())
}

/// What is said about processes that outlived a plugin.
fn left(outlived: Outlived) -> Option<String> {
    match outlived {
        Outlived::None => None,
        Outlived::Killed(1) | Outlived::HeldOutput(1) => {
            Some("left 1 process running; killed".to_owned())
        }
        Outlived::Killed(count) | Outlived::HeldOutput(count) => {
            Some(format!("left {count} processes running; killed"))
        }
        Outlived::Survived(count) => Some(format!("{count} of its processes could not be killed")),
    }
}

//! One process of a plugin, led message by message.
//!
//! A session never judges; it says what it could not get, and notes what was there and should not
//! have been, for the scenarios that are about that.

use process_tree::{Child, ChildStdin, Exit, Ladder, Outlived, Signal};
use safe_fs::PrivateTempDir;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, timeout_at};

use crate::limits::Limits;
use crate::message::{Message, Piece, Splitter};
use crate::payload::request;
use crate::shown;
use crate::target::Started;

/// How much of the end of standard error is kept.
const STDERR_TAIL: usize = 4_096;

/// How long an output is read that others may hold open after the process has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// A process and what it has said so far.
pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    outputs: Outputs,
    limits: Limits,
    last_id: u64,
    /// The first of each fault that most scenarios overlook.
    pub(crate) notes: Notes,
    /// Whether it let the time for an answer pass.
    pub(crate) silent: bool,
    _ground: Option<PrivateTempDir>,
}

/// Faults that are told by the scenarios about them.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// A line that is no message.
    pub(crate) stray: Option<String>,
    /// A message that is not one compact line.
    pub(crate) loose: Option<String>,
    /// A message that nobody asked for.
    pub(crate) unsolicited: Option<String>,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Exit(Exit),
    /// Not within this time; it was killed.
    Late(Duration),
}

impl Session {
    pub(crate) fn new(started: Started, limits: Limits) -> Self {
        let Started { mut child, ground } = started;
        Self {
            stdin: child.stdin.take(),
            outputs: Outputs {
                stdout: child.stdout.take(),
                stderr: child.stderr.take(),
                splitter: Splitter::default(),
                tail: Vec::new(),
            },
            child,
            limits,
            last_id: 0,
            notes: Notes::default(),
            silent: false,
            _ground: ground,
        }
    }

    /// Returns the id of the next message, and counts it.
    pub(crate) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Leaves out ids.
    pub(crate) fn skip_ids(&mut self, count: u64) {
        self.last_id += count;
    }

    /// Sends a request and returns the next message, whatever it is.
    pub(crate) async fn ask(&mut self, kind: &str, payload: &str) -> Result<Message, String> {
        let id = self.id();
        self.send(&request(id, kind, payload)).await?;
        self.message(&format!("`{kind}`")).await
    }

    /// Writes a line.
    pub(crate) async fn send(&mut self, line: &str) -> Result<(), String> {
        self.write(format!("{line}\n").as_bytes()).await
    }

    /// Writes bytes, and reads meanwhile, so that nobody waits for the other.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.overhear();
        let until = Instant::now() + self.limits.answer;
        let Self { stdin, outputs, .. } = self;
        let Some(stdin) = stdin else {
            return Err("its input is closed already".to_owned());
        };
        let write = async {
            stdin.write_all(bytes).await?;
            stdin.flush().await
        };
        let listen = async {
            loop {
                outputs.hear().await;
            }
        };
        let done = tokio::select! {
            done = timeout_at(until, write) => done,
            () = listen => return Err("unreachable".to_owned()),
        };
        match done {
            Ok(Ok(())) => Ok(()),
            // What it said before it left may be what it was to say.
            Ok(Err(_gone)) => Ok(()),
            Err(_elapsed) => Err(self.with_tail(format!(
                "expected the message to be read within {:?}, it was not",
                self.limits.answer
            ))),
        }
    }

    /// Waits for the next message, which is to answer what was sent.
    pub(crate) async fn message(&mut self, to: &str) -> Result<Message, String> {
        let until = Instant::now() + self.limits.answer;
        loop {
            while let Some(piece) = self.outputs.splitter.next() {
                match piece {
                    Piece::Message(message) => {
                        self.heard(&message);
                        return Ok(message);
                    }
                    Piece::Stray(raw) => self.stray(&raw),
                }
            }
            if self.outputs.splitter.flooded() {
                return Err("expected an answer, got output without an end".to_owned());
            }
            if self.outputs.stdout.is_none() {
                return Err(self.gone(to).await);
            }
            if timeout_at(until, self.outputs.hear()).await.is_err() {
                self.silent = true;
                // What never flushes is not seen to begin.
                let hint = match self.last_id {
                    0..=1 => "; a plugin flushes each line",
                    _ => "",
                };
                return Err(self.with_tail(format!(
                    "expected an answer to {to} within {:?}, got none{hint}",
                    self.limits.answer
                )));
            }
        }
    }

    /// Watches for a while; whatever comes is unsolicited.
    pub(crate) async fn quiet(&mut self) {
        let until = Instant::now() + self.limits.quiet;
        while timeout_at(until, self.outputs.hear()).await.is_ok() {}
        self.overhear();
    }

    /// Closes the input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process, at most so long.
    pub(crate) async fn end(&mut self, within: Duration) -> Result<Ended, String> {
        let until = Instant::now() + within;
        let Self { child, outputs, .. } = self;
        let ended = tokio::select! {
            exit = child.wait() => exit.map(Some).map_err(|error| shown::explain(&error))?,
            () = outputs.hear_until(until) => None,
        };
        let Some(exit) = ended else {
            self.child.cancel(Ladder::KILL).await;
            return Ok(Ended::Late(within));
        };
        // What was written last is still in the pipe.
        let until = Instant::now() + DRAIN;
        while self.outputs.open() && timeout_at(until, self.outputs.hear()).await.is_ok() {}
        Ok(Ended::Exit(exit))
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&mut self) {
        self.child.ask(Signal::Terminate);
    }

    /// Returns the messages that came and were not waited for, and notes lines that are none.
    pub(crate) fn left(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(piece) = self.outputs.splitter.next() {
            match piece {
                Piece::Message(message) => {
                    self.heard(&message);
                    messages.push(message);
                }
                Piece::Stray(raw) => self.stray(&raw),
            }
        }
        let rest = self.outputs.splitter.rest();
        if !rest.is_empty() {
            self.stray(&rest);
        }
        messages
    }

    /// Notes what has come so far as unsolicited.
    fn overhear(&mut self) {
        while let Some(piece) = self.outputs.splitter.next() {
            match piece {
                Piece::Message(message) => {
                    self.heard(&message);
                    self.notes
                        .unsolicited
                        .get_or_insert_with(|| message.quoted());
                }
                Piece::Stray(raw) => self.stray(&raw),
            }
        }
    }

    fn heard(&mut self, message: &Message) {
        if self.notes.loose.is_none() {
            self.notes.loose = message.loose();
        }
    }

    fn stray(&mut self, raw: &[u8]) {
        self.notes.stray.get_or_insert_with(|| shown::quoted(raw));
    }

    /// Says how the plugin left instead of answering.
    async fn gone(&mut self, to: &str) -> String {
        let text = format!("expected an answer to {to}, ");
        let how = match self.end(self.limits.grace).await {
            Ok(Ended::Exit(exit)) => format!("it ended: {}", exit.status),
            Ok(Ended::Late(_)) => "it closed its output and stayed".to_owned(),
            Err(error) => error,
        };
        self.with_tail(text + &how)
    }

    fn with_tail(&self, text: String) -> String {
        match shown::tail(&self.outputs.tail) {
            Some(tail) => format!("{text}; stderr: {tail}"),
            None => text,
        }
    }
}

/// Counts the processes that outlived the program.
pub(crate) const fn outlived(exit: Exit) -> u32 {
    match exit.leftovers {
        Outlived::None => 0,
        Outlived::Killed(count) | Outlived::HeldOutput(count) | Outlived::Survived(count) => count,
    }
}

struct Outputs {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    splitter: Splitter,
    tail: Vec<u8>,
}

impl Outputs {
    /// Reads once from either output; never returns once both have ended.
    async fn hear(&mut self) {
        let mut out = [0; 16_384];
        let mut err = [0; 4_096];
        tokio::select! {
            bytes = read(&mut self.stdout, &mut out) => match bytes {
                Some(bytes) => self.splitter.push(bytes),
                None => self.stdout = None,
            },
            bytes = read(&mut self.stderr, &mut err) => match bytes {
                Some(bytes) => {
                    self.tail.extend_from_slice(bytes);
                    let surplus = self.tail.len().saturating_sub(STDERR_TAIL);
                    self.tail.drain(..surplus);
                }
                None => self.stderr = None,
            },
        }
    }

    async fn hear_until(&mut self, until: Instant) {
        while timeout_at(until, self.hear()).await.is_ok() {}
    }

    const fn open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }
}

/// Reads once; nothing means the end. Never returns if there is nothing to read from.
async fn read<'a>(
    from: &mut Option<impl AsyncReadExt + Unpin>,
    into: &'a mut [u8],
) -> Option<&'a [u8]> {
    let Some(from) = from else {
        return std::future::pending().await;
    };
    match from.read(into).await {
        Ok(0) | Err(_) => None,
        Ok(count) => into.get(..count),
    }
}

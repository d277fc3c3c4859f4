//! The session as the core sees it: what to send, what may come back, and when it is over.
//!
//! ```text
//! starting ─ hello_ok ─► idle ⇄ asked
//!    │                    │       │         (a violation, a time-out, an early end: broken)
//!    │ shutdown           │       │ shutdown
//!    ▼                    ▼       ▼
//! terminating ◄─ 5 s ─ shutting down
//!    │ 5 s: kill
//!    ▼
//!  killed ─ exit ─► ended
//! ```
//!
//! Lines are answers, so a byte while no request is open is a violation. After `shutdown` nothing
//! that the plugin does changes a verdict; it is noted for the run log.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Expected, Failure, HostEvent, PluginExit, RequestError, limit};
use crate::announcement::Announcement;
use crate::decode::{self, Envelope};
use crate::encode;
use crate::hook::Hook;
use crate::limits::{END_GRACE, MAJOR, MESSAGE_BYTES, SHUTDOWN_GRACE, TERMINATE_GRACE};
use crate::line_reader::LineReader;
use crate::payload::Payload;
use crate::violation::{ProtocolError, Violation, excerpt};

/// The core's side of one session with one plugin process.
///
/// Write what [`poll_transmit`](Self::poll_transmit) returns to the plugin's stdin; feed what it
/// writes to [`receive`](Self::receive), then [`stdout_closed`](Self::stdout_closed); tell its end
/// with [`exited`](Self::exited); act on [`poll_event`](Self::poll_event); call
/// [`handle_timeout`](Self::handle_timeout) once [`poll_timeout`](Self::poll_timeout) has passed.
///
/// When input and deadline are ready at once, give the input first: then a busy machine does not
/// fail a plugin that was in time. Take what `poll_transmit` returns before you feed input: an
/// answer to a message that was not taken yet is a violation.
#[derive(Debug)]
pub struct HostSession {
    expected: Expected,
    timeout: Duration,
    state: State,
    /// The id of the next message; ids rise by one over the whole session.
    next_id: u64,
    announcement: Option<Announcement>,
    reader: LineReader,
    transmit: VecDeque<Vec<u8>>,
    events: VecDeque<HostEvent>,
    stdout_closed: bool,
    exit: Option<PluginExit>,
    /// Until when the other sign of an early end, or an answer still in the pipe, may come.
    end_deadline: Option<Instant>,
    noted_late_output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting {
        deadline: Option<Instant>,
    },
    Idle,
    Asked {
        id: u64,
        hook: Hook,
        deadline: Option<Instant>,
    },
    ShuttingDown {
        deadline: Instant,
    },
    Terminating {
        deadline: Instant,
    },
    Killed,
    Ended,
    Broken,
}

/// The id of `hello` (seed 6).
const HELLO: u64 = 1;

impl HostSession {
    /// Begins a session: `hello` is ready to be sent and its time runs.
    #[must_use]
    pub fn new(expected: Expected, attest_version: &str, timeout: Duration, now: Instant) -> Self {
        Self {
            expected,
            timeout,
            state: State::Starting {
                deadline: now.checked_add(timeout),
            },
            next_id: HELLO + 1,
            announcement: None,
            reader: LineReader::default(),
            transmit: VecDeque::from([encode::hello(HELLO, attest_version)]),
            events: VecDeque::new(),
            stdout_closed: false,
            exit: None,
            end_deadline: None,
            noted_late_output: false,
        }
    }

    /// Asks; the answer has the time-out from now on.
    ///
    /// # Errors
    /// Nothing is sent, and the session is as it was.
    pub fn request(&mut self, now: Instant, payload: &Payload) -> Result<(), RequestError> {
        if self.state != State::Idle {
            return Err(RequestError::NotIdle);
        }
        let hook = payload.hook();
        if !self.serves(hook) {
            return Err(RequestError::NotAnnouncedNorDeclared);
        }
        let id = self.next_id;
        let line = encode::request(id, payload);
        // The line feed does not count.
        if line.len() > MESSAGE_BYTES + 1 {
            return Err(RequestError::TooLarge);
        }
        self.next_id += 1;
        self.transmit.push_back(line);
        self.state = State::Asked {
            id,
            hook,
            deadline: now.checked_add(self.timeout),
        };
        if self.exit.is_some() {
            // Nobody is there to read it.
            self.early_end();
        } else {
            self.judge_end(now);
        }
        Ok(())
    }

    /// Says that no more is asked.
    ///
    /// An idle plugin gets `shutdown` and the ladder of seed 5. One that still owes an answer can
    /// be told nothing, because requests are strictly sequential: it is asked to end by signal.
    /// Repeating it, or doing it when the session is broken, changes nothing.
    pub fn shutdown(&mut self, now: Instant) {
        match (self.state, self.exit) {
            (State::Idle, Some(exit)) => {
                self.note(format!("{exit} before shutdown"));
                self.state = State::Ended;
            }
            (State::Idle, None) => {
                self.transmit.push_back(encode::shutdown(self.next_id));
                self.next_id += 1;
                self.events.push_back(HostEvent::CloseStdin);
                self.state = State::ShuttingDown {
                    deadline: now + SHUTDOWN_GRACE,
                };
            }
            (State::Starting { .. } | State::Asked { .. }, _) => {
                self.transmit.clear();
                self.terminate(now);
            }
            _ => {}
        }
    }

    /// Takes bytes of the plugin's stdout.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.state {
            State::Starting { .. } | State::Idle | State::Asked { .. } => {
                self.reader.push(bytes);
                self.read_lines();
                self.judge_end(now);
            }
            State::ShuttingDown { .. } | State::Terminating { .. } | State::Killed => {
                if !self.noted_late_output {
                    self.noted_late_output = true;
                    self.note("wrote to stdout after the last request; not read".to_owned());
                }
            }
            State::Ended | State::Broken => {}
        }
    }

    /// Notes that the plugin's stdout reached its end.
    pub fn stdout_closed(&mut self, now: Instant) {
        self.stdout_closed = true;
        self.judge_end(now);
    }

    /// Notes that the plugin process ended.
    pub fn exited(&mut self, now: Instant, exit: PluginExit) {
        self.exit = Some(exit);
        match self.state {
            State::Starting { .. } | State::Idle | State::Asked { .. } => self.judge_end(now),
            State::ShuttingDown { .. } | State::Terminating { .. } | State::Killed => {
                if exit != PluginExit::Code(0) {
                    self.note(format!("{exit} after the last request"));
                }
                self.state = State::Ended;
            }
            State::Ended | State::Broken => {}
        }
    }

    /// Returns bytes for the plugin's stdin, in order, one message at a time.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due, if anything is waited for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Starting { deadline } | State::Asked { deadline, .. } => {
                [deadline, self.end_deadline].into_iter().flatten().min()
            }
            State::ShuttingDown { deadline } | State::Terminating { deadline } => Some(deadline),
            State::Idle | State::Killed | State::Ended | State::Broken => None,
        }
    }

    /// Ends whatever has waited until `now` in vain; does nothing before the deadline.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|deadline| now < deadline) {
            return;
        }
        let time = limit(self.timeout);
        match self.state {
            State::Starting { .. } | State::Asked { .. } if self.end_deadline.is_some() => {
                self.early_end();
            }
            State::Starting { .. } => {
                if self.reader.rest().is_empty() {
                    self.note("it has written nothing; a plugin flushes each line".to_owned());
                }
                self.fail(format!("no hello_ok within {time}"));
            }
            State::Asked { hook, .. } => self.fail(format!("no answer to {hook} within {time}")),
            State::ShuttingDown { .. } => {
                self.note(format!(
                    "still running {} after shutdown: SIGTERM",
                    limit(SHUTDOWN_GRACE)
                ));
                self.terminate(now);
            }
            State::Terminating { .. } => {
                self.note(format!(
                    "still running {} after SIGTERM: SIGKILL",
                    limit(TERMINATE_GRACE)
                ));
                self.events.push_back(HostEvent::Kill);
                self.state = State::Killed;
            }
            State::Idle | State::Killed | State::Ended | State::Broken => {}
        }
    }

    /// Returns what the plugin announced, once it has.
    #[must_use]
    pub fn announcement(&self) -> Option<&Announcement> {
        self.announcement.as_ref()
    }

    /// Tells whether the plugin declared and announced the hook.
    #[must_use]
    pub fn serves(&self, hook: Hook) -> bool {
        self.expected.hooks.contains(&hook)
            && self.announcement.as_ref().is_some_and(|it| it.has(hook))
    }

    /// Tells whether a request may be made.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Tells whether nothing more will happen: the plugin has ended, or the session is broken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Broken)
    }

    fn read_lines(&mut self) {
        loop {
            let waiting = matches!(self.state, State::Starting { .. } | State::Asked { .. });
            if !waiting && self.state != State::Idle {
                return;
            }
            // An answer to a question that was not sent yet is no answer.
            if (!waiting || !self.transmit.is_empty()) && !self.reader.rest().is_empty() {
                let rest = self.reader.rest();
                return self.break_off(&ProtocolError::in_line(Violation::Unsolicited, rest));
            }
            if !waiting {
                return;
            }
            let line = match self.reader.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(error) => return self.break_off(&error),
            };
            if let Err(violation) = self.read_line(&line) {
                return self.break_off(&ProtocolError::in_line(violation, &line));
            }
        }
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), Violation> {
        let mut envelope = Envelope::open(line)?;
        match self.state {
            State::Starting { .. } => {
                envelope.answers(HELLO, "hello_ok")?;
                let announcement = decode::hello_ok(envelope.body)?;
                self.greet(announcement);
            }
            State::Asked { id, .. } => {
                envelope.answers(id, "verdict")?;
                let verdict = decode::verdict(envelope.body)?;
                self.events.push_back(HostEvent::Verdict(verdict));
                self.state = State::Idle;
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares what the plugin announced with what was declared.
    fn greet(&mut self, announcement: Announcement) {
        if announcement.protocol != MAJOR {
            let protocol = announcement.protocol;
            return self.fail(format!(
                "selected protocol {protocol}, which was not offered"
            ));
        }
        let missing = self
            .expected
            .hooks
            .iter()
            .find(|hook| !announcement.has(**hook));
        let problem = if announcement.name != self.expected.name {
            Some(format!(
                "calls itself `{}`, which is not its declared name",
                announcement.name
            ))
        } else if announcement.deterministic != self.expected.deterministic {
            let (said, declared) = (announcement.deterministic, self.expected.deterministic);
            Some(format!(
                "announces deterministic = {said}, declared is {declared}"
            ))
        } else {
            missing.map(|hook| format!("does not announce the declared hook {hook}"))
        };
        if let Some(problem) = problem {
            return self.end_with(Failure::Misconfigured(problem));
        }
        self.announcement = Some(announcement.clone());
        self.events.push_back(HostEvent::Ready(announcement));
        self.state = State::Idle;
    }

    fn terminate(&mut self, now: Instant) {
        if self.exit.is_some() {
            self.state = State::Ended;
            return;
        }
        self.events.push_back(HostEvent::Terminate);
        self.state = State::Terminating {
            deadline: now + TERMINATE_GRACE,
        };
    }

    /// Looks at end of output and exit, in whichever order they came. A plugin that is idle may be
    /// gone without harm: nobody may ever ask it again.
    fn judge_end(&mut self, now: Instant) {
        if !matches!(self.state, State::Starting { .. } | State::Asked { .. }) {
            return;
        }
        if self.stdout_closed && self.exit.is_some() {
            self.early_end();
        } else if self.stdout_closed || self.exit.is_some() {
            self.end_deadline.get_or_insert(now + END_GRACE);
        }
    }

    /// Ends the wait for an answer that nobody is left to give. How the process ended tells more
    /// than half a line does, so it is named first (seed 10).
    fn early_end(&mut self) {
        let how = match self.exit {
            Some(exit) => exit.to_string(),
            None => "closed stdout".to_owned(),
        };
        let rest = self.reader.rest();
        let inside = if rest.is_empty() {
            ""
        } else {
            let bytes = excerpt(rest);
            self.note(format!("last bytes without a line feed: `{bytes}`"));
            " inside a line,"
        };
        match self.state {
            State::Asked { hook, .. } => {
                self.fail(format!("{how}{inside} before it answered {hook}"));
            }
            _ => self.fail(format!("{how}{inside} before hello_ok")),
        }
    }

    /// Breaks the session over a violation; the bytes that did it are for the run log.
    fn break_off(&mut self, error: &ProtocolError) {
        if let Some(bytes) = error.offending() {
            self.note(format!("offending bytes: `{bytes}`"));
        }
        self.fail(format!("protocol violation: {}", error.violation()));
    }

    fn fail(&mut self, reason: String) {
        let failure = match self.state {
            State::Starting { .. } => Failure::Start(reason),
            _ => Failure::Broken(reason),
        };
        self.end_with(failure);
    }

    fn end_with(&mut self, failure: Failure) {
        self.transmit.clear();
        self.events.push_back(HostEvent::Failed(failure));
        self.state = State::Broken;
    }

    fn note(&mut self, text: String) {
        self.events.push_back(HostEvent::Note(text));
    }
}

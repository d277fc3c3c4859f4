//! The session as the host sees it: what to send, what may come back, and when it is over.
//!
//! ```text
//! awaiting initialized ─► executing ─► closing ─► finished
//!          │                  │           ▲
//!          │ cancel           │ cancel    │ terminal frame
//!          ▼                  ▼           │
//!       finished          draining ───────┘ (the outcome no longer counts)
//! ```
//!
//! A cancellation counts until the session is concluded, also over a result that came before it.
//! The one thing that it does not undo is an output limit that was exceeded while nobody had
//! cancelled. The session never kills anything; it says when its driver has to.

use std::collections::VecDeque;
use std::time::Instant;

use crate::SessionId;
use crate::capability::{Capabilities, Capability, InvalidCapabilities};
use crate::decode::{self, Envelope};
use crate::encode;
use crate::frame_reader::FrameReader;
use crate::host::{Conclusion, HostEvent, PluginExit};
use crate::limits::{CLOSE_WINDOW, DRAIN_WINDOW};
use crate::operation::Operation;
use crate::outcome::{FailureCategory, Outcome};
use crate::violation::{ProtocolError, Violation};

/// The host's side of one session with one plugin process.
///
/// Feed it with what the plugin writes ([`receive`](Self::receive), then
/// [`stdout_closed`](Self::stdout_closed)) and with its end ([`exited`](Self::exited)); write what
/// [`poll_transmit`](Self::poll_transmit) returns to the plugin's standard input; act on
/// [`poll_event`](Self::poll_event); call [`handle_timeout`](Self::handle_timeout) when
/// [`poll_timeout`](Self::poll_timeout) has passed; and take the verdict with
/// [`conclude`](Self::conclude) once the plugin and its descendants are gone.
///
/// When input and deadline are ready at once, give the input first: then a busy machine does not
/// fail a plugin that was in time.
#[derive(Debug)]
pub struct HostSession {
    id: SessionId,
    offer: Capabilities,
    operation: Operation,
    state: State,
    reader: FrameReader,
    transmit: VecDeque<Transmit>,
    events: VecDeque<HostEvent>,
    stdout_closed: bool,
    exit: Option<PluginExit>,
    /// Until when output may still come from a plugin that has exited.
    exit_deadline: Option<Instant>,
    cancelled: bool,
}

#[derive(Debug)]
enum State {
    AwaitingInitialized,
    Executing {
        selection: Capabilities,
        next_sequence: u32,
    },
    /// The terminal frame is here; end of output and exit are not both.
    Closing {
        terminal: Terminal,
        deadline: Instant,
    },
    /// Cancelled; whatever comes is read for its end only.
    Draining {
        deadline: Instant,
    },
    /// The plugin closed its output or exited too early; the other of the two explains it best.
    EndedEarly {
        missing: &'static str,
        deadline: Instant,
    },
    Finished(Result<Terminal, ProtocolError>),
}

#[derive(Debug, Clone)]
enum Terminal {
    Result(Outcome),
    Failure(FailureCategory),
}

/// What may be missing when a plugin ends too early.
const INITIALIZED: &str = "`initialized`";
const TERMINAL: &str = "its terminal frame";

#[derive(Debug)]
struct Transmit {
    is_execute: bool,
    bytes: Vec<u8>,
}

impl HostSession {
    /// Begins a session; `initialize` is ready to be sent.
    pub fn new(
        id: SessionId,
        operation: Operation,
        offer: &[Capability],
    ) -> Result<Self, InvalidCapabilities> {
        let offer = Capabilities::new(offer.iter().copied())?;
        if !offer.contains(operation.capability()) {
            return Err(InvalidCapabilities::OperationMissing(
                operation.capability(),
            ));
        }
        let bytes = encode::initialize(id, &offer);
        Ok(Self {
            id,
            offer,
            operation,
            state: State::AwaitingInitialized,
            reader: FrameReader::new(),
            transmit: VecDeque::from([Transmit {
                is_execute: false,
                bytes,
            }]),
            events: VecDeque::new(),
            stdout_closed: false,
            exit: None,
            exit_deadline: None,
            cancelled: false,
        })
    }

    /// Takes bytes of the plugin's standard output.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        if bytes.is_empty() || matches!(self.state, State::Finished(_)) {
            return;
        }
        self.reader.push(bytes);
        self.read_frames(now);
    }

    /// Notes that the plugin's standard output reached its end.
    pub fn stdout_closed(&mut self, now: Instant) {
        self.stdout_closed = true;
        if let Err(error) = self.reader.finish() {
            self.break_off(error);
        }
        self.judge_end(now);
    }

    /// Notes that the plugin process ended.
    pub fn exited(&mut self, now: Instant, exit: PluginExit) {
        self.exit = Some(exit);
        self.exit_deadline = Some(now + CLOSE_WINDOW);
        self.judge_end(now);
    }

    /// Cancels the session, because its time is up or nobody wants its outcome any more.
    ///
    /// Sends `cancel` once, if `execute` was sent and the plugin selected the capability; then the
    /// plugin has 250 ms. In every other state nothing is sent. Repeating it changes nothing.
    pub fn cancel(&mut self, now: Instant) {
        if self.cancelled {
            return;
        }
        self.cancelled = true;
        match &self.state {
            State::Executing { selection, .. } => {
                let unsent = self.transmit.iter().any(|frame| frame.is_execute);
                if unsent || !selection.contains(Capability::Cancel) {
                    self.transmit.clear();
                    self.finish(Err(ProtocolError::silent(Violation::Abandoned)));
                } else {
                    let bytes = encode::cancel(self.id);
                    self.transmit.push_back(Transmit {
                        is_execute: false,
                        bytes,
                    });
                    self.state = State::Draining {
                        deadline: now + DRAIN_WINDOW,
                    };
                }
            }
            State::AwaitingInitialized | State::EndedEarly { .. } => {
                self.transmit.clear();
                self.finish(Err(ProtocolError::silent(Violation::Abandoned)));
            }
            // A plugin that sent its terminal frame is left alone for what remains of its window.
            State::Closing { .. } | State::Draining { .. } | State::Finished(_) => {}
        }
    }

    /// Notes that the plugin wrote more than it may, standard error included.
    ///
    /// A cancellation that was there before wins; one that comes later does not.
    pub fn output_limit_exceeded(&mut self) {
        if !self.cancelled {
            self.break_off(ProtocolError::silent(Violation::OutputLimit));
        }
    }

    /// Returns bytes for the plugin's standard input, in order, one frame at a time.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front().map(|frame| frame.bytes)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due, if anything is waited for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closing { deadline, .. }
            | State::Draining { deadline }
            | State::EndedEarly { deadline, .. } => Some(deadline),
            State::AwaitingInitialized | State::Executing { .. } => self.exit_deadline,
            State::Finished(_) => None,
        }
    }

    /// Ends whatever has waited until `now` in vain; does nothing before the deadline.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|deadline| now < deadline) {
            return;
        }
        let close = if self.stdout_closed {
            "exit"
        } else {
            "close its output"
        };
        let violation = match &self.state {
            State::AwaitingInitialized => self.early_end(INITIALIZED),
            State::Executing { .. } => self.early_end(TERMINAL),
            State::EndedEarly { missing, .. } => self.early_end(missing),
            State::Draining { .. } => Violation::CloseTimeout {
                missing: close,
                since: "`cancel`",
            },
            State::Closing { .. } => Violation::CloseTimeout {
                missing: close,
                since: TERMINAL,
            },
            State::Finished(_) => return,
        };
        self.break_off(ProtocolError::silent(violation));
    }

    /// Tells whether nothing more is expected from the plugin.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// Gives the verdict. Call it last: a cancellation counts until here.
    pub fn conclude(self) -> Conclusion {
        let verdict = match self.state {
            State::Finished(verdict) => verdict,
            _ => Err(ProtocolError::silent(Violation::Abandoned)),
        };
        match verdict {
            Err(error) if *error.violation() == Violation::OutputLimit => Conclusion::Broken(error),
            _ if self.cancelled => Conclusion::Cancelled,
            Ok(Terminal::Result(outcome)) => Conclusion::Completed(outcome),
            Ok(Terminal::Failure(category)) => Conclusion::Reported(category),
            Err(error) => Conclusion::Broken(error),
        }
    }

    fn read_frames(&mut self, now: Instant) {
        loop {
            if let State::Closing { .. } = self.state {
                let rest = self.reader.rest();
                if !rest.is_empty() {
                    let violation = Violation::TrailingBytes("the terminal frame");
                    self.break_off(ProtocolError::in_line(violation, rest));
                }
                return;
            }
            if matches!(self.state, State::Finished(_) | State::EndedEarly { .. }) {
                return;
            }
            let frame = match self.reader.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => return self.break_off(error),
            };
            if let Err(violation) = self.read_frame(now, &frame) {
                return self.break_off(ProtocolError::in_line(violation, &frame));
            }
        }
    }

    fn read_frame(&mut self, now: Instant, line: &[u8]) -> Result<(), Violation> {
        let envelope = Envelope::open_for(self.id, line)?;
        let operation = self.operation.capability();
        match &mut self.state {
            State::AwaitingInitialized => {
                if envelope.kind != "initialized" {
                    return Err(envelope.unexpected("`initialized`"));
                }
                let selection = decode::initialized(envelope.body, &self.offer, operation)?;
                let bytes = encode::execute(self.id, &self.operation);
                self.transmit.push_back(Transmit {
                    is_execute: true,
                    bytes,
                });
                self.events
                    .push_back(HostEvent::Initialized(selection.clone()));
                self.state = State::Executing {
                    selection,
                    next_sequence: 1,
                };
            }
            State::Executing {
                selection,
                next_sequence,
            } => match envelope.kind.as_str() {
                // An answer to a question that is still in the queue is no answer.
                _ if self.transmit.iter().any(|frame| frame.is_execute) => {
                    return Err(envelope.unexpected("nothing before `execute`"));
                }
                "progress" => {
                    if !selection.contains(Capability::Progress) {
                        return Err(Violation::NotNegotiated {
                            what: "progress",
                            capability: Capability::Progress,
                        });
                    }
                    let progress = decode::progress(envelope.body, *next_sequence)?;
                    *next_sequence += 1;
                    self.events.push_back(HostEvent::Progress(progress));
                }
                "result" => {
                    let outcome = decode::result(envelope.body, operation, selection)?;
                    self.close(now, Terminal::Result(outcome));
                }
                "failure" => {
                    let category = decode::failure(envelope.body)?;
                    self.close(now, Terminal::Failure(category));
                }
                _ => return Err(envelope.unexpected("`progress`, `result` or `failure`")),
            },
            State::Draining { deadline } => {
                if matches!(envelope.kind.as_str(), "result" | "failure") {
                    // What it says no longer counts, so it is not read; the window stays.
                    let terminal = Terminal::Failure(FailureCategory::Cancelled);
                    self.state = State::Closing {
                        terminal,
                        deadline: *deadline,
                    };
                    self.events.push_back(HostEvent::CloseStdin);
                    self.judge_end(now);
                }
            }
            State::Closing { .. } | State::EndedEarly { .. } | State::Finished(_) => {}
        }
        Ok(())
    }

    fn close(&mut self, now: Instant, terminal: Terminal) {
        self.state = State::Closing {
            terminal,
            deadline: now + CLOSE_WINDOW,
        };
        self.events.push_back(HostEvent::CloseStdin);
        self.judge_end(now);
    }

    /// Looks at end of output and exit, in whichever order they came.
    fn judge_end(&mut self, now: Instant) {
        let missing = match &self.state {
            State::AwaitingInitialized => INITIALIZED,
            State::Executing { .. } => TERMINAL,
            State::EndedEarly { missing, .. } => *missing,
            State::Draining { .. } => {
                if self.ended() {
                    self.finish(Err(ProtocolError::silent(Violation::Abandoned)));
                }
                return;
            }
            State::Closing { terminal, .. } => {
                match self.exit {
                    Some(exit) if exit != PluginExit::Success => {
                        self.break_off(ProtocolError::silent(Violation::UncleanExit(exit)));
                    }
                    Some(_) if self.stdout_closed => {
                        let terminal = terminal.clone();
                        self.finish(Ok(terminal));
                    }
                    _ => {}
                }
                return;
            }
            State::Finished(_) => return,
        };
        if self.ended() {
            let violation = self.early_end(missing);
            self.break_off(ProtocolError::silent(violation));
        } else if !matches!(self.state, State::EndedEarly { .. }) && self.stdout_closed {
            self.state = State::EndedEarly {
                missing,
                deadline: now + CLOSE_WINDOW,
            };
        }
    }

    fn early_end(&self, missing: &'static str) -> Violation {
        match self.exit {
            Some(exit) => Violation::EarlyExit { exit, missing },
            None => Violation::EarlyEnd {
                who: "the plugin",
                missing,
            },
        }
    }

    fn ended(&self) -> bool {
        self.stdout_closed && self.exit.is_some()
    }

    fn break_off(&mut self, error: ProtocolError) {
        // The first violation is the one worth knowing.
        if !self.is_finished() {
            self.finish(Err(error));
        }
    }

    fn finish(&mut self, verdict: Result<Terminal, ProtocolError>) {
        self.state = State::Finished(verdict);
        self.events.push_back(HostEvent::Finished {
            kill: !self.ended(),
        });
    }
}

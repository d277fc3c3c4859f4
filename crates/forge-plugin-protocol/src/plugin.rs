//! The session as a plugin sees it: one `initialize`, one `execute`, perhaps one `cancel`, and an
//! end of input. It sends nothing that its host would refuse.
//!
//! ```text
//! awaiting initialize ─► awaiting execute ─► executing ─► ended
//! ```
//!
//! The session never decides how a failed operation is reported; that is the caller's.

use std::collections::VecDeque;

use crate::capability::{Capabilities, Capability, InvalidCapabilities};
use crate::decode::{self, Envelope};
use crate::encode;
use crate::frame_reader::FrameReader;
use crate::limits::PROGRESS_FRAMES;
use crate::operation::Operation;
use crate::outcome::{FailureCategory, Outcome};
use crate::progress::{Progress, Stage};
use crate::violation::{ProtocolError, Violation};
use crate::{ProgressText, SessionId};

/// The plugin's side of a session.
///
/// Feed it with standard input, write what [`poll_transmit`](Self::poll_transmit) returns to
/// standard output, and act on [`poll_event`](Self::poll_event). After an error write what is
/// still to be transmitted, then exit with code 2 and without a `failure` frame.
#[derive(Debug)]
pub struct PluginSession {
    supported: Capabilities,
    state: State,
    reader: FrameReader,
    transmit: VecDeque<Vec<u8>>,
    events: VecDeque<PluginEvent>,
}

/// What the host wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginEvent {
    /// Begin with the operation.
    Execute(Operation),
    /// Stop, and end with a `failure` of category `cancelled` or with a result under way.
    Cancel,
    /// The host closed its end; no `cancel` can come any more.
    InputClosed,
}

#[derive(Debug)]
enum State {
    AwaitingInitialize,
    AwaitingExecute(Session),
    Executing(Run),
    Ended(Run),
    Broken(ProtocolError),
}

#[derive(Debug, Clone)]
struct Session {
    id: SessionId,
    selection: Capabilities,
}

#[derive(Debug, Clone)]
struct Run {
    session: Session,
    operation: Capability,
    progress_sent: u32,
    cancel_seen: bool,
}

impl PluginSession {
    /// Begins a session of a plugin with these capabilities, in the order in which it names them.
    pub fn new(supported: &[Capability]) -> Result<Self, InvalidCapabilities> {
        Ok(Self {
            supported: Capabilities::new(supported.iter().copied())?,
            state: State::AwaitingInitialize,
            reader: FrameReader::new(),
            transmit: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Takes bytes of standard input. The first error stays: the session is over.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if let State::Broken(error) = &self.state {
            return Err(error.clone());
        }
        self.reader.push(bytes);
        let result = self.read_frames();
        self.keep_error(result)
    }

    /// Notes the end of standard input, which may come only after `execute`.
    pub fn input_closed(&mut self) -> Result<(), ProtocolError> {
        let early = |missing| {
            ProtocolError::silent(Violation::EarlyEnd {
                who: "the host",
                missing,
            })
        };
        let result = match &self.state {
            State::Broken(error) => Err(error.clone()),
            state => self.reader.finish().and_then(|()| match state {
                State::AwaitingInitialize => Err(early("`initialize`")),
                State::AwaitingExecute(_) => Err(early("`execute`")),
                State::Executing(_) | State::Ended(_) | State::Broken(_) => Ok(()),
            }),
        };
        if result.is_ok() {
            self.events.push_back(PluginEvent::InputClosed);
        }
        self.keep_error(result)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<PluginEvent> {
        self.events.pop_front()
    }

    /// Returns bytes for standard output, in order, one frame at a time.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// Returns what was selected, once `initialize` is answered.
    pub fn selection(&self) -> Option<&Capabilities> {
        match &self.state {
            State::AwaitingExecute(session) => Some(&session.selection),
            State::Executing(run) | State::Ended(run) => Some(&run.session.selection),
            State::AwaitingInitialize | State::Broken(_) => None,
        }
    }

    /// Sends a progress frame with the next number.
    pub fn progress(&mut self, stage: Stage, text: ProgressText) -> Result<(), SendError> {
        let run = self.run()?;
        negotiated(run, "progress", Capability::Progress)?;
        if run.progress_sent == PROGRESS_FRAMES {
            return Err(SendError::TooManyProgressFrames);
        }
        run.progress_sent += 1;
        let progress = Progress {
            sequence: run.progress_sent,
            stage,
            text,
        };
        let frame = encode::progress(run.session.id, &progress);
        self.transmit.push_back(frame);
        Ok(())
    }

    /// Sends the result; nothing can be sent after it.
    pub fn succeed(&mut self, outcome: &Outcome) -> Result<(), SendError> {
        let run = self.run()?;
        if outcome.operation() != run.operation {
            return Err(SendError::OtherOperation(run.operation));
        }
        if let Outcome::Workspace { subject, report } = outcome {
            if subject.is_some() {
                negotiated(run, "commit_subject", Capability::CommitSubject)?;
            }
            if report.is_some() {
                negotiated(run, "summary", Capability::AgentReport)?;
            }
        }
        let frame = encode::result(run.session.id, outcome);
        self.end(frame);
        Ok(())
    }

    /// Sends a failure; nothing can be sent after it.
    pub fn fail(&mut self, category: FailureCategory) -> Result<(), SendError> {
        let frame = encode::failure(self.run()?.session.id, category);
        self.end(frame);
        Ok(())
    }

    fn read_frames(&mut self) -> Result<(), ProtocolError> {
        while let Some(frame) = self.reader.next_frame()? {
            self.read_frame(&frame)
                .map_err(|violation| ProtocolError::in_line(violation, &frame))?;
        }
        Ok(())
    }

    fn read_frame(&mut self, line: &[u8]) -> Result<(), Violation> {
        match &mut self.state {
            State::AwaitingInitialize => {
                let envelope = Envelope::open(line)?;
                if envelope.kind != "initialize" {
                    return Err(envelope.unexpected("`initialize`"));
                }
                let offer = decode::initialize(envelope.body)?;
                let selection = self.supported.selected_from(&offer).map_err(|error| {
                    Violation::Capabilities {
                        kind: "initialize",
                        error,
                    }
                })?;
                let session = Session {
                    id: envelope.id,
                    selection,
                };
                self.transmit
                    .push_back(encode::initialized(session.id, &session.selection));
                self.state = State::AwaitingExecute(session);
            }
            State::AwaitingExecute(session) => {
                let envelope = Envelope::open_for(session.id, line)?;
                if envelope.kind != "execute" {
                    return Err(envelope.unexpected("`execute`"));
                }
                let operation = decode::execute(envelope.body, &session.selection)?;
                self.state = State::Executing(Run {
                    session: session.clone(),
                    operation: operation.capability(),
                    progress_sent: 0,
                    cancel_seen: false,
                });
                self.events.push_back(PluginEvent::Execute(operation));
            }
            State::Executing(run) => {
                read_cancel(run, line)?;
                self.events.push_back(PluginEvent::Cancel);
            }
            // The host may have cancelled before it saw the terminal frame.
            State::Ended(run) => read_cancel(run, line)?,
            State::Broken(_) => {}
        }
        Ok(())
    }

    fn run(&mut self) -> Result<&mut Run, SendError> {
        match &mut self.state {
            State::Executing(run) => Ok(run),
            State::Ended(_) => Err(SendError::Ended),
            State::AwaitingInitialize | State::AwaitingExecute(_) | State::Broken(_) => {
                Err(SendError::NotExecuting)
            }
        }
    }

    fn end(&mut self, frame: Vec<u8>) {
        if let State::Executing(run) = &self.state {
            self.state = State::Ended(run.clone());
            self.transmit.push_back(frame);
        }
    }

    fn keep_error(&mut self, result: Result<(), ProtocolError>) -> Result<(), ProtocolError> {
        if let Err(error) = &result {
            self.state = State::Broken(error.clone());
        }
        result
    }
}

/// Says why a plugin cannot send what it wanted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The frame or field needs a capability that was not selected.
    #[error("`{what}` needs the capability `{capability}`, which the host did not offer")]
    NotNegotiated {
        /// The frame type or field.
        what: &'static str,
        /// The capability.
        capability: Capability,
    },
    /// All 128 progress frames are sent.
    #[error("more than 128 progress frames")]
    TooManyProgressFrames,
    /// The outcome belongs to another operation.
    #[error("the operation is `{0}`, and the outcome is not one of it")]
    OtherOperation(Capability),
    /// There is no operation, or the session is broken.
    #[error("no operation is running")]
    NotExecuting,
    /// The terminal frame is sent.
    #[error("the operation has ended")]
    Ended,
}

/// Reads a line that can only be the one `cancel`.
fn read_cancel(run: &mut Run, line: &[u8]) -> Result<(), Violation> {
    let envelope = Envelope::open_for(run.session.id, line)?;
    if envelope.kind != "cancel" {
        return Err(envelope.unexpected("`cancel` or the end of input"));
    }
    if !run.session.selection.contains(Capability::Cancel) {
        return Err(Violation::NotNegotiated {
            what: "cancel",
            capability: Capability::Cancel,
        });
    }
    decode::cancel(envelope.body)?;
    if run.cancel_seen {
        return Err(Violation::TrailingBytes("`cancel`"));
    }
    run.cancel_seen = true;
    Ok(())
}

fn negotiated(run: &Run, what: &'static str, capability: Capability) -> Result<(), SendError> {
    if run.session.selection.contains(capability) {
        Ok(())
    } else {
        Err(SendError::NotNegotiated { what, capability })
    }
}

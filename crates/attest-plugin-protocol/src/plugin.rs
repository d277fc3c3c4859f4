//! The session as the plugin sees it.

use std::collections::VecDeque;

use strict_json::Json;

use crate::announcement::Announcement;
use crate::decode::{self, Envelope};
use crate::encode;
use crate::hook::Hook;
use crate::limits::{FINDINGS, MESSAGE_BYTES, VERSION_BYTES};
use crate::line_reader::LineReader;
use crate::payload::Payload;
use crate::verdict::Verdict;
use crate::violation::{ProtocolError, Violation};

/// What the core wants from a plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum PluginEvent {
    /// The core is there; answer with [`PluginSession::accept`].
    Hello {
        /// The core's version.
        attest_version: String,
        /// The majors that it speaks.
        protocols: Vec<u64>,
    },
    /// A request; answer with [`PluginSession::verdict`].
    Request {
        /// Its id.
        id: u64,
        /// What it is about.
        payload: Payload,
    },
    /// A request at a hook that the plugin announced and this crate does not know; answer with
    /// [`PluginSession::verdict`].
    OtherRequest {
        /// Its id.
        id: u64,
        /// The hook.
        hook: String,
        /// What it is about.
        payload: Json,
    },
    /// A message of a kind that the plugin did not announce. It wants no answer: a receiver may
    /// ignore it (seed 11).
    Unknown {
        /// Its id, if it has one.
        id: Option<u64>,
        /// Its kind.
        kind: String,
    },
    /// The core wants no more: flush, close stdout, exit 0. A request that is still open needs no
    /// answer, and one that was not polled yet is dropped.
    Shutdown,
}

/// What a plugin may not send. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is nothing that this would answer.
    #[error("no message waits for this answer")]
    NotAsked,
    /// The core does not speak the selected major.
    #[error("the core does not offer the selected protocol version")]
    NotOffered,
    /// The version of the plugin is too long.
    #[error("a version has at most 256 bytes")]
    Version,
    /// Too many findings.
    #[error("a verdict has at most 256 findings")]
    TooManyFindings,
    /// The message would exceed 1 MiB.
    #[error("the message is longer than 1048576 bytes")]
    TooLarge,
}

/// The plugin's side of one session.
///
/// Feed it with what comes on stdin ([`receive`](Self::receive)), act on
/// [`poll_event`](Self::poll_event), and write what [`poll_transmit`](Self::poll_transmit) returns
/// to stdout, flushing after each message. [`serve`](crate::serve) does all of it.
#[derive(Debug, Default)]
pub struct PluginSession {
    state: State,
    last_id: u64,
    protocols: Vec<u64>,
    hooks: Vec<String>,
    reader: LineReader,
    transmit: VecDeque<Vec<u8>>,
    events: VecDeque<PluginEvent>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum State {
    #[default]
    AwaitingHello,
    Greeted,
    Idle,
    Asked {
        id: u64,
    },
    Over,
    Broken(ProtocolError),
}

impl PluginSession {
    /// Begins a session.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes of the standard input. What comes after `shutdown` is not read.
    ///
    /// # Errors
    /// The first rule that the core broke, again and again: the session is over.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        match &self.state {
            State::Broken(error) => return Err(error.clone()),
            State::Over => return Ok(()),
            _ => self.reader.push(bytes),
        }
        while self.state != State::Over {
            let result = match self.reader.next_line() {
                Ok(None) => break,
                Ok(Some(line)) => self
                    .read_line(&line)
                    .map_err(|violation| ProtocolError::in_line(violation, &line)),
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.state = State::Broken(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Notes the end of the standard input.
    ///
    /// # Errors
    /// The core left without `shutdown`, or inside of a message.
    pub fn input_closed(&mut self) -> Result<(), ProtocolError> {
        match &self.state {
            State::Broken(error) => return Err(error.clone()),
            State::Over => return Ok(()),
            _ => {}
        }
        let unfinished = self.reader.finish().err();
        let error = unfinished.unwrap_or_else(|| ProtocolError::silent(Violation::EarlyEnd));
        self.state = State::Broken(error.clone());
        Err(error)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<PluginEvent> {
        self.events.pop_front()
    }

    /// Returns bytes for the standard output, one message at a time.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// Answers `hello`.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn accept(&mut self, announcement: Announcement) -> Result<(), SendError> {
        if self.state != State::Greeted {
            return Err(SendError::NotAsked);
        }
        if !self.protocols.contains(&u64::from(announcement.protocol)) {
            return Err(SendError::NotOffered);
        }
        if announcement.version.len() > VERSION_BYTES {
            return Err(SendError::Version);
        }
        self.send(encode::hello_ok(self.last_id, &announcement))?;
        self.hooks = announcement.hooks;
        Ok(())
    }

    /// Answers the open request.
    ///
    /// # Errors
    /// Nothing was sent; the request is still open.
    pub fn verdict(&mut self, id: u64, verdict: &Verdict) -> Result<(), SendError> {
        if self.state != (State::Asked { id }) {
            return Err(SendError::NotAsked);
        }
        if verdict.findings.len() > FINDINGS {
            return Err(SendError::TooManyFindings);
        }
        self.send(encode::verdict(id, verdict))
    }

    fn send(&mut self, line: Vec<u8>) -> Result<(), SendError> {
        // The line feed does not count.
        if line.len() > MESSAGE_BYTES + 1 {
            return Err(SendError::TooLarge);
        }
        self.transmit.push_back(line);
        self.state = State::Idle;
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), Violation> {
        let mut envelope = Envelope::open(line)?;
        if self.state == State::AwaitingHello {
            envelope.answers(1, "hello")?;
            self.last_id = 1;
            let (attest_version, protocols) = decode::hello(envelope.body)?;
            self.protocols.clone_from(&protocols);
            self.state = State::Greeted;
            self.events.push_back(PluginEvent::Hello {
                attest_version,
                protocols,
            });
            return Ok(());
        }
        let hook = envelope.kind.parse::<Hook>().ok();
        let announced = self.hooks.contains(&envelope.kind);
        match (envelope.kind.as_str(), hook) {
            ("shutdown", _) => {
                self.rising_id(&mut envelope)?;
                envelope.body.end_ignoring_unknown();
                self.state = State::Over;
                // Nobody waits for an answer to what came before.
                self.events.clear();
                self.events.push_back(PluginEvent::Shutdown);
            }
            ("hello" | "hello_ok" | "verdict", _) => {
                return Err(envelope.unexpected("a request or `shutdown`"));
            }
            _ if announced => self.read_request(envelope, hook)?,
            (_, Some(_)) => return Err(Violation::NotAnnounced(envelope.kind)),
            (_, None) => {
                let id = if envelope.body.contains("id") {
                    Some(self.rising_id(&mut envelope)?)
                } else {
                    None
                };
                envelope.body.end_ignoring_unknown();
                self.events.push_back(PluginEvent::Unknown {
                    id,
                    kind: envelope.kind,
                });
            }
        }
        Ok(())
    }

    fn read_request(
        &mut self,
        mut envelope: Envelope,
        hook: Option<Hook>,
    ) -> Result<(), Violation> {
        if self.state != State::Idle {
            return Err(envelope.unexpected("nothing before the last message is answered"));
        }
        let id = self.rising_id(&mut envelope)?;
        let event = match hook {
            Some(hook) => PluginEvent::Request {
                id,
                payload: decode::payload(hook, envelope.body)?,
            },
            None => {
                let payload = envelope.body.value("payload")?;
                envelope.body.end_ignoring_unknown();
                PluginEvent::OtherRequest {
                    id,
                    hook: envelope.kind,
                    payload,
                }
            }
        };
        self.events.push_back(event);
        self.state = State::Asked { id };
        Ok(())
    }

    /// Takes the id, which is greater than every one before (seed 6).
    fn rising_id(&mut self, envelope: &mut Envelope) -> Result<u64, Violation> {
        let id = envelope.id()?;
        if id <= self.last_id {
            let expected = format!("greater than {}", self.last_id);
            return Err(Violation::Id { expected });
        }
        self.last_id = id;
        Ok(id)
    }
}

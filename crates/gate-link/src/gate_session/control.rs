//! What job control adds to the Gate's end.

use forge_domain::{ActivityTrack, CancelReason, NotAccepting};

use super::{GateSession, Request, State};
use crate::error::LinkError;
use crate::message::{Attach, Attached, Cancel, Decline, GateMessage, LeaseKey, Readiness};

/// What job control adds to a conversation.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// The number of the last ping.
    pub(super) pinged: u64,
    /// The number of the last pong.
    pub(super) ponged: u64,
    /// The Worker has said something, so an attach comes too late.
    pub(super) spoken: bool,
    /// Why the slot takes no lease.
    pub(super) refuses: Option<NotAccepting>,
    /// The Worker refused leases before it could know of the one that it has now.
    pub(super) crossed: bool,
    /// The Worker has said nothing about the attempt that it has now.
    pub(super) fresh: bool,
}

impl GateSession {
    /// Whether the Worker offers job control.
    #[must_use]
    pub const fn controls(&self) -> bool {
        self.control.is_some()
    }

    /// Whether the Worker has answered a ping, and so said all that comes before its first lease.
    const fn is_greeted(&self) -> bool {
        match &self.control {
            Some(control) => control.ponged > 0,
            None => true,
        }
    }

    /// Whether a lease may follow the acknowledgement of a result at once.
    #[must_use]
    pub const fn takes_next(&self) -> bool {
        self.is_greeted() && self.refuses().is_none()
    }

    /// Whether the Worker was told to stop an attempt, and has not said that it has.
    #[must_use]
    pub const fn is_cancelling(&self) -> bool {
        matches!(self.state, State::Cancelling(_))
    }

    /// The state of a slot whose attempt has just ended.
    pub(super) const fn rest(&self) -> State {
        if self.is_greeted() {
            State::Idle
        } else {
            State::Greeting
        }
    }

    /// Why the slot takes no lease, as its Worker last said.
    #[must_use]
    pub const fn refuses(&self) -> Option<NotAccepting> {
        match &self.control {
            Some(control) => control.refuses,
            None => None,
        }
    }

    /// Whether a ping may be sent.
    #[must_use]
    pub const fn takes_ping(&self) -> bool {
        self.is_greeted() && self.controls() && !matches!(self.state, State::Closed)
    }

    /// How many pings have no pong yet.
    #[must_use]
    pub const fn unanswered(&self) -> u64 {
        match &self.control {
            Some(control) => control.pinged.saturating_sub(control.ponged),
            None => 0,
        }
    }

    /// The next ping. The first one is the first message of the conversation, and the next has to
    /// wait for its pong: that one says that all has been said that comes before a lease.
    pub fn ping(&mut self) -> Result<Vec<u8>, LinkError> {
        const KIND: &str = "ping";
        let greeted = self.is_greeted();
        let control = self.controlled(KIND)?;
        if !greeted && control.pinged > 0 {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the first one is not answered",
            });
        }
        control.pinged = control.pinged.saturating_add(1);
        GateMessage::Ping(control.pinged).encode()
    }

    /// Lets the attempt of an attach go on here; `deadline_ms` is how much longer its lease
    /// holds, 0 for one that has ended with a result.
    pub fn attached(&mut self, deadline_ms: u64) -> Result<Vec<u8>, LinkError> {
        let key = self.attaching("attached")?;
        self.stages = self.offered.map(|_| ActivityTrack::resumed());
        self.state = State::Leased(key.clone());
        GateMessage::Attached(Attached {
            lease: key,
            deadline_ms,
        })
        .encode()
    }

    /// Says that the attempt of an attach is none any more. The pong that follows says that nothing
    /// of it runs.
    pub fn lost(&mut self) -> Result<Vec<u8>, LinkError> {
        let key = self.attaching("lost")?;
        self.state = self.rest();
        GateMessage::Lost(key).encode()
    }

    /// Tells the Worker to stop its attempt; the slot is idle once it says that it has. Nothing
    /// that it still says about the attempt counts, what waits for its answer included.
    pub fn cancel(&mut self, reason: CancelReason) -> Result<Vec<u8>, LinkError> {
        if self.control.is_none() {
            return Err(LinkError::NotNegotiated("cancel"));
        }
        let (State::Leased(key) | State::Binding(key) | State::Completing(key)) = &self.state
        else {
            return Err(LinkError::OutOfPlace {
                kind: "cancel",
                reason: "no attempt runs",
            });
        };
        let key = key.clone();
        self.stages = None;
        self.state = State::Cancelling(key.clone());
        GateMessage::Cancel(Cancel { lease: key, reason }).encode()
    }

    pub(super) fn attach(&mut self, attach: Attach, first: bool) -> Result<Request, LinkError> {
        const KIND: &str = "attach";
        self.controlled(KIND)?;
        if !first || !matches!(self.state, State::Greeting) {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "it is not the first message of the connection",
            });
        }
        self.state = State::Attaching(attach.lease.clone());
        Ok(Request::Attach(attach))
    }

    pub(super) fn ready(&mut self, readiness: Readiness) -> Result<Request, LinkError> {
        const KIND: &str = "ready";
        let idle = matches!(self.state, State::Greeting | State::Idle);
        // The Worker was idle when it said so, and the lease was under way.
        let crossing = matches!(self.state, State::Leased(_) | State::Cancelling(_));
        let control = self.controlled(KIND)?;
        let crossing = crossing && control.fresh;
        if !idle && !crossing {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the slot is not idle",
            });
        }
        control.refuses = match readiness {
            Readiness::Accepts => None,
            Readiness::Refuses(reason) => Some(reason),
        };
        control.crossed |= crossing && control.refuses.is_some();
        Ok(Request::Ready(readiness))
    }

    pub(super) fn decline(&mut self, decline: Decline) -> Result<Request, LinkError> {
        const KIND: &str = "decline";
        let control = self.controlled(KIND)?;
        if !control.crossed || !control.fresh {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the slot took leases when this one was sent, or has begun it",
            });
        }
        if self.crosses_cancel(&decline.lease) {
            self.ended(&decline.lease);
            return Ok(Request::Stopped(decline.lease));
        }
        let key = self.running(KIND, &decline.lease)?;
        self.ended(&key);
        Ok(Request::Decline(decline))
    }

    pub(super) fn stopped(&mut self, key: &LeaseKey) -> Result<Request, LinkError> {
        const KIND: &str = "cancelled";
        self.controlled(KIND)?;
        let State::Cancelling(cancelled) = &self.state else {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "nothing was cancelled",
            });
        };
        if let Some(what) = cancelled.difference(key) {
            return Err(LinkError::WrongTarget { kind: KIND, what });
        }
        self.ended(key);
        Ok(Request::Stopped(key.clone()))
    }

    pub(super) fn pong(&mut self, n: u64) -> Result<Request, LinkError> {
        const KIND: &str = "pong";
        let waits = matches!(self.state, State::Attaching(_));
        let control = self.controlled(KIND)?;
        if waits {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the attach is not answered",
            });
        }
        if n <= control.ponged || n > control.pinged {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "it answers no ping",
            });
        }
        control.ponged = n;
        if matches!(self.state, State::Greeting) {
            self.state = State::Idle;
        }
        Ok(Request::Pong)
    }

    /// Refuses what job control brings from a Worker that did not offer it.
    fn controlled(&mut self, kind: &'static str) -> Result<&mut Control, LinkError> {
        if matches!(self.state, State::Closed) {
            return Err(LinkError::OutOfPlace {
                kind,
                reason: "the connection is refused",
            });
        }
        self.control.as_mut().ok_or(LinkError::NotNegotiated(kind))
    }

    fn attaching(&self, kind: &'static str) -> Result<LeaseKey, LinkError> {
        match &self.state {
            State::Attaching(key) => Ok(key.clone()),
            _ => Err(LinkError::OutOfPlace {
                kind,
                reason: "nothing waits for it",
            }),
        }
    }

    pub(super) fn crosses_cancel(&self, named: &LeaseKey) -> bool {
        matches!(&self.state, State::Cancelling(key) if key == named)
    }

    pub(super) fn ended(&mut self, key: &LeaseKey) {
        self.finished = Some(key.clone());
        self.stages = None;
        self.state = self.rest();
    }
}

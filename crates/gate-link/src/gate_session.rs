//! The Gate's end of one connection. It decides whether a message has a place
//! here and names what must be stored for it; it never stores. So every refusal
//! of this machine comes before any change.
//!
//! The driver calls [`GateSession::receive`], does what the [`Request`] says and
//! sends what [`GateSession::acknowledge`] returns; on any error it sends
//! [`GateSession::refuse`] and drops the connection.
//!
//! Where the Worker offers job control, the conversation begins with a ping, and
//! no lease comes before its pong: so an attach or a `ready` is heard before the
//! slot is given anything.

use forge_domain::{ActivityTrack, CancelReason, NotAccepting, WorkerId};

use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Attach, Attached, Cancel, Decline, Evidence, GateMessage, Heartbeat,
    JobResult, Lease, LeaseKey, Readiness, WorkerMessage,
};
use crate::query::ConnectQuery;

/// One slot's conversation as the Gate sees it.
#[derive(Debug)]
pub struct GateSession {
    worker_id: WorkerId,
    offered: Option<ActivityVersion>,
    state: State,
    /// The stages of the running attempt, if its lease selected live activity.
    stages: Option<ActivityTrack>,
    /// The attempt that ended last. A heartbeat of it may have been under way
    /// when its result was acknowledged, and the next lease follows that at
    /// once, so it may arrive while the next attempt runs.
    finished: Option<LeaseKey>,
    /// What is known through job control, if the Worker offers it.
    control: Option<Control>,
}

/// What job control adds to a conversation.
#[derive(Debug, Default)]
struct Control {
    /// The number of the last ping.
    pinged: u64,
    /// The number of the last pong.
    ponged: u64,
    /// The Worker has said something, so an attach comes too late.
    spoken: bool,
    /// Why the slot takes no lease.
    refuses: Option<NotAccepting>,
    /// The Worker refused leases before it could know of the one that it has now.
    crossed: bool,
    /// The Worker has said nothing about the attempt that it has now.
    fresh: bool,
}

#[derive(Debug)]
enum State {
    /// The Worker has not answered the first ping.
    Greeting,
    /// No attempt runs.
    Idle,
    /// An attach waits to be judged.
    Attaching(LeaseKey),
    /// An attempt runs.
    Leased(LeaseKey),
    /// The Worker was told to stop the attempt, and has not said that it has.
    Cancelling(LeaseKey),
    /// Evidence waits to be stored.
    Binding(LeaseKey),
    /// The result waits to be stored.
    Completing(LeaseKey),
    /// Refused: nothing has a place any more.
    Closed,
}

/// What the Gate has to do for a message.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Extend the lease. No reply.
    Heartbeat(LeaseKey),
    /// Nothing: the attempt has just ended.
    LateHeartbeat,
    /// Show the stage for as long as the attempt runs. No reply, nothing to store.
    Activity(LeaseKey, forge_domain::Activity),
    /// Store the records, then acknowledge.
    Evidence(Evidence),
    /// Store the end of the attempt, then acknowledge.
    Result(JobResult),
    /// Judge the claim, then say [`GateSession::attached`] or [`GateSession::lost`].
    Attach(Attach),
    /// Know that the slot takes leases, or why not. No reply.
    Ready(Readiness),
    /// Take the lease back. No reply; the slot is idle.
    Decline(Decline),
    /// Know that nothing of a cancelled attempt runs any more. No reply; the slot is idle.
    Stopped(LeaseKey),
    /// Nothing: it was under way when the attempt was cancelled.
    Crossed,
    /// Nothing more: the answer to a ping.
    Pong,
}

impl GateSession {
    /// The conversation that follows a connect with this query, before its first lease.
    #[must_use]
    pub fn new(query: &ConnectQuery) -> Self {
        Self {
            worker_id: query.slot.worker().clone(),
            offered: query.activity_version,
            state: match query.control_version {
                Some(_) => State::Greeting,
                None => State::Idle,
            },
            stages: None,
            finished: None,
            control: query.control_version.map(|_| Control::default()),
        }
    }

    /// Whether a lease may be sent now: no attempt runs, and the slot takes leases.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && self.refuses().is_none()
    }

    /// Whether the Worker offers job control.
    #[must_use]
    pub const fn controls(&self) -> bool {
        self.control.is_some()
    }

    /// Why the slot takes no lease, as its Worker last said.
    #[must_use]
    pub const fn refuses(&self) -> Option<NotAccepting> {
        match &self.control {
            Some(control) => control.refuses,
            None => None,
        }
    }

    /// How many pings have no pong yet.
    #[must_use]
    pub const fn unanswered(&self) -> u64 {
        match &self.control {
            Some(control) => control.pinged.saturating_sub(control.ponged),
            None => 0,
        }
    }

    /// The next ping. The first one is the first message of the conversation.
    pub fn ping(&mut self) -> Result<Vec<u8>, LinkError> {
        let control = self
            .control
            .as_mut()
            .ok_or(LinkError::NotNegotiated("ping"))?;
        control.pinged = control.pinged.saturating_add(1);
        GateMessage::Ping(control.pinged).encode()
    }

    /// The version of live activity that a lease may select: the one that was offered.
    #[must_use]
    pub const fn offered_activity(&self) -> Option<ActivityVersion> {
        self.offered
    }

    /// The attempt that the slot holds.
    #[must_use]
    pub const fn current(&self) -> Option<&LeaseKey> {
        match &self.state {
            State::Leased(key)
            | State::Cancelling(key)
            | State::Binding(key)
            | State::Completing(key) => Some(key),
            State::Greeting | State::Idle | State::Attaching(_) | State::Closed => None,
        }
    }

    /// Gives the idle slot work and returns the frame that says so.
    pub fn lease(&mut self, lease: Lease) -> Result<Vec<u8>, LinkError> {
        if !self.is_idle() {
            return Err(LinkError::OutOfPlace {
                kind: "lease",
                reason: "the slot is not idle",
            });
        }
        if lease.attach_token.is_some() && self.control.is_none() {
            return Err(LinkError::NotNegotiated("attach_token"));
        }
        if lease.activity_version.is_some() && lease.activity_version != self.offered {
            return Err(LinkError::NotNegotiated("activity"));
        }
        let key = lease.lease.clone();
        let stages = lease.activity_version.map(|_| ActivityTrack::default());
        let frame = GateMessage::Lease(Box::new(lease)).encode()?;
        self.state = State::Leased(key);
        self.stages = stages;
        if let Some(control) = &mut self.control {
            control.fresh = true;
            control.crossed = false;
        }
        Ok(frame)
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

    /// Says that the attempt of an attach is none any more.
    pub fn lost(&mut self) -> Result<Vec<u8>, LinkError> {
        let key = self.attaching("lost")?;
        let greeted = self
            .control
            .as_ref()
            .is_some_and(|control| control.ponged > 0);
        self.state = if greeted {
            State::Idle
        } else {
            State::Greeting
        };
        GateMessage::Lost(key).encode()
    }

    /// Tells the Worker to stop its attempt; the slot is idle once it says that it has. Nothing
    /// that it still says about the attempt counts.
    pub fn cancel(&mut self, reason: CancelReason) -> Result<Vec<u8>, LinkError> {
        if self.control.is_none() {
            return Err(LinkError::NotNegotiated("cancel"));
        }
        let State::Leased(key) = &self.state else {
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

    /// Reads one message of the Worker.
    pub fn receive(&mut self, message: &[u8]) -> Result<Request, LinkError> {
        let message = WorkerMessage::decode(message)?;
        let first = match &mut self.control {
            Some(control) => !std::mem::replace(&mut control.spoken, true),
            None => false,
        };
        match message {
            WorkerMessage::Heartbeat(heartbeat) => self.heartbeat(&heartbeat),
            WorkerMessage::Activity(activity) => self.activity(&activity),
            WorkerMessage::Evidence(evidence) => {
                if self.crosses_cancel(&evidence.lease) {
                    return Ok(Request::Crossed);
                }
                let key = self.running("evidence", &evidence.lease)?;
                self.state = State::Binding(key);
                Ok(Request::Evidence(evidence))
            }
            WorkerMessage::Result(result) => {
                if self.crosses_cancel(&result.lease) {
                    return Ok(Request::Crossed);
                }
                let key = self.running("result", &result.lease)?;
                self.state = State::Completing(key);
                Ok(Request::Result(result))
            }
            WorkerMessage::Attach(attach) => self.attach(attach, first),
            WorkerMessage::Ready(readiness) => self.ready(readiness),
            WorkerMessage::Decline(decline) => self.decline(decline),
            WorkerMessage::Pong(n) => self.pong(n),
            WorkerMessage::Cancelled(key) => self.stopped(&key),
        }
    }

    /// The evidence or result is stored: returns the frame that says so. After a
    /// result the slot is idle.
    pub fn acknowledge(&mut self) -> Result<Vec<u8>, LinkError> {
        let (key, next) = match &self.state {
            State::Binding(key) => (key.clone(), State::Leased(key.clone())),
            State::Completing(key) => {
                self.finished = Some(key.clone());
                (key.clone(), State::Idle)
            }
            State::Greeting
            | State::Idle
            | State::Attaching(_)
            | State::Leased(_)
            | State::Cancelling(_)
            | State::Closed => {
                return Err(LinkError::OutOfPlace {
                    kind: "ack",
                    reason: "nothing waits for it",
                });
            }
        };
        self.state = next;
        GateMessage::Ack(key).encode()
    }

    /// Ends the conversation and returns the last frame.
    pub fn refuse(&mut self) -> Result<Vec<u8>, LinkError> {
        self.state = State::Closed;
        GateMessage::Error.encode()
    }

    fn heartbeat(&mut self, heartbeat: &Heartbeat) -> Result<Request, LinkError> {
        const KIND: &str = "heartbeat";
        self.expect_worker(KIND, &heartbeat.worker_id)?;
        let open = !matches!(self.state, State::Closed);
        if open && self.finished.as_ref() == Some(&heartbeat.lease) {
            return Ok(Request::LateHeartbeat);
        }
        if self.crosses_cancel(&heartbeat.lease) {
            return Ok(Request::Crossed);
        }
        self.running(KIND, &heartbeat.lease).map(Request::Heartbeat)
    }

    /// Ordered before the result on its connection, so it is never late.
    fn activity(&mut self, activity: &Activity) -> Result<Request, LinkError> {
        const KIND: &str = "activity";
        self.expect_worker(KIND, &activity.worker_id)?;
        if self.crosses_cancel(&activity.lease) {
            return Ok(Request::Crossed);
        }
        let key = self.running(KIND, &activity.lease)?;
        // `ActivityVersion` has one value, so the version is the selected one.
        let Some(stages) = &mut self.stages else {
            return Err(LinkError::NotNegotiated(KIND));
        };
        stages
            .accept(activity.activity)
            .map_err(LinkError::Backwards)?;
        Ok(Request::Activity(key, activity.activity))
    }

    fn attach(&mut self, attach: Attach, first: bool) -> Result<Request, LinkError> {
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

    fn ready(&mut self, readiness: Readiness) -> Result<Request, LinkError> {
        const KIND: &str = "ready";
        let idle = matches!(self.state, State::Greeting | State::Idle);
        // The Worker was idle when it said so, and the lease was under way.
        let crossing = matches!(self.state, State::Leased(_) | State::Cancelling(_));
        let control = self.controlled(KIND)?;
        if !idle && !(crossing && control.fresh) {
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

    fn decline(&mut self, decline: Decline) -> Result<Request, LinkError> {
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

    fn stopped(&mut self, key: &LeaseKey) -> Result<Request, LinkError> {
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

    fn pong(&mut self, n: u64) -> Result<Request, LinkError> {
        const KIND: &str = "pong";
        let control = self.controlled(KIND)?;
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

    fn crosses_cancel(&self, named: &LeaseKey) -> bool {
        matches!(&self.state, State::Cancelling(key) if key == named)
    }

    fn ended(&mut self, key: &LeaseKey) {
        self.finished = Some(key.clone());
        self.stages = None;
        self.state = State::Idle;
    }

    fn expect_worker(&self, kind: &'static str, named: &WorkerId) -> Result<(), LinkError> {
        if *named == self.worker_id {
            return Ok(());
        }
        Err(LinkError::WrongTarget {
            kind,
            what: "worker",
        })
    }

    fn running(&mut self, kind: &'static str, named: &LeaseKey) -> Result<LeaseKey, LinkError> {
        let State::Leased(key) = &self.state else {
            return Err(LinkError::OutOfPlace {
                kind,
                reason: match &self.state {
                    State::Closed => "the connection is refused",
                    State::Greeting | State::Idle | State::Leased(_) => "the slot holds no attempt",
                    State::Cancelling(_) => "another attempt was cancelled",
                    State::Attaching(_) | State::Binding(_) | State::Completing(_) => {
                        "the last message is not acknowledged"
                    }
                },
            });
        };
        if let Some(what) = key.difference(named) {
            return Err(LinkError::WrongTarget { kind, what });
        }
        let key = key.clone();
        if let Some(control) = &mut self.control {
            control.fresh = false;
        }
        Ok(key)
    }
}

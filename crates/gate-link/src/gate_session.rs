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

mod control;

use forge_domain::{ActivityTrack, WorkerId};

use self::control::Control;

use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Attach, Decline, Evidence, GateMessage, Heartbeat, JobResult, Lease,
    LeaseKey, Readiness, WorkerMessage,
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
                (key.clone(), self.rest())
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

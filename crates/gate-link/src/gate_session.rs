//! The Gate's end of one connection. It decides whether a message has a place
//! here and names what must be stored for it; it never stores. So every refusal
//! of this machine comes before any change.
//!
//! The driver calls [`GateSession::receive`], does what the [`Request`] says and
//! sends what [`GateSession::acknowledge`] returns; on any error it sends
//! [`GateSession::refuse`] and drops the connection.

use forge_domain::{ActivityTrack, WorkerId};

use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Evidence, GateMessage, Heartbeat, JobResult, Lease, LeaseKey,
    WorkerMessage,
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
}

#[derive(Debug)]
enum State {
    /// No attempt runs.
    Idle,
    /// An attempt runs.
    Leased(LeaseKey),
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
}

impl GateSession {
    /// The conversation that follows a connect with this query, before its first lease.
    #[must_use]
    pub fn new(query: &ConnectQuery) -> Self {
        Self {
            worker_id: query.slot.worker().clone(),
            offered: query.activity_version,
            state: State::Idle,
            stages: None,
            finished: None,
        }
    }

    /// Whether a lease may be sent now.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
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
            State::Leased(key) | State::Binding(key) | State::Completing(key) => Some(key),
            State::Idle | State::Closed => None,
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
        if lease.activity_version.is_some() && lease.activity_version != self.offered {
            return Err(LinkError::NotNegotiated("activity"));
        }
        let key = lease.lease.clone();
        let stages = lease.activity_version.map(|_| ActivityTrack::default());
        let frame = GateMessage::Lease(Box::new(lease)).encode()?;
        self.state = State::Leased(key);
        self.stages = stages;
        Ok(frame)
    }

    /// Reads one message of the Worker.
    pub fn receive(&mut self, message: &[u8]) -> Result<Request, LinkError> {
        match WorkerMessage::decode(message)? {
            WorkerMessage::Heartbeat(heartbeat) => self.heartbeat(&heartbeat),
            WorkerMessage::Activity(activity) => self.activity(&activity),
            WorkerMessage::Evidence(evidence) => {
                let key = self.running("evidence", &evidence.lease)?;
                self.state = State::Binding(key);
                Ok(Request::Evidence(evidence))
            }
            WorkerMessage::Result(result) => {
                let key = self.running("result", &result.lease)?;
                self.state = State::Completing(key);
                Ok(Request::Result(result))
            }
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
            State::Idle | State::Leased(_) | State::Closed => {
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

    fn heartbeat(&self, heartbeat: &Heartbeat) -> Result<Request, LinkError> {
        const KIND: &str = "heartbeat";
        self.expect_worker(KIND, &heartbeat.worker_id)?;
        let open = !matches!(self.state, State::Closed);
        if open && self.finished.as_ref() == Some(&heartbeat.lease) {
            return Ok(Request::LateHeartbeat);
        }
        self.running(KIND, &heartbeat.lease).map(Request::Heartbeat)
    }

    /// Ordered before the result on its connection, so it is never late.
    fn activity(&mut self, activity: &Activity) -> Result<Request, LinkError> {
        const KIND: &str = "activity";
        self.expect_worker(KIND, &activity.worker_id)?;
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

    fn running(&self, kind: &'static str, named: &LeaseKey) -> Result<LeaseKey, LinkError> {
        let State::Leased(key) = &self.state else {
            return Err(LinkError::OutOfPlace {
                kind,
                reason: match &self.state {
                    State::Closed => "the connection is refused",
                    State::Idle | State::Leased(_) => "the slot holds no attempt",
                    State::Binding(_) | State::Completing(_) => {
                        "the last message is not acknowledged"
                    }
                },
            });
        };
        match key.difference(named) {
            Some(what) => Err(LinkError::WrongTarget { kind, what }),
            None => Ok(key.clone()),
        }
    }
}

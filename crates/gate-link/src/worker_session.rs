//! The Worker's end of one connection: takes one lease at a time, sends
//! evidence and one result and waits for the acknowledgement of each. Whatever
//! else the Gate sends ends the conversation.
//!
//! Heartbeats are allowed from the lease until the last acknowledgement; when
//! to send them is up to the driver. Activity is sent only under a lease that
//! selected it, and only forward.

use forge_domain::{ActivityTrack, Completion, EvidenceBatch, Stage, WorkerId};

use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Evidence, GateMessage, Heartbeat, JobResult, Lease, LeaseKey,
    UnacceptableLease, WorkerMessage,
};
use crate::query::ConnectQuery;

/// One slot's conversation as the Worker sees it.
#[derive(Debug)]
pub struct WorkerSession {
    worker_id: WorkerId,
    offered: Option<ActivityVersion>,
    /// What the running attempt has reported, if its lease selected live activity.
    selected: Option<(ActivityVersion, ActivityTrack)>,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle,
    Working(LeaseKey),
    AwaitingEvidenceAck(LeaseKey),
    AwaitingResultAck(LeaseKey),
    Closed,
}

/// What a message of the Gate means.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Work to do.
    Lease(Box<Lease>),
    /// Work that cannot be done as described; answer with `invalid_task`.
    UnacceptableLease(UnacceptableLease),
    /// The evidence is stored; more may follow, or the result.
    EvidenceStored,
    /// The result is stored; the slot is idle.
    ResultStored,
}

impl WorkerSession {
    /// The conversation that follows a connect with this query.
    #[must_use]
    pub fn new(query: &ConnectQuery) -> Self {
        Self {
            worker_id: query.slot.worker().clone(),
            offered: query.activity_version,
            selected: None,
            state: State::Idle,
        }
    }

    /// Whether the slot holds no attempt.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// The attempt that the slot holds.
    #[must_use]
    pub const fn current(&self) -> Option<&LeaseKey> {
        match &self.state {
            State::Working(key)
            | State::AwaitingEvidenceAck(key)
            | State::AwaitingResultAck(key) => Some(key),
            State::Idle | State::Closed => None,
        }
    }

    /// Reads one message of the Gate. After an error the conversation is over.
    pub fn receive(&mut self, message: &[u8]) -> Result<WorkerEvent, LinkError> {
        let event = GateMessage::decode(message).and_then(|message| self.apply(message));
        if event.is_err() {
            self.state = State::Closed;
        }
        event
    }

    /// The frame that says that the attempt is alive.
    pub fn heartbeat(&self) -> Result<Vec<u8>, LinkError> {
        let Some(lease) = self.current() else {
            return Err(LinkError::OutOfPlace {
                kind: "heartbeat",
                reason: "the slot holds no attempt",
            });
        };
        WorkerMessage::Heartbeat(Heartbeat {
            lease: lease.clone(),
            worker_id: self.worker_id.clone(),
        })
        .encode()
    }

    /// Whether the running attempt may say which stage it is in.
    #[must_use]
    pub const fn shows_activity(&self) -> bool {
        self.selected.is_some()
    }

    /// The frame that says that a stage has begun. Nothing if the lease did not
    /// select activity, or if the stage is not later than the last one.
    pub fn activity(&mut self, stage: Stage) -> Result<Option<Vec<u8>>, LinkError> {
        let lease = self.working("activity")?;
        let Some((version, track)) = &mut self.selected else {
            return Ok(None);
        };
        let Some(activity) = track.advance(stage) else {
            return Ok(None);
        };
        let message = Activity {
            lease,
            worker_id: self.worker_id.clone(),
            version: *version,
            activity,
        };
        WorkerMessage::Activity(message).encode().map(Some)
    }

    /// The frame that carries evidence; its acknowledgement must follow.
    pub fn evidence(&mut self, batch: EvidenceBatch) -> Result<Vec<u8>, LinkError> {
        let lease = self.working("evidence")?;
        let frame = WorkerMessage::Evidence(Evidence {
            lease: lease.clone(),
            batch,
        })
        .encode()?;
        self.state = State::AwaitingEvidenceAck(lease);
        Ok(frame)
    }

    /// The frame that ends the attempt; its acknowledgement must follow.
    pub fn result(&mut self, completion: Completion) -> Result<Vec<u8>, LinkError> {
        let lease = self.working("result")?;
        let frame = WorkerMessage::Result(JobResult {
            lease: lease.clone(),
            completion,
        })
        .encode()?;
        self.state = State::AwaitingResultAck(lease);
        Ok(frame)
    }

    fn apply(&mut self, message: GateMessage) -> Result<WorkerEvent, LinkError> {
        match message {
            GateMessage::Lease(lease) => {
                self.expect_idle()?;
                if lease.activity_version.is_some() && lease.activity_version != self.offered {
                    return Err(LinkError::NotNegotiated("activity"));
                }
                self.state = State::Working(lease.lease.clone());
                self.selected = lease
                    .activity_version
                    .map(|version| (version, ActivityTrack::default()));
                Ok(WorkerEvent::Lease(lease))
            }
            GateMessage::UnacceptableLease(lease) => {
                self.expect_idle()?;
                self.state = State::Working(lease.lease.clone());
                self.selected = None;
                Ok(WorkerEvent::UnacceptableLease(lease))
            }
            GateMessage::Ack(key) => self.acknowledged(&key),
            GateMessage::Error => Err(LinkError::Refused),
        }
    }

    fn acknowledged(&mut self, named: &LeaseKey) -> Result<WorkerEvent, LinkError> {
        let (key, event) = match &self.state {
            State::AwaitingEvidenceAck(key) => (key.clone(), WorkerEvent::EvidenceStored),
            State::AwaitingResultAck(key) => (key.clone(), WorkerEvent::ResultStored),
            State::Idle | State::Working(_) | State::Closed => {
                return Err(LinkError::OutOfPlace {
                    kind: "ack",
                    reason: "nothing waits for it",
                });
            }
        };
        if let Some(what) = key.difference(named) {
            return Err(LinkError::WrongTarget { kind: "ack", what });
        }
        self.state = match event {
            WorkerEvent::ResultStored => State::Idle,
            _ => State::Working(key),
        };
        Ok(event)
    }

    fn expect_idle(&self) -> Result<(), LinkError> {
        if self.is_idle() {
            return Ok(());
        }
        Err(LinkError::OutOfPlace {
            kind: "lease",
            reason: "the slot holds an attempt",
        })
    }

    fn working(&self, kind: &'static str) -> Result<LeaseKey, LinkError> {
        match &self.state {
            State::Working(key) => Ok(key.clone()),
            State::Idle | State::Closed => Err(LinkError::OutOfPlace {
                kind,
                reason: "the slot holds no attempt",
            }),
            State::AwaitingEvidenceAck(_) | State::AwaitingResultAck(_) => {
                Err(LinkError::OutOfPlace {
                    kind,
                    reason: "the last message is not acknowledged",
                })
            }
        }
    }
}

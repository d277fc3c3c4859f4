//! The Worker's end of one connection: takes one lease at a time, sends
//! evidence and one result and waits for the acknowledgement of each. Whatever
//! else the Gate sends ends the conversation.
//!
//! Heartbeats are allowed from the lease until the last acknowledgement; when
//! to send them is up to the driver. Activity is sent only under a lease that
//! selected it, and only forward.
//!
//! What job control adds is sent only to a Gate that has shown that it knows it:
//! by its first ping, or by a lease that selects it. Another Gate would refuse
//! the message and the connection with it.

use forge_domain::{
    ActivityTrack, CancelReason, Completion, EvidenceBatch, NotAccepting, Stage, WorkerId,
};

use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Attach, Decline, Evidence, GateMessage, Heartbeat, JobResult, Lease,
    LeaseKey, Readiness, UnacceptableLease, WorkerMessage,
};
use crate::query::ConnectQuery;
use crate::token::AttachToken;

/// One slot's conversation as the Worker sees it.
#[derive(Debug)]
pub struct WorkerSession {
    worker_id: WorkerId,
    offered: Option<ActivityVersion>,
    /// What the running attempt has reported, if its lease selected live activity.
    selected: Option<(ActivityVersion, ActivityTrack)>,
    control: Control,
    state: State,
}

/// What is known of the Gate's job control.
#[derive(Debug, Default)]
struct Control {
    offered: bool,
    /// The Gate has used it.
    known: bool,
    /// Something was sent, so an attach comes too late.
    spoken: bool,
    /// The Worker has said that it takes no lease.
    refuses: Option<NotAccepting>,
    /// The attempt that was declined last: a cancellation may have crossed that.
    declined: Option<LeaseKey>,
}

/// An attempt that has lost its connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspended {
    /// The attempt.
    pub lease: LeaseKey,
    stages: Option<(ActivityVersion, ActivityTrack)>,
}

impl Suspended {
    /// An attempt of which only the result is left, as it is after a restart.
    #[must_use]
    pub const fn done(lease: LeaseKey) -> Self {
        Self {
            lease,
            stages: None,
        }
    }
}

#[derive(Debug)]
enum State {
    Idle,
    Working(LeaseKey),
    AwaitingEvidenceAck(LeaseKey),
    AwaitingResultAck(LeaseKey),
    /// An attach waits for its answer.
    Attaching(Suspended),
    /// The Gate has cancelled the attempt; what is left of it is being stopped.
    Stopping(LeaseKey),
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
    /// The attempt goes on here. `deadline_ms` is how much longer its lease holds; 0 says that
    /// it has ended with a result, and only the same evidence and result have a place.
    Attached {
        /// Milliseconds from now.
        deadline_ms: u64,
    },
    /// The attempt is none any more; the slot is idle.
    Lost,
    /// The attempt is to stop; then say [`WorkerSession::cancelled`].
    Cancel(CancelReason),
    /// Nothing: the attempt was given back when it was cancelled.
    LateCancel,
    /// Answer with [`WorkerSession::pong`] and this number.
    Ping(u64),
}

impl WorkerSession {
    /// The conversation that follows a connect with this query.
    #[must_use]
    pub fn new(query: &ConnectQuery) -> Self {
        Self {
            worker_id: query.slot.worker().clone(),
            offered: query.activity_version,
            selected: None,
            control: Control {
                offered: query.control_version.is_some(),
                ..Control::default()
            },
            state: State::Idle,
        }
    }

    /// Whether the Gate has shown that it knows job control.
    #[must_use]
    pub const fn controls(&self) -> bool {
        self.control.known
    }

    /// Why the Worker takes no lease, as the Gate was last told.
    #[must_use]
    pub const fn refuses(&self) -> Option<NotAccepting> {
        self.control.refuses
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
            | State::AwaitingResultAck(key)
            | State::Stopping(key) => Some(key),
            State::Attaching(suspended) => Some(&suspended.lease),
            State::Idle | State::Closed => None,
        }
    }

    /// The conversation ends: what a new one needs to go on with the attempt.
    #[must_use]
    pub fn suspend(self) -> Option<Suspended> {
        match self.state {
            State::Attaching(suspended) => Some(suspended),
            State::Working(lease)
            | State::AwaitingEvidenceAck(lease)
            | State::AwaitingResultAck(lease) => Some(Suspended {
                lease,
                stages: self.selected,
            }),
            State::Idle | State::Stopping(_) | State::Closed => None,
        }
    }

    /// The frame that claims an attempt of an earlier conversation; the first one that is sent.
    /// `attached` or `lost` must follow.
    pub fn attach(
        &mut self,
        suspended: Suspended,
        token: AttachToken,
    ) -> Result<Vec<u8>, LinkError> {
        const KIND: &str = "attach";
        self.expect_control(KIND)?;
        if self.control.spoken || !self.is_idle() {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "it is not the first message of the connection",
            });
        }
        let frame = WorkerMessage::Attach(Attach {
            lease: suspended.lease.clone(),
            token,
        })
        .encode()?;
        self.control.spoken = true;
        self.state = State::Attaching(suspended);
        Ok(frame)
    }

    /// The frame that says whether the idle slot takes leases.
    pub fn ready(&mut self, readiness: Readiness) -> Result<Vec<u8>, LinkError> {
        const KIND: &str = "ready";
        self.expect_control(KIND)?;
        if !self.is_idle() {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the slot is not idle",
            });
        }
        self.control.spoken = true;
        self.control.refuses = match readiness {
            Readiness::Accepts => None,
            Readiness::Refuses(reason) => Some(reason),
        };
        WorkerMessage::Ready(readiness).encode()
    }

    /// The frame that gives back a lease that crossed a refusal; the slot is idle.
    pub fn decline(&mut self) -> Result<Vec<u8>, LinkError> {
        const KIND: &str = "decline";
        self.expect_control(KIND)?;
        let lease = self.working(KIND)?;
        let Some(reason) = self.control.refuses else {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the Gate was told that the slot takes leases",
            });
        };
        self.control.declined = Some(lease.clone());
        self.state = State::Idle;
        WorkerMessage::Decline(Decline { lease, reason }).encode()
    }

    /// The frame that answers a ping. The first one says that a lease may come, so it waits for
    /// the answer to an attach, and for the end of what that has called lost.
    pub fn pong(&mut self, n: u64) -> Result<Vec<u8>, LinkError> {
        const KIND: &str = "pong";
        self.expect_control(KIND)?;
        if matches!(self.state, State::Attaching(_)) {
            return Err(LinkError::OutOfPlace {
                kind: KIND,
                reason: "the Gate has not answered the attach",
            });
        }
        self.control.spoken = true;
        WorkerMessage::Pong(n).encode()
    }

    /// The frame that says that nothing of the cancelled attempt runs any more; the slot is idle.
    pub fn cancelled(&mut self) -> Result<Vec<u8>, LinkError> {
        let State::Stopping(lease) = &self.state else {
            return Err(LinkError::OutOfPlace {
                kind: "cancelled",
                reason: "nothing was cancelled",
            });
        };
        let lease = lease.clone();
        self.state = State::Idle;
        WorkerMessage::Cancelled(lease).encode()
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
        let (State::Working(lease)
        | State::AwaitingEvidenceAck(lease)
        | State::AwaitingResultAck(lease)) = &self.state
        else {
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
                if lease.attach_token.is_some() {
                    self.learns_control("lease")?;
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
            GateMessage::Attached(attached) => {
                self.selected = self.attaching("attached", &attached.lease)?.stages;
                self.state = State::Working(attached.lease);
                Ok(WorkerEvent::Attached {
                    deadline_ms: attached.deadline_ms,
                })
            }
            GateMessage::Lost(key) => {
                self.attaching("lost", &key)?;
                self.state = State::Idle;
                Ok(WorkerEvent::Lost)
            }
            GateMessage::Cancel(cancel) => self.cancel(&cancel.lease, cancel.reason),
            GateMessage::Ping(n) => {
                self.learns_control("ping")?;
                Ok(WorkerEvent::Ping(n))
            }
        }
    }

    fn cancel(&mut self, named: &LeaseKey, reason: CancelReason) -> Result<WorkerEvent, LinkError> {
        const KIND: &str = "cancel";
        self.learns_control(KIND)?;
        let key = match &self.state {
            State::Working(key)
            | State::AwaitingEvidenceAck(key)
            | State::AwaitingResultAck(key) => key,
            State::Idle if self.control.declined.as_ref() == Some(named) => {
                return Ok(WorkerEvent::LateCancel);
            }
            State::Idle | State::Attaching(_) | State::Stopping(_) | State::Closed => {
                return Err(LinkError::OutOfPlace {
                    kind: KIND,
                    reason: "no attempt runs",
                });
            }
        };
        if let Some(what) = key.difference(named) {
            return Err(LinkError::WrongTarget { kind: KIND, what });
        }
        self.state = State::Stopping(key.clone());
        Ok(WorkerEvent::Cancel(reason))
    }

    /// The Gate uses job control, which it may only if it was offered.
    fn learns_control(&mut self, kind: &'static str) -> Result<(), LinkError> {
        self.control.known |= self.control.offered;
        self.expect_control(kind)
    }

    const fn expect_control(&self, kind: &'static str) -> Result<(), LinkError> {
        if self.control.known {
            Ok(())
        } else {
            Err(LinkError::NotNegotiated(kind))
        }
    }

    fn attaching(&self, kind: &'static str, named: &LeaseKey) -> Result<Suspended, LinkError> {
        let State::Attaching(suspended) = &self.state else {
            return Err(LinkError::OutOfPlace {
                kind,
                reason: "nothing waits for it",
            });
        };
        match suspended.lease.difference(named) {
            Some(what) => Err(LinkError::WrongTarget { kind, what }),
            None => Ok(suspended.clone()),
        }
    }

    fn acknowledged(&mut self, named: &LeaseKey) -> Result<WorkerEvent, LinkError> {
        let (key, event) = match &self.state {
            State::AwaitingEvidenceAck(key) => (key.clone(), WorkerEvent::EvidenceStored),
            State::AwaitingResultAck(key) => (key.clone(), WorkerEvent::ResultStored),
            State::Idle
            | State::Working(_)
            | State::Attaching(_)
            | State::Stopping(_)
            | State::Closed => {
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
            State::Attaching(_) => Err(LinkError::OutOfPlace {
                kind,
                reason: "the Gate has not answered the attach",
            }),
            State::Stopping(_) => Err(LinkError::OutOfPlace {
                kind,
                reason: "the attempt was cancelled",
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

//! The messages as types. Each type is closed: it carries its own fields and no
//! others, so a value of it can always be sent.

use forge_domain::{
    AttemptId, CONTROL_VERSION, CancelReason, Completion, EvidenceBatch, JobId, NotAccepting,
    ResolvedPolicy, Work, WorkerId,
};

use crate::token::AttachToken;

/// What a Worker sends.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WorkerMessage {
    /// The attempt is alive. Gets no reply.
    Heartbeat(Heartbeat),
    /// What the attempt is doing, for display. Gets no reply.
    Activity(Activity),
    /// What happened, to be kept. Gets an `ack`.
    Evidence(Evidence),
    /// How the attempt ended. Gets an `ack`.
    Result(JobResult),
    /// Goes on with an attempt over a new connection. Gets `attached` or `lost`.
    Attach(Attach),
    /// Whether the slot takes leases. Gets no reply.
    Ready(Readiness),
    /// Gives back a lease that crossed a [`Readiness::Refuses`]. Gets no reply.
    Decline(Decline),
    /// The answer to a ping.
    Pong(u64),
    /// Nothing of a cancelled attempt runs any more. Gets no reply.
    Cancelled(LeaseKey),
}

/// What the Gate sends.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GateMessage {
    /// Work for the slot.
    Lease(Box<Lease>),
    /// A lease whose shape is right but whose policy or task is out of bounds.
    /// It is only ever received: the Worker answers it with `invalid_task`.
    UnacceptableLease(UnacceptableLease),
    /// The last evidence or result is stored.
    Ack(LeaseKey),
    /// The last message was refused; the connection ends.
    Error,
    /// The attempt goes on here.
    Attached(Attached),
    /// The attempt is none any more: nothing of it has a place.
    Lost(LeaseKey),
    /// The attempt is to stop.
    Cancel(Cancel),
    /// Asks for a pong with the same number.
    Ping(u64),
}

/// The job and the attempt that a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseKey {
    /// The job.
    pub job_id: JobId,
    /// The attempt at it.
    pub attempt_id: AttemptId,
}

/// Says that an attempt is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The attempt.
    pub lease: LeaseKey,
    /// The Worker's configured id, also on slots other than 0.
    pub worker_id: WorkerId,
}

/// Says what an attempt is doing. Neither evidence nor kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The attempt.
    pub lease: LeaseKey,
    /// The Worker's configured id, also on slots other than 0.
    pub worker_id: WorkerId,
    /// The version that the lease selected.
    pub version: ActivityVersion,
    /// Its number and the stage that has begun.
    pub activity: forge_domain::Activity,
}

/// A batch of evidence records.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The attempt.
    pub lease: LeaseKey,
    /// The records.
    pub batch: EvidenceBatch,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// The attempt.
    pub lease: LeaseKey,
    /// How it ended.
    pub completion: Completion,
}

/// A claim to an attempt that was leased over an earlier connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The attempt.
    pub lease: LeaseKey,
    /// What its lease came with.
    pub token: AttachToken,
}

/// An attempt that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The attempt.
    pub lease: LeaseKey,
    /// How much longer its lease holds, in milliseconds. 0 says that it has ended with a result:
    /// only the same evidence and the same result have a place.
    pub deadline_ms: u64,
}

/// Whether a slot takes leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Accepts,
    /// It does not.
    Refuses(NotAccepting),
}

/// A lease that is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decline {
    /// The attempt.
    pub lease: LeaseKey,
    /// Why the slot takes none.
    pub reason: NotAccepting,
}

/// An attempt that is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The attempt.
    pub lease: LeaseKey,
    /// Why.
    pub reason: CancelReason,
}

/// Work for a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Lease {
    /// The attempt.
    pub lease: LeaseKey,
    /// The activity extension, if the Gate selects what the Worker offered.
    pub activity_version: Option<ActivityVersion>,
    /// What an attach to this attempt is proved with; there if the Gate selects job control.
    pub attach_token: Option<AttachToken>,
    /// The work.
    pub work: Work,
    /// The rules it runs under.
    pub policy: ResolvedPolicy,
}

/// A lease that can be refused by name but not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnacceptableLease {
    /// The attempt.
    pub lease: LeaseKey,
    /// What is out of bounds.
    pub reason: String,
}

/// The versions of live activity that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityVersion {
    /// `live_activity/v1`
    V1,
}

impl ActivityVersion {
    /// The version that is written exactly so.
    #[must_use]
    pub fn exactly(text: &str) -> Option<Self> {
        (text == Self::V1.as_str()).then_some(Self::V1)
    }

    /// The version as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "live_activity/v1",
        }
    }
}

/// The versions of job control that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlVersion {
    /// `job_control/v1`
    V1,
}

impl ControlVersion {
    /// The version that is written exactly so.
    #[must_use]
    pub fn exactly(text: &str) -> Option<Self> {
        (text == Self::V1.as_str()).then_some(Self::V1)
    }

    /// The version as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => CONTROL_VERSION,
        }
    }
}

impl LeaseKey {
    /// What `other` names differently, if anything.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        if self.job_id != other.job_id {
            Some("job")
        } else if self.attempt_id != other.attempt_id {
            Some("attempt")
        } else {
            None
        }
    }
}

//! What goes into a store and what comes out of it. Plain data; the Gate decides how it looks on
//! the wire.

use std::sync::Arc;

use bounded::GitSha;
use digest_text::Sha256Text;
use forge_domain::{
    AgentReport, AttemptId, AttemptStatus, Disposition, Event, EvidenceRecord, FailureCode,
    Generation, IdempotencyKey, JobId, JobKind, JobStatus, PoolId, Priority, RepositoryId,
    ResolvedPolicy, SlotId, SourceRef, Work,
};
use jiff::Timestamp;

/// Most jobs of a page.
pub const MAX_PAGE: u16 = 100;

/// A job to accept.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its id, from a random source.
    pub id: JobId,
    /// What it asks for.
    pub work: Work,
    /// What it is promised; a coding policy names the repository of the task.
    pub policy: Arc<ResolvedPolicy>,
    /// How urgent it is.
    pub priority: Priority,
    /// Where it comes from.
    pub source_ref: Option<SourceRef>,
    /// What makes a repetition of the request harmless.
    pub idempotency: Option<Idempotency>,
}

/// A key and the digest of the request that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The key.
    pub key: IdempotencyKey,
    /// Digest of the request's body.
    pub body: Sha256Text,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// The job is new.
    Created(JobView),
    /// The key and the same body had made this job before.
    Existing(JobView),
}

impl Submitted {
    /// Returns the job.
    #[must_use]
    pub const fn job(&self) -> &JobView {
        match self {
            Self::Created(job) | Self::Existing(job) => job,
        }
    }
}

/// A slot that asks for work.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The slot.
    pub slot: SlotId,
    /// Its live session.
    pub generation: Generation,
    /// The id that a new attempt will have, from a random source.
    pub attempt: AttemptId,
    /// Digest of what a later connection of the slot will prove itself with, if it may.
    pub attach: Option<Sha256Text>,
}

/// A job that a slot got.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its ordinal, from 1.
    pub ordinal: u16,
    /// What is to be done.
    pub work: Work,
    /// What the job was promised.
    pub policy: Arc<ResolvedPolicy>,
    /// When the lease ends, unless a heartbeat comes before.
    pub deadline: Timestamp,
}

/// What became of a claim to go on with an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// It is live and belongs to the new session.
    Live {
        /// Its ordinal, from 1.
        ordinal: u16,
        /// When its lease ends, which is as it was.
        deadline: Timestamp,
    },
    /// It has ended with a result of this slot, which may be said again.
    Ended,
    /// It is this slot's, and is over without a result: cancelled, or past its deadline.
    Over,
    /// It is none of this slot.
    Lost,
}

/// What binding of evidence did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Records that were not there before.
    pub added: usize,
    /// Records that were there already.
    pub repeated: usize,
}

/// What a result did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The result had been stored before; nothing changed.
    pub repeated: bool,
    /// The job as it is now.
    pub job: JobView,
}

/// A lease that ended without its Worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedLease {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The slot that is free again.
    pub slot: SlotId,
    /// The pool of the job.
    pub pool: PoolId,
    /// What the job is now: waiting, failed or cancelled.
    pub status: JobStatus,
    /// When its next attempt is due.
    pub retry_at: Option<Timestamp>,
}

/// What a cancellation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// The job had been cancelled before; nothing changed.
    pub repeated: bool,
    /// The job as it is now.
    pub job: JobView,
    /// The lease that this ended.
    pub ended: Option<EndedLease>,
}

/// What a retry did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retried {
    /// The same job is due now.
    Due(JobView),
    /// A new job repeats the old one.
    Created(JobView),
}

/// A job as it is seen from outside; neither its text nor its result is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its kind.
    pub kind: JobKind,
    /// Its state.
    pub status: JobStatus,
    /// Its priority.
    pub priority: Priority,
    /// Its last attempt.
    pub attempt_id: Option<AttemptId>,
    /// The slot of its last attempt.
    pub worker_id: Option<SlotId>,
    /// How many attempts there have been, the live one included.
    pub attempts: u16,
    /// The repository of a coding job.
    pub repository_id: Option<RepositoryId>,
    /// The base of a coding job.
    pub base_sha: Option<GitSha>,
    /// The pool whose Workers may take it.
    pub worker_pool: PoolId,
    /// The version of its policy.
    pub policy_version: u64,
    /// Where it comes from.
    pub source_ref: Option<SourceRef>,
    /// The job that it repeats.
    pub retry_of: Option<JobId>,
    /// The candidate that it ended with.
    pub candidate_sha: Option<GitSha>,
    /// Why it failed.
    pub failure_code: Option<FailureCode>,
    /// When its next attempt is due, while it waits for one.
    pub retry_at: Option<Timestamp>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Which jobs a list holds; an absent field holds all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Jobs in this state.
    pub status: Option<JobStatus>,
    /// Jobs of this pool.
    pub pool: Option<PoolId>,
    /// Jobs of this repository.
    pub repository: Option<RepositoryId>,
}

/// Which part of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Most jobs to answer; held between 1 and [`MAX_PAGE`].
    pub limit: u16,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPage {
    /// The jobs, newest first.
    pub items: Vec<JobView>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// An attempt as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptView {
    /// Its id.
    pub id: AttemptId,
    /// Its ordinal, from 1.
    pub ordinal: u16,
    /// Its state.
    pub status: AttemptStatus,
    /// The slot that held or holds its lease.
    pub worker_id: SlotId,
    /// Whether its failure let another attempt follow.
    pub failure_disposition: Option<Disposition>,
    /// Why it failed.
    pub failure_code: Option<FailureCode>,
    /// Its candidate.
    pub candidate_sha: Option<GitSha>,
    /// What its plugin says about the candidate.
    pub report: Option<AgentReport>,
    /// When the lease was granted.
    pub leased_at: Timestamp,
    /// Its last deadline.
    pub deadline_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

/// A stored record of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceView {
    /// The record.
    pub record: EvidenceRecord,
    /// When the Gate bound it.
    pub bound_at: Timestamp,
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    /// Its number, which grows with time over all jobs.
    pub id: i64,
    /// The job.
    pub job: JobId,
    /// What happened.
    pub event: Event,
    /// When.
    pub at: Timestamp,
}

/// A job with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    /// The job.
    pub job: JobView,
    /// Its attempts by ordinal, each with its evidence.
    pub attempts: Vec<(AttemptView, Vec<EvidenceView>)>,
    /// The journal, oldest first.
    pub timeline: Vec<EventView>,
}

/// What a job asks for and what it produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutput {
    /// The job.
    pub job: JobView,
    /// What it asks for.
    pub work: Work,
    /// The output of a text job that succeeded.
    pub text: Option<String>,
    /// What the plugin says about the candidate of a coding job.
    pub report: Option<AgentReport>,
}

/// A slot as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// The slot.
    pub slot: SlotId,
    /// Its pool when it last connected.
    pub pool: PoolId,
    /// Whether it is connected.
    pub connected: bool,
    /// When it was last heard of.
    pub last_seen: Timestamp,
    /// The job that it works on.
    pub active_job: Option<JobId>,
    /// The attempt that it works on.
    pub active_attempt: Option<AttemptId>,
}

/// When time alone changes something next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NextDue {
    /// The earliest deadline of a live lease.
    pub lease: Option<Timestamp>,
    /// The earliest time at which a waiting job becomes due that is not due yet.
    pub retry: Option<Timestamp>,
}

/// What opening a store found and set right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Sessions that an earlier Gate left connected.
    pub disconnected: usize,
    /// Leases that had run out.
    pub expired: Vec<EndedLease>,
    /// Live leases whose deadline lay further ahead than their TTL.
    pub clamped: usize,
    /// Live leases that got their TTL anew, for their Workers to come back.
    pub graced: usize,
    /// Live leases that run on.
    pub live: usize,
}

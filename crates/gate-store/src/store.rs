//! What the Gate asks of a store. The test suite is written against this trait.

use std::future::Future;
use std::pin::Pin;

use digest_text::Sha256Text;
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, Generation, Holder, JobId, NotAccepting, PoolId, SlotId,
};
use jiff::Timestamp;

use crate::{
    Attachment, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease, EventView,
    EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, NewJob, NextDue, Page,
    PauseReason, Paused, PoolView, QueuePlace, Retried, StoreError, Submitted, WorkerView,
};

/// An answer that arrives when the operation is durable. It need not be polled for the operation
/// to happen: a dropped answer is not a cancelled operation.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// The Gate's memory. Every operation is whole or absent.
///
/// An error for which [`StoreError::is_refusal`] holds changed nothing and is the caller's; any
/// other means that the store cannot be relied on, and the Gate has to stop.
pub trait Store: Send + Sync + 'static {
    /// Accepts a job, or finds the first job of the same idempotency key.
    ///
    /// Refusals: [`StoreError::IdempotencyConflict`], [`StoreError::PolicyMismatch`].
    fn submit(&self, job: NewJob, now: Timestamp) -> Answer<Submitted>;

    /// Takes the most urgent job of the slot's pool: highest priority, then oldest, then by id;
    /// jobs whose next attempt is due among them. Answers nothing if none waits, or while an
    /// earlier attempt of the slot is still live.
    ///
    /// Refusal: [`StoreError::Fenced`] if the session is not the connected one of its slot.
    fn claim(&self, request: ClaimRequest, now: Timestamp) -> Answer<Option<Lease>>;

    /// Prolongs a lease and answers its new deadline.
    ///
    /// Refusal: [`StoreError::Refused`].
    fn heartbeat(&self, job: JobId, holder: Holder, now: Timestamp) -> Answer<Timestamp>;

    /// Gives a live attempt of the slot to its new session, which proves itself with the token of
    /// the claim; the deadline stays. An attempt that has ended with a result may repeat it.
    ///
    /// Refusal: [`StoreError::Fenced`] if the session is not the connected one of its slot.
    fn attach(
        &self,
        job: JobId,
        holder: Holder,
        token: Sha256Text,
        now: Timestamp,
    ) -> Answer<Attachment>;

    /// Takes back a lease that its Worker has not begun: the job waits as before it.
    ///
    /// Refusal: [`StoreError::Refused`].
    fn withdraw(
        &self,
        job: JobId,
        holder: Holder,
        reason: NotAccepting,
        now: Timestamp,
    ) -> Answer<JobView>;

    /// Writes into the journal that nothing of an ended attempt of the slot runs any more.
    ///
    /// Refusal: [`StoreError::Refused`].
    fn stopped(&self, job: JobId, attempt: AttemptId, slot: SlotId, now: Timestamp) -> Answer<()>;

    /// Binds evidence to the live attempt; an identical record again is harmless, also once the
    /// attempt has ended with a result.
    ///
    /// Refusals: [`StoreError::Refused`], [`StoreError::InvalidEvidence`],
    /// [`StoreError::EvidenceConflict`], [`StoreError::TooMuchEvidence`].
    fn bind_evidence(
        &self,
        job: JobId,
        holder: Holder,
        batch: EvidenceBatch,
        now: Timestamp,
    ) -> Answer<Bound>;

    /// Ends the live attempt; the identical result again is answered as the first one was.
    ///
    /// Refusal: [`StoreError::Refused`].
    fn complete(
        &self,
        job: JobId,
        holder: Holder,
        completion: Completion,
        now: Timestamp,
    ) -> Answer<Completed>;

    /// Ends the live attempt as [`Store::complete`] does, and gives the slot its next job as
    /// [`Store::claim`] does, both or neither: a result that is refused gets no lease.
    ///
    /// Refusal: [`StoreError::Refused`].
    fn complete_and_claim(
        &self,
        job: JobId,
        holder: Holder,
        completion: Completion,
        next: ClaimRequest,
        now: Timestamp,
    ) -> Answer<(Completed, Option<Lease>)>;

    /// Ends up to 256 live attempts whose deadline has come, oldest deadline first; call it again
    /// while it answers that many.
    fn expire_due(&self, now: Timestamp) -> Answer<Vec<EndedLease>>;

    /// Cancels a job that has not ended; a cancelled one is answered again as it is.
    ///
    /// Refusals: [`StoreError::JobNotFound`], [`StoreError::JobTerminal`].
    fn cancel(&self, job: JobId, now: Timestamp) -> Answer<Cancelled>;

    /// Makes a waiting job due now, or repeats a failed or cancelled one as a new job `new_id`.
    ///
    /// Refusals: [`StoreError::JobNotFound`], [`StoreError::NotRetryable`].
    fn retry(&self, job: JobId, new_id: JobId, now: Timestamp) -> Answer<Retried>;

    /// Makes `generation` the live session of a slot.
    ///
    /// Refusal: [`StoreError::SlotBusy`] while another session is connected.
    fn connect_slot(
        &self,
        slot: SlotId,
        pool: PoolId,
        generation: Generation,
        now: Timestamp,
    ) -> Answer<()>;

    /// Marks the slot disconnected if `generation` is still its session; tells whether it was. Its
    /// lease runs on to the deadline.
    fn disconnect_slot(&self, slot: SlotId, generation: Generation, now: Timestamp)
    -> Answer<bool>;

    /// Answers a job.
    fn job(&self, job: JobId) -> Answer<Option<JobView>>;

    /// Answers a page of jobs, newest first.
    ///
    /// Refusal: [`StoreError::InvalidCursor`].
    fn list_jobs(&self, filter: JobFilter, page: Page) -> Answer<JobPage>;

    /// Answers the attempts of a job by ordinal, or nothing if there is no such job.
    fn attempts(&self, job: JobId) -> Answer<Option<Vec<AttemptView>>>;

    /// Answers a job with its attempts, their evidence and the journal, from one moment.
    fn result(&self, job: JobId) -> Answer<Option<JobResult>>;

    /// Answers the journal of a job, oldest first; empty if there is no such job.
    fn events(&self, job: JobId) -> Answer<Vec<EventView>>;

    /// Answers the evidence of an attempt in the order of its arrival, or nothing if the job has
    /// no such attempt.
    fn evidence(&self, job: JobId, attempt: AttemptId) -> Answer<Option<Vec<EvidenceView>>>;

    /// Answers what a job produced, or nothing if there is no such job.
    fn output(&self, job: JobId) -> Answer<Option<JobOutput>>;

    /// Answers every slot that ever connected, by Worker and slot.
    fn workers(&self) -> Answer<Vec<WorkerView>>;

    /// Answers one slot.
    fn worker(&self, slot: SlotId) -> Answer<Option<WorkerView>>;

    /// Answers the pools in which a job could be claimed at `now`.
    fn ready_pools(&self, now: Timestamp) -> Answer<Vec<PoolId>>;

    /// Answers when time alone changes something next, so that nobody has to poll.
    fn next_due(&self, now: Timestamp) -> Answer<NextDue>;

    /// Stops giving out jobs of a pool; what runs goes on. A paused pool keeps its time, and its
    /// reason unless there is a new one.
    fn pause_pool(
        &self,
        pool: PoolId,
        reason: Option<PauseReason>,
        now: Timestamp,
    ) -> Answer<Paused>;

    /// Gives out jobs of a pool again; tells whether it was paused.
    fn resume_pool(&self, pool: PoolId) -> Answer<bool>;

    /// Answers every pool that is paused or has jobs that have not ended, by id.
    fn pools(&self) -> Answer<Vec<PoolView>>;

    /// Answers where a job stands at `now`, or nothing if it does not wait.
    fn queue_place(&self, job: JobId, now: Timestamp) -> Answer<Option<QueuePlace>>;
}

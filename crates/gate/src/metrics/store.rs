//! A store that is measured: it asks another one and looks at what that answers.

use std::sync::Arc;
use std::time::Duration;

use cli_shell::clock;
use digest_text::Sha256Text;
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, Generation, Holder, JobId, NotAccepting, PoolId, SlotId,
};
use gate_store::{
    Answer, Attachment, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease,
    EventView, EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, NewJob,
    NextDue, Page, PauseReason, Paused, PoolView, QueuePlace, Retried, Store, Submitted,
    WorkerView,
};
use jiff::Timestamp;

use super::Metrics;

/// The store behind it, measured. What is not asked for to the end is not counted.
pub(crate) struct Measured {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
}

impl Measured {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { store, metrics }
    }

    fn measure<T: Send + 'static>(
        &self,
        operation: &'static str,
        answer: Answer<T>,
        note: fn(&Metrics, &T, Duration),
    ) -> Answer<T> {
        let metrics = Arc::clone(&self.metrics);
        let asked = clock::instant();
        Box::pin(async move {
            let answer = answer.await;
            let time = asked.elapsed();
            metrics.took(operation, time);
            if let Ok(answer) = &answer {
                note(&metrics, answer, time);
            }
            answer
        })
    }
}

/// Operations: their arguments, their answer, and what is counted of it.
macro_rules! operations {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(=> $note:expr)?;)+) => {
        impl Store for Measured {
            $(fn $name(&self, $($argument: $type),*) -> Answer<$answer> {
                let answer = self.store.$name($($argument),*);
                self.measure(stringify!($name), answer, operations!(@ $($note)?))
            })+
        }
    };
    (@) => { |_, _, _| {} };
    (@ $note:expr) => { $note };
}

operations! {
    fn submit(job: NewJob, now: Timestamp) -> Submitted => |metrics, submitted, _| {
        if let Submitted::Created(job) = submitted {
            metrics.accepted(&job.worker_pool);
        }
    };
    fn claim(request: ClaimRequest, now: Timestamp) -> Option<Lease>
        => |metrics, lease, time| claimed(metrics, lease.as_ref(), time);
    fn heartbeat(job: JobId, holder: Holder, now: Timestamp) -> Timestamp;
    fn attach(job: JobId, holder: Holder, token: Sha256Text, now: Timestamp) -> Attachment;
    fn withdraw(job: JobId, holder: Holder, reason: NotAccepting, now: Timestamp) -> JobView
        => |metrics, job, _| metrics.withdrawn(job);
    fn stopped(job: JobId, attempt: AttemptId, slot: SlotId, now: Timestamp) -> ();
    fn bind_evidence(job: JobId, holder: Holder, batch: EvidenceBatch, now: Timestamp) -> Bound;
    fn complete(job: JobId, holder: Holder, completion: Completion, now: Timestamp) -> Completed
        => |metrics, done, _| metrics.completed(done);
    fn complete_and_claim(
        job: JobId, holder: Holder, completion: Completion, next: ClaimRequest, now: Timestamp
    ) -> (Completed, Option<Lease>) => |metrics, (done, lease), time| {
        metrics.completed(done);
        claimed(metrics, lease.as_ref(), time);
    };
    fn expire_due(now: Timestamp) -> Vec<EndedLease> => |metrics, ended, _| {
        for lease in ended {
            metrics.expired(lease);
        }
    };
    fn cancel(job: JobId, now: Timestamp) -> Cancelled
        => |metrics, cancelled, _| metrics.cancelled(cancelled);
    fn retry(job: JobId, new_id: JobId, now: Timestamp) -> Retried => |metrics, retried, _| {
        if let Retried::Created(job) = retried {
            metrics.accepted(&job.worker_pool);
        }
    };
    fn connect_slot(slot: SlotId, pool: PoolId, generation: Generation, now: Timestamp) -> ();
    fn disconnect_slot(slot: SlotId, generation: Generation, now: Timestamp) -> bool;
    fn job(job: JobId) -> Option<JobView>;
    fn list_jobs(filter: JobFilter, page: Page) -> JobPage;
    fn attempts(job: JobId) -> Option<Vec<AttemptView>>;
    fn result(job: JobId) -> Option<JobResult>;
    fn events(job: JobId) -> Vec<EventView>;
    fn evidence(job: JobId, attempt: AttemptId) -> Option<Vec<EvidenceView>>;
    fn output(job: JobId) -> Option<JobOutput>;
    fn workers() -> Vec<WorkerView>;
    fn worker(slot: SlotId) -> Option<WorkerView>;
    fn ready_pools(now: Timestamp) -> Vec<PoolId>;
    fn next_due(now: Timestamp) -> NextDue;
    fn pause_pool(pool: PoolId, reason: Option<PauseReason>, now: Timestamp) -> Paused;
    fn resume_pool(pool: PoolId) -> bool;
    fn pools() -> Vec<PoolView>;
    fn queue_place(job: JobId, now: Timestamp) -> Option<QueuePlace>;
}

fn claimed(metrics: &Metrics, lease: Option<&Lease>, time: Duration) {
    if let Some(lease) = lease {
        metrics.claimed(lease.policy.worker_pool(), time);
    }
}

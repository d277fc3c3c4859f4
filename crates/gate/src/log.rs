//! The log: one event for each step of a job, under the names that operators
//! search for. No token, path, task text or output is ever an argument here.

use std::time::Duration;

use forge_domain::{
    AttemptId, CancelReason, FailureCode, JobId, JobStatus, NotAccepting, PoolId, SlotId,
};
use gate_link::LeaseKey;
use gate_store::{Completed, EndedLease, JobView, Pause};

use crate::error::GateError;

macro_rules! lifecycle {
    ($event:literal $(, $($fields:tt)*)?) => {
        tracing::info!(component = "gate", event = $event $(, $($fields)*)?, "gate lifecycle")
    };
}

pub(crate) fn startup(version: &str) {
    lifecycle!("startup", version);
}

pub(crate) fn listening(address: &str) {
    lifecycle!("listening", address);
}

pub(crate) fn startup_failed(failure_code: &str) {
    tracing::error!(
        component = "gate",
        event = "startup_failed",
        failure_code,
        "gate lifecycle"
    );
}

/// The Gate cannot go on; what it says on its way out tells the whole cause.
pub(crate) fn failed(error: &GateError) {
    let reason = short(&error.to_string());
    tracing::error!(
        component = "gate",
        event = "failed",
        reason,
        "gate lifecycle"
    );
}

pub(crate) fn stopped() {
    lifecycle!("stopped");
}

pub(crate) fn job_submitted(job: &JobView) {
    lifecycle!("job_submitted", job_id = %job.id, status = %job.status);
}

pub(crate) fn job_cancelled(job: &JobView) {
    lifecycle!("job_cancelled", job_id = %job.id, status = %job.status, failure_code = %FailureCode::Cancelled);
}

pub(crate) fn worker_connected(slot: &SlotId) {
    lifecycle!("worker_connected", worker_id = %slot);
}

pub(crate) fn worker_disconnected(slot: &SlotId, reason: &str) {
    lifecycle!("worker_disconnected", worker_id = %slot, reason);
}

pub(crate) fn attempt_leased(job: &JobId, attempt: &AttemptId, slot: &SlotId) {
    lifecycle!("attempt_leased", job_id = %job, attempt_id = %attempt, worker_id = %slot);
}

pub(crate) fn evidence_bound(job: &JobId, attempt: &AttemptId, slot: &SlotId, records: usize) {
    lifecycle!("evidence_bound", job_id = %job, attempt_id = %attempt, worker_id = %slot, records);
}

/// A slot says whether it takes work.
pub(crate) fn worker_ready(slot: &SlotId, refuses: Option<NotAccepting>) {
    let reason = refuses.map(NotAccepting::as_str).unwrap_or_default();
    lifecycle!("worker_ready", worker_id = %slot, accepting = refuses.is_none(), reason);
}

/// An attempt goes on over a new connection.
pub(crate) fn attempt_reattached(lease: &LeaseKey, slot: &SlotId, deadline_ms: u64) {
    lifecycle!("attempt_reattached", job_id = %lease.job_id, attempt_id = %lease.attempt_id, worker_id = %slot, deadline_ms);
}

/// A slot claims an attempt that is none of its own any more.
pub(crate) fn attach_refused(lease: &LeaseKey, slot: &SlotId) {
    lifecycle!("attach_refused", job_id = %lease.job_id, attempt_id = %lease.attempt_id, worker_id = %slot);
}

/// A lease that was given back, or never sent.
pub(crate) fn attempt_withdrawn(lease: &LeaseKey, slot: &SlotId, reason: NotAccepting) {
    lifecycle!("attempt_withdrawn", job_id = %lease.job_id, attempt_id = %lease.attempt_id, worker_id = %slot, %reason);
}

/// A Worker was told to stop an attempt.
pub(crate) fn cancel_sent(lease: &LeaseKey, slot: &SlotId, reason: CancelReason) {
    lifecycle!("cancel_sent", job_id = %lease.job_id, attempt_id = %lease.attempt_id, worker_id = %slot, %reason);
}

/// Nothing of a cancelled attempt runs any more; `took` is from the cancellation.
pub(crate) fn attempt_stopped(lease: &LeaseKey, slot: &SlotId, took: Duration) {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    lifecycle!("attempt_stopped", job_id = %lease.job_id, attempt_id = %lease.attempt_id, worker_id = %slot, ms);
}

/// Live activity that is not shown: too many attempts have some.
pub(crate) fn activity_dropped(attempt: &AttemptId, slot: &SlotId, total: u64) {
    lifecycle!("activity_dropped", attempt_id = %attempt, worker_id = %slot, total);
}

pub(crate) fn pool_paused(pool: &PoolId, pause: &Pause) {
    let reason = pause.reason.as_ref().map(|reason| short(reason.as_str()));
    let reason = reason.unwrap_or_default();
    lifecycle!("pool_paused", pool = %pool, since = %pause.since, reason);
}

pub(crate) fn pool_resumed(pool: &PoolId) {
    lifecycle!("pool_resumed", pool = %pool);
}

/// A message that was refused; the Worker hears only that it was.
pub(crate) fn message_refused(slot: &SlotId, error: &dyn std::error::Error) {
    let reason = short(&error.to_string());
    let cause = error
        .source()
        .map(|cause| short(&cause.to_string()))
        .unwrap_or_default();
    tracing::warn!(
        component = "gate",
        event = "message_refused",
        worker_id = %slot,
        reason,
        cause,
        "gate lifecycle"
    );
}

/// What a peer wrote may be in it: visible and bounded.
fn short(text: &str) -> String {
    const MOST: usize = 200;
    cli_shell::visible(text).chars().take(MOST).collect()
}

/// A result that a Worker delivered.
pub(crate) fn completed(completed: &Completed, attempt: &AttemptId, slot: &SlotId) {
    let job = &completed.job;
    if completed.repeated {
        // The job may be in any state by now; what its attempt ended with has been logged.
        lifecycle!("result_repeated", job_id = %job.id, attempt_id = %attempt, worker_id = %slot);
        return;
    }
    ended(&job.id, attempt, slot, job.status, job.failure_code, job);
}

/// A lease that ran out.
pub(crate) fn lease_expired(lease: &EndedLease) {
    match lease.status {
        JobStatus::Failed => lifecycle!(
            "terminal_failure",
            job_id = %lease.job,
            attempt_id = %lease.attempt,
            worker_id = %lease.slot,
            status = %lease.status,
            failure_code = %FailureCode::MaxAttemptsExceeded
        ),
        _ => lifecycle!(
            "attempt_retry",
            job_id = %lease.job,
            attempt_id = %lease.attempt,
            worker_id = %lease.slot,
            status = %lease.status,
            failure_code = "lease_expired"
        ),
    }
}

fn ended(
    job_id: &JobId,
    attempt_id: &AttemptId,
    worker_id: &SlotId,
    status: JobStatus,
    code: Option<FailureCode>,
    job: &JobView,
) {
    match (status, &job.candidate_sha) {
        (JobStatus::Succeeded, Some(candidate_sha)) => {
            lifecycle!("terminal_candidate", %job_id, %attempt_id, %worker_id, %status, %candidate_sha);
        }
        (JobStatus::Succeeded, None) => {
            lifecycle!("terminal_success", %job_id, %attempt_id, %worker_id, %status);
        }
        (JobStatus::RetryWait, _) => {
            let failure_code = FailureCode::ExecutionFailed;
            lifecycle!("attempt_retry", %job_id, %attempt_id, %worker_id, %status, %failure_code);
        }
        _ => {
            let failure_code = code.map(FailureCode::as_str).unwrap_or_default();
            lifecycle!("terminal_failure", %job_id, %attempt_id, %worker_id, %status, failure_code);
        }
    }
}

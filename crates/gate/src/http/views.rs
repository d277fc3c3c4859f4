//! How jobs, attempts, events and Workers look in JSON. Fields that have no
//! value are left out. Neither the text of a job nor its output is in any of
//! them.

use bounded::GitSha;
use forge_domain::{
    AgentReport, AttemptId, AttemptStatus, Disposition, Event, EvidenceRecord, FailureCode, JobId,
    JobKind, JobStatus, PoolId, Priority, RepositoryId, SlotId, SourceRef, WorkerId,
};
use gate_store::{AttemptView, EventView, EvidenceView, JobResult, JobView, WorkerView};
use jiff::Timestamp;
use serde::Serialize;

use crate::activity::StageReached;
use crate::pools::{self, SlotState};
use crate::state::GateState;

/// The job object.
#[derive(Serialize)]
pub(super) struct Job<'a> {
    id: &'a JobId,
    kind: JobKind,
    status: JobStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<&'a AttemptId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a SlotId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_id: Option<&'a RepositoryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_sha: Option<&'a GitSha>,
    worker_pool: &'a PoolId,
    policy_version: u64,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ref: Option<&'a SourceRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_of: Option<&'a JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a GitSha>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<FailureCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<[LiveAttempt<'a>; 1]>,
}

/// The attempt that runs.
#[derive(Serialize)]
struct LiveAttempt<'a> {
    id: &'a AttemptId,
    ordinal: u16,
    worker_id: &'a SlotId,
    status: AttemptStatus,
    /// What the attempt says of itself, if that was negotiated. Checked by nobody.
    activity: Vec<StageReached>,
}

impl<'a> Job<'a> {
    /// The job, and what the attempt that has it says of itself.
    pub(super) fn of(job: &'a JobView, state: &GateState) -> Self {
        let live = match (&job.attempt_id, &job.worker_id) {
            (Some(id), Some(worker_id)) if job.status == JobStatus::Leased => Some([LiveAttempt {
                id,
                ordinal: job.attempts,
                worker_id,
                status: AttemptStatus::Leased,
                activity: state.activity_of(job),
            }]),
            _ => None,
        };
        Self {
            id: &job.id,
            kind: job.kind,
            status: job.status,
            attempt_id: job.attempt_id.as_ref(),
            worker_id: job.worker_id.as_ref(),
            repository_id: job.repository_id.as_ref(),
            base_sha: job.base_sha.as_ref(),
            worker_pool: &job.worker_pool,
            policy_version: job.policy_version,
            priority: job.priority,
            source_ref: job.source_ref.as_ref(),
            retry_of: job.retry_of.as_ref(),
            candidate_sha: job.candidate_sha.as_ref(),
            failure_code: job.failure_code,
            retry_at: job.retry_at,
            created_at: job.created_at,
            updated_at: job.updated_at,
            attempts: live,
        }
    }
}

/// The short form of a job.
#[derive(Serialize)]
pub(super) struct Status<'a> {
    id: &'a JobId,
    kind: JobKind,
    status: JobStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<&'a AttemptId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a SlotId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_sha: Option<&'a GitSha>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a GitSha>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<FailureCode>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<'a> Status<'a> {
    /// Without the failure code: the status route does not tell it.
    pub(super) fn of(job: &'a JobView) -> Self {
        Self {
            failure_code: None,
            ..Self::of_terminal(job)
        }
    }

    /// With the failure code of a job that has ended.
    fn of_terminal(job: &'a JobView) -> Self {
        Self {
            id: &job.id,
            kind: job.kind,
            status: job.status,
            attempt_id: job.attempt_id.as_ref(),
            worker_id: job.worker_id.as_ref(),
            base_sha: job.base_sha.as_ref(),
            candidate_sha: job.candidate_sha.as_ref(),
            failure_code: job.failure_code,
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

/// Everything about a job that has ended.
#[derive(Serialize)]
pub(super) struct FullResult<'a> {
    job: Status<'a>,
    attempts: Vec<Attempt<'a>>,
    timeline: Vec<TimelineItem<'a>>,
}

impl<'a> From<&'a JobResult> for FullResult<'a> {
    fn from(result: &'a JobResult) -> Self {
        Self {
            job: Status::of_terminal(&result.job),
            attempts: result
                .attempts
                .iter()
                .map(|(attempt, evidence)| Attempt::new(attempt, evidence))
                .collect(),
            timeline: result.timeline.iter().map(TimelineItem::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct Attempt<'a> {
    id: &'a AttemptId,
    ordinal: u16,
    worker_id: &'a SlotId,
    status: AttemptStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_disposition: Option<Disposition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<FailureCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a GitSha>,
    /// What the plugin says about its work, apart from what was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_report: Option<&'a AgentReport>,
    leased_at: Timestamp,
    deadline_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    evidence: Vec<&'a EvidenceRecord>,
}

impl<'a> Attempt<'a> {
    fn new(attempt: &'a AttemptView, evidence: &'a [EvidenceView]) -> Self {
        Self {
            id: &attempt.id,
            ordinal: attempt.ordinal,
            worker_id: &attempt.worker_id,
            status: attempt.status,
            failure_disposition: attempt.failure_disposition,
            failure_code: attempt.failure_code,
            candidate_sha: attempt.candidate_sha.as_ref(),
            agent_report: attempt.report.as_ref(),
            leased_at: attempt.leased_at,
            deadline_at: attempt.deadline_at,
            completed_at: attempt.completed_at,
            evidence: evidence.iter().map(|view| &view.record).collect(),
        }
    }
}

/// A stored record with what the Gate adds to it.
#[derive(Serialize)]
pub(super) struct Evidence<'a> {
    #[serde(flatten)]
    record: &'a EvidenceRecord,
    /// One placeholder for each argument of the declared check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    argv: Vec<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    argv_redacted: bool,
    bound_at: Timestamp,
}

impl<'a> Evidence<'a> {
    /// `checks` are the declared checks of the job.
    pub(super) fn new(view: &'a EvidenceView, checks: &[Vec<String>]) -> Self {
        let check = view
            .record
            .check_index
            .and_then(|index| checks.get(usize::from(index)));
        let argv = vec![forge_domain::REDACTED; check.map_or(0, Vec::len)];
        Self {
            record: &view.record,
            argv_redacted: !argv.is_empty(),
            argv,
            bound_at: view.bound_at,
        }
    }
}

/// An entry of the journal in a result.
#[derive(Serialize)]
struct TimelineItem<'a> {
    r#type: &'static str,
    at: Timestamp,
    #[serde(flatten)]
    facts: Facts<'a>,
}

impl<'a> From<&'a EventView> for TimelineItem<'a> {
    fn from(view: &'a EventView) -> Self {
        Self {
            r#type: view.event.kind(),
            at: view.at,
            facts: Facts::of(&view.event),
        }
    }
}

#[derive(Serialize, Default)]
struct Facts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<&'a AttemptId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_ordinal: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<Disposition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<FailureCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a GitSha>,
}

impl<'a> Facts<'a> {
    fn of(event: &'a Event) -> Self {
        let of_attempt = |attempt: &'a AttemptId, ordinal: u16| Self {
            attempt_id: Some(attempt),
            attempt_ordinal: Some(ordinal),
            ..Self::default()
        };
        let last = |attempt: &'a Option<(AttemptId, u16)>, code: FailureCode| Self {
            attempt_id: attempt.as_ref().map(|(id, _)| id),
            attempt_ordinal: attempt.as_ref().map(|(_, ordinal)| *ordinal),
            disposition: attempt.as_ref().map(|_| Disposition::Terminal),
            failure_code: Some(code),
            ..Self::default()
        };
        match event {
            Event::Submitted => Self::default(),
            Event::Leased {
                attempt,
                ordinal,
                lease_expires,
            }
            | Event::LeaseExpired {
                attempt,
                ordinal,
                lease_expires,
            } => Self {
                lease_expires_at: Some(*lease_expires),
                ..of_attempt(attempt, *ordinal)
            },
            Event::RetryableFailed {
                attempt,
                ordinal,
                code,
            } => Self {
                disposition: Some(Disposition::Retryable),
                failure_code: Some(*code),
                ..of_attempt(attempt, *ordinal)
            },
            Event::RetryScheduled {
                attempt,
                ordinal,
                retry_at,
            } => Self {
                retry_at: Some(*retry_at),
                ..of_attempt(attempt, *ordinal)
            },
            Event::RetryRequested { retry_at } => Self {
                retry_at: Some(*retry_at),
                ..Self::default()
            },
            Event::Failed { attempt, code } => last(attempt, *code),
            Event::Cancelled { attempt } => last(attempt, FailureCode::Cancelled),
            Event::Reattached { attempt, ordinal }
            | Event::Stopped { attempt, ordinal }
            | Event::Withdrawn {
                attempt, ordinal, ..
            } => of_attempt(attempt, *ordinal),
            Event::Succeeded { candidate } => Self {
                candidate_sha: candidate.as_ref(),
                ..Self::default()
            },
        }
    }
}

/// An entry of the journal.
#[derive(Serialize)]
pub(super) struct JournalEntry<'a> {
    id: i64,
    job_id: &'a JobId,
    kind: &'static str,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<FailureCode>,
}

impl<'a> From<&'a EventView> for JournalEntry<'a> {
    fn from(view: &'a EventView) -> Self {
        Self {
            id: view.id,
            job_id: &view.job,
            kind: view.event.kind(),
            at: view.at,
            failure_code: Facts::of(&view.event).failure_code,
        }
    }
}

/// One slot.
#[derive(Serialize)]
pub(super) struct Worker<'a> {
    id: &'a SlotId,
    base_id: &'a WorkerId,
    slot: u16,
    pool: &'a PoolId,
    connected: bool,
    /// Null if it never connected.
    last_seen: Option<Timestamp>,
    occupied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_job_id: Option<&'a JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_attempt_id: Option<&'a AttemptId>,
    /// `idle`, `working`, `stopping`, `greeting`, `away`, or why it takes no work.
    state: &'static str,
    /// Why it takes no work, as its Worker last said.
    #[serde(skip_serializing_if = "Option::is_none")]
    refuses: Option<Refusal>,
}

/// The word of a Worker that a slot takes no work.
#[derive(Serialize)]
struct Refusal {
    reason: &'static str,
    since: Timestamp,
}

impl<'a> Worker<'a> {
    /// A slot that has connected before.
    pub(super) fn seen(view: &'a WorkerView, state: &GateState) -> Self {
        let working = view.active_attempt.is_some();
        let refuses = pools::refuses(state, &view.slot).map(|refuses| Refusal {
            reason: refuses.reason.as_str(),
            since: refuses.since,
        });
        Self {
            connected: view.connected,
            last_seen: Some(view.last_seen),
            occupied: working,
            active_job_id: view.active_job.as_ref(),
            active_attempt_id: view.active_attempt.as_ref(),
            state: pools::judge(state, &view.slot, view.connected, working).as_str(),
            refuses,
            ..Self::never_seen(&view.slot, &view.pool)
        }
    }

    /// A configured slot that never connected.
    pub(super) fn never_seen(slot: &'a SlotId, pool: &'a PoolId) -> Self {
        Self {
            state: SlotState::Away.as_str(),
            refuses: None,
            id: slot,
            base_id: slot.worker(),
            slot: slot.slot(),
            pool,
            connected: false,
            last_seen: None,
            occupied: false,
            active_job_id: None,
            active_attempt_id: None,
        }
    }
}

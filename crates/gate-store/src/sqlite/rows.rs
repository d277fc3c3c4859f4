//! Rows of jobs and attempts, and the one way in which a run goes back into them.

use bounded::GitSha;
use digest_text::Sha256Text;
use forge_domain::{
    AgentReport, AttemptEnd, AttemptStatus, Disposition, Event, FailureCode, FinishedAttempt,
    Generation, Holder, JobId, JobKind, JobState, JobStatus, LiveAttempt, Priority, ResolvedPolicy,
    Run, SlotId, Step, Work, WorkerFailure, WorkerId,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::memory::Memory;
use super::values::{inconsistent, nanos, opt_parsed, parsed, time};
use crate::{EndedLease, JobView, StoreError};

/// Selects jobs with their last attempt, in the order in which [`JobRow::read`] takes the columns.
macro_rules! select_jobs {
    ($tail:literal) => {
        concat!(
            "SELECT j.seq, j.id, j.kind, j.status, j.pool, j.priority, j.policy, j.work, j.repository_id, j.base_sha, \
             j.source_ref, j.retry_of, j.attempts, j.candidate_sha, j.failure_code, j.retry_at, j.created_at, \
             j.updated_at, a.seq, a.id, a.ordinal, a.generation, a.leased_at, a.deadline_at, s.worker, s.slot, s.seq \
             FROM jobs j LEFT JOIN attempts a ON a.seq = j.last_attempt LEFT JOIN slots s ON s.seq = a.slot ",
            $tail
        )
    };
}
pub(super) use select_jobs;

/// Reads a policy, which must be canonical.
pub(super) fn read_policy(connection: &Connection, seq: i64) -> Result<ResolvedPolicy, StoreError> {
    let canonical: String = connection
        .prepare_cached("SELECT canonical FROM policies WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))?;
    ResolvedPolicy::from_canonical(&canonical)
        .map_err(|error| inconsistent(format!("policy {seq}"), error))
}

/// Reads what a job asks for, which must be canonical.
pub(super) fn read_work(connection: &Connection, seq: i64) -> Result<Work, StoreError> {
    let (kind, body): (String, String) = connection
        .prepare_cached("SELECT kind, body FROM works WHERE seq = ?1")?
        .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let work = match kind.as_str() {
        "coding" => forge_domain::CodingTask::from_canonical(&body).map(Work::Coding),
        _ => Work::text(body),
    };
    work.map_err(|error| inconsistent(format!("work {seq}"), error))
}

/// The last attempt of a job.
#[derive(Debug, Clone)]
pub(super) struct LastAttempt {
    pub(super) seq: i64,
    pub(super) slot_seq: i64,
    live: LiveAttempt,
}

/// A job with its last attempt.
#[derive(Debug)]
pub(super) struct JobRow {
    pub(super) seq: i64,
    pub(super) policy: i64,
    pub(super) work: i64,
    pub(super) last: Option<LastAttempt>,
    pub(super) view: JobView,
}

impl JobRow {
    /// Finds a job by its id.
    pub(super) fn find(connection: &Connection, id: &JobId) -> Result<Option<Self>, StoreError> {
        connection
            .prepare_cached(select_jobs!("WHERE j.id = ?1"))?
            .query_row([id.as_str()], |row| Ok(Self::read(row)))
            .optional()?
            .transpose()
    }

    /// Tells whether a job has this id.
    pub(super) fn exists(connection: &Connection, id: &JobId) -> Result<bool, StoreError> {
        Ok(connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1)")?
            .query_row([id.as_str()], |row| row.get(0))?)
    }

    /// Finds a job by its id, and refuses an unknown one.
    pub(super) fn get(connection: &Connection, id: &JobId) -> Result<Self, StoreError> {
        Self::find(connection, id)?.ok_or(StoreError::JobNotFound)
    }

    /// Reads the job of a row.
    pub(super) fn at(connection: &Connection, seq: i64) -> Result<Self, StoreError> {
        connection
            .prepare_cached(select_jobs!("WHERE j.seq = ?1"))?
            .query_row([seq], |row| Ok(Self::read(row)))?
    }

    /// Reads one row of `select_jobs!`.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let last = match row.get::<_, Option<i64>>(18)? {
            None => None,
            Some(seq) => Some(LastAttempt {
                seq,
                slot_seq: row.get(26)?,
                live: read_live(row)?,
            }),
        };
        let view = JobView {
            id: parsed(row, 1)?,
            kind: parsed(row, 2)?,
            status: parsed(row, 3)?,
            worker_pool: parsed(row, 4)?,
            priority: Priority::new(row.get(5)?).map_err(|error| inconsistent("a job", error))?,
            attempt_id: last.as_ref().map(|last| *last.live.id()),
            worker_id: last.as_ref().map(|last| last.live.slot().clone()),
            repository_id: opt_parsed(row, 8)?,
            base_sha: opt_parsed(row, 9)?,
            policy_version: 1,
            source_ref: opt_parsed(row, 10)?,
            retry_of: opt_parsed(row, 11)?,
            attempts: row.get(12)?,
            candidate_sha: opt_parsed(row, 13)?,
            failure_code: opt_parsed(row, 14)?,
            retry_at: row.get::<_, Option<i64>>(15)?.map(time),
            created_at: time(row.get(16)?),
            updated_at: time(row.get(17)?),
        };
        Ok(Self {
            seq: row.get(0)?,
            policy: row.get(6)?,
            work: row.get(7)?,
            last,
            view,
        })
    }

    /// Rebuilds the machine.
    pub(super) fn run(&self, policy: &ResolvedPolicy) -> Result<Run, StoreError> {
        let broken = |reason: &str| inconsistent(format!("job {}", self.view.id), reason);
        let state = match self.view.status {
            JobStatus::Pending => JobState::Pending,
            JobStatus::Leased => {
                let last = self
                    .last
                    .as_ref()
                    .ok_or_else(|| broken("it is leased and has no attempt"))?;
                JobState::Leased(last.live.clone())
            }
            JobStatus::RetryWait => {
                let retry_at = self
                    .view
                    .retry_at
                    .ok_or_else(|| broken("it waits without a time"))?;
                JobState::RetryWait { retry_at }
            }
            JobStatus::Succeeded => JobState::Succeeded {
                candidate: self.view.candidate_sha,
            },
            JobStatus::Failed => {
                let code = self
                    .view
                    .failure_code
                    .ok_or_else(|| broken("it failed without a code"))?;
                JobState::Failed { code }
            }
            JobStatus::Cancelled => JobState::Cancelled,
        };
        Run::restore(self.view.kind, policy, self.view.attempts, state)
            .map_err(|error| broken(&error.to_string()))
    }

    /// Returns the lease that the last attempt had, as it ended.
    pub(super) fn ended_lease(&self) -> Option<EndedLease> {
        let last = self.last.as_ref()?;
        Some(EndedLease {
            job: self.view.id,
            attempt: *last.live.id(),
            slot: last.live.slot().clone(),
            pool: self.view.worker_pool.clone(),
            status: self.view.status,
            retry_at: self.view.retry_at,
        })
    }
}

fn read_live(row: &Row<'_>) -> Result<LiveAttempt, StoreError> {
    let worker: WorkerId = parsed(row, 24)?;
    let slot = SlotId::new(worker, row.get(25)?).map_err(|error| inconsistent("a slot", error))?;
    let generation: Generation = parsed(row, 21)?;
    LiveAttempt::restore(
        parsed(row, 19)?,
        row.get(20)?,
        slot,
        generation,
        time(row.get(22)?),
        time(row.get(23)?),
    )
    .map_err(|error| inconsistent("an attempt", error))
}

/// Writes what a step did to a job, apart from granting it: the attempt that ended, the job, the
/// journal.
pub(super) fn save(
    connection: &Connection,
    memory: &mut Memory,
    row: &mut JobRow,
    step: &Step,
    now: Timestamp,
) -> Result<(), StoreError> {
    if let (Some(finished), Some(last)) = (&step.finished, &row.last) {
        save_end(connection, last.seq, finished)?;
        memory.slot_is_free(last.live.slot(), true);
    }
    let state = step.run.state();
    row.view.status = state.status();
    row.view.candidate_sha = match state {
        JobState::Succeeded { candidate } => *candidate,
        _ => None,
    };
    row.view.failure_code = state.failure();
    row.view.retry_at = match state {
        JobState::RetryWait { retry_at } => Some(*retry_at),
        _ => None,
    };
    row.view.updated_at = row.view.updated_at.max(now);
    let view = &row.view;
    let ready = view.retry_at.is_some_and(|retry_at| retry_at <= now);
    match view.retry_at {
        Some(_) if ready => memory.not_empty(&view.worker_pool),
        Some(retry_at) => memory.waits(retry_at),
        None => {}
    }
    connection
        .prepare_cached(
            "UPDATE jobs SET status = ?2, ready = ?3, candidate_sha = ?4, failure_code = ?5, retry_at = ?6, \
             updated_at = ?7 WHERE seq = ?1",
        )?
        .execute(params![
            row.seq,
            view.status.as_str(),
            ready,
            view.candidate_sha.as_ref().map(GitSha::as_str),
            view.failure_code.map(FailureCode::as_str),
            view.retry_at.map(nanos),
            nanos(view.updated_at),
        ])?;
    save_events(connection, row.seq, &step.events, now)
}

/// What a grant needs to know beside the run.
#[derive(Debug)]
pub(super) struct Place {
    /// The row of the slot.
    pub(super) slot: i64,
    /// What a later connection of it has to prove.
    pub(super) attach: Option<Sha256Text>,
}

/// Writes what a grant did: the attempt, the job that it is the last one of, the journal.
pub(super) fn save_grant(
    connection: &Connection,
    row: &mut JobRow,
    step: &Step,
    live: &LiveAttempt,
    place: &Place,
    now: Timestamp,
) -> Result<(), StoreError> {
    let seq = connection
        .prepare_cached(
            "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at, attach_digest) \
             VALUES (?1, ?2, ?3, ?4, ?5, 'leased', ?6, ?7, ?8)",
        )?
        .insert(params![
            live.id().as_str(),
            row.seq,
            live.ordinal(),
            place.slot,
            live.generation().as_str(),
            nanos(live.leased_at()),
            nanos(live.deadline()),
            place.attach.map(String::from),
        ])?;
    row.view.status = step.run.status();
    row.view.attempts = step.run.attempts();
    row.view.retry_at = None;
    row.view.updated_at = row.view.updated_at.max(now);
    row.view.attempt_id = Some(*live.id());
    row.view.worker_id = Some(live.slot().clone());
    row.last = Some(LastAttempt {
        seq,
        slot_seq: place.slot,
        live: live.clone(),
    });
    connection
        .prepare_cached(
            "UPDATE jobs SET status = ?2, ready = 0, attempts = ?3, last_attempt = ?4, retry_at = NULL, updated_at = ?5 \
             WHERE seq = ?1",
        )?
        .execute(params![
            row.seq,
            row.view.status.as_str(),
            row.view.attempts,
            seq,
            nanos(row.view.updated_at),
        ])?;
    save_events(connection, row.seq, &step.events, now)
}

/// Writes what a withdrawal did: the job waits as before its last attempt, whose row goes.
pub(super) fn save_withdrawal(
    connection: &Connection,
    memory: &mut Memory,
    row: &mut JobRow,
    step: &Step,
    now: Timestamp,
) -> Result<(), StoreError> {
    let last = row
        .last
        .take()
        .ok_or_else(|| inconsistent("a withdrawal", "it had no attempt"))?;
    let retry_at = match step.run.state() {
        JobState::RetryWait { retry_at } => Some(*retry_at),
        _ => None,
    };
    connection
        .prepare_cached(
            "UPDATE jobs SET status = ?2, ready = 1, attempts = ?3, retry_at = ?4, updated_at = max(updated_at, ?5), \
             last_attempt = (SELECT seq FROM attempts WHERE job = ?1 AND ordinal = ?3) WHERE seq = ?1",
        )?
        .execute(params![
            row.seq,
            step.run.status().as_str(),
            step.run.attempts(),
            retry_at.map(nanos),
            nanos(now),
        ])?;
    connection
        .prepare_cached("DELETE FROM attempts WHERE seq = ?1")?
        .execute([last.seq])?;
    save_events(connection, row.seq, &step.events, now)?;
    memory.slot_is_free(last.live.slot(), true);
    memory.not_empty(&row.view.worker_pool);
    *row = JobRow::at(connection, row.seq)?;
    Ok(())
}

/// Appends entries to the journal of a job.
pub(super) fn save_events(
    connection: &Connection,
    job: i64,
    events: &[Event],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut insert = connection
        .prepare_cached("INSERT INTO events (job, kind, detail, at) VALUES (?1, ?2, ?3, ?4)")?;
    for event in events {
        insert.execute(params![job, event.kind(), event.detail(), nanos(now)])?;
    }
    Ok(())
}

fn save_end(
    connection: &Connection,
    attempt: i64,
    finished: &FinishedAttempt,
) -> Result<(), StoreError> {
    let end = finished.end();
    let failure = end.failure();
    let report = match end {
        AttemptEnd::Candidate {
            report: Some(report),
            ..
        } => Some(report.canonical()),
        _ => None,
    };
    let (candidate, result) = match end {
        AttemptEnd::Text { result } => (None, Some(result.as_str())),
        AttemptEnd::Candidate { sha, .. } => (Some(sha.as_str()), report.as_deref()),
        AttemptEnd::Failed(_) | AttemptEnd::Expired | AttemptEnd::Cancelled => (None, None),
    };
    connection
        .prepare_cached(
            "UPDATE attempts SET status = ?2, completed_at = ?3, failure_code = ?4, failure_disposition = ?5, \
             candidate_sha = ?6, result = ?7 WHERE seq = ?1",
        )?
        .execute(params![
            attempt,
            end.status().as_str(),
            nanos(finished.completed_at()),
            failure.map(|(code, _)| code.as_str()),
            failure.map(|(_, disposition)| disposition.as_str()),
            candidate,
            result,
        ])?;
    Ok(())
}

/// What is stored of how an attempt ended.
#[derive(Debug)]
pub(super) struct StoredEnd {
    pub(super) status: AttemptStatus,
    pub(super) failure_code: Option<FailureCode>,
    pub(super) failure_disposition: Option<Disposition>,
    pub(super) candidate_sha: Option<GitSha>,
    pub(super) result: Option<String>,
}

impl StoredEnd {
    /// Finds an attempt of a job that was leased to this very slot, with its row.
    pub(super) fn of(
        connection: &Connection,
        job: &JobRow,
        holder: &Holder,
    ) -> Result<Option<(i64, Self)>, StoreError> {
        connection
            .prepare_cached(
                "SELECT a.seq, a.status, a.failure_code, a.failure_disposition, a.candidate_sha, a.result \
                 FROM attempts a JOIN slots s ON s.seq = a.slot \
                 WHERE a.job = ?1 AND a.id = ?2 AND s.worker = ?3 AND s.slot = ?4",
            )?
            .query_row(
                params![
                    job.seq,
                    holder.attempt.as_str(),
                    holder.slot.worker().as_str(),
                    holder.slot.slot()
                ],
                |row| Ok((row.get(0)?, Self::read(row, 1))),
            )
            .optional()?
            .map(|(seq, stored)| Ok((seq, stored?)))
            .transpose()
    }

    /// Reads status, failure code, disposition, candidate and result, from column `first` on.
    pub(super) fn read(row: &Row<'_>, first: usize) -> Result<Self, StoreError> {
        Ok(Self {
            status: parsed(row, first)?,
            failure_code: opt_parsed(row, first + 1)?,
            failure_disposition: opt_parsed(row, first + 2)?,
            candidate_sha: opt_parsed(row, first + 3)?,
            result: row.get(first + 4)?,
        })
    }

    /// Returns the report of a candidate.
    pub(super) fn report(&self) -> Result<Option<AgentReport>, StoreError> {
        match (&self.candidate_sha, &self.result) {
            (Some(_), Some(text)) => AgentReport::parse(text)
                .map(Some)
                .map_err(|error| inconsistent("a stored report", error)),
            _ => Ok(None),
        }
    }

    /// Rebuilds the end, or nothing while the attempt is live.
    pub(super) fn end(&self, kind: JobKind) -> Result<Option<AttemptEnd>, StoreError> {
        let broken = |reason: &str| inconsistent("a finished attempt", reason);
        Ok(Some(match self.status {
            AttemptStatus::Leased => return Ok(None),
            AttemptStatus::Succeeded if kind == JobKind::Legacy => {
                let result = self
                    .result
                    .clone()
                    .ok_or_else(|| broken("it has no result"))?;
                AttemptEnd::Text { result }
            }
            AttemptStatus::Succeeded => {
                let sha = self
                    .candidate_sha
                    .ok_or_else(|| broken("it has no candidate"))?;
                AttemptEnd::Candidate {
                    sha,
                    report: self.report()?,
                }
            }
            AttemptStatus::TerminalFailed | AttemptStatus::RetryableFailed => {
                let failure = match self.failure_code {
                    Some(FailureCode::InvalidTask) => WorkerFailure::InvalidTask,
                    Some(FailureCode::ScopedTestFailed) => WorkerFailure::ScopedTestFailed,
                    Some(FailureCode::ExecutionFailed) => WorkerFailure::ExecutionFailed,
                    _ => return Err(broken("its failure code is none that a Worker reports")),
                };
                AttemptEnd::Failed(failure)
            }
            AttemptStatus::Expired => AttemptEnd::Expired,
            AttemptStatus::Cancelled => AttemptEnd::Cancelled,
        }))
    }
}

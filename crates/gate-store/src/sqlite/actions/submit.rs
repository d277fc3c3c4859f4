//! Accepting a job, once per idempotency key.

use std::sync::Arc;

use bounded::GitSha;
use forge_domain::{
    JobId, JobKind, JobStatus, PoolId, Priority, RepositoryId, ResolvedPolicy, Run, SourceRef, Work,
};
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::sqlite::rows::{JobRow, save_events};
use crate::sqlite::values::nanos;
use crate::sqlite::writer::Session;
use crate::{Idempotency, JobView, NewJob, StoreError, Submitted};

pub(in crate::sqlite) fn submit(
    session: &Session,
    job: &NewJob,
    now: Timestamp,
) -> Result<Submitted, StoreError> {
    let connection = session.connection();
    if let Some(idempotency) = &job.idempotency
        && let Some(first) = first_job(connection, idempotency)?
    {
        return Ok(Submitted::Existing(JobRow::at(connection, first)?.view));
    }
    if !fits(&job.work, &job.policy) {
        return Err(StoreError::PolicyMismatch);
    }
    // From here on nothing is refused, so that nothing has to be taken back.
    if JobRow::exists(connection, &job.id)? {
        return Err(StoreError::IdTaken { what: "job" });
    }
    let policy = store_policy(session, &job.policy)?;
    let work = store_work(connection, &job.work)?;
    let step = Run::submit(job.work.kind(), &job.policy);
    let (seq, view) = insert(
        session,
        &Row {
            id: &job.id,
            kind: job.work.kind(),
            pool: job.policy.worker_pool(),
            priority: job.priority,
            policy,
            work,
            repository: job
                .work
                .coding()
                .map(forge_domain::CodingTask::repository_id),
            base: job.work.coding().map(forge_domain::CodingTask::base_sha),
            source_ref: job.source_ref.as_ref(),
            retry_of: None,
        },
        now,
    )?;
    save_events(connection, seq, &step.events, now)?;
    if let Some(idempotency) = &job.idempotency {
        connection
            .prepare_cached("INSERT INTO idempotency_keys (key, body, job) VALUES (?1, ?2, ?3)")?
            .execute(params![
                idempotency.key.as_str(),
                idempotency.body.to_string(),
                seq
            ])?;
    }
    Ok(Submitted::Created(view))
}

/// What a new job's row is made of.
pub(super) struct Row<'a> {
    pub(super) id: &'a JobId,
    pub(super) kind: JobKind,
    pub(super) pool: &'a PoolId,
    pub(super) priority: Priority,
    pub(super) policy: i64,
    pub(super) work: i64,
    pub(super) repository: Option<&'a RepositoryId>,
    pub(super) base: Option<&'a GitSha>,
    pub(super) source_ref: Option<&'a SourceRef>,
    pub(super) retry_of: Option<&'a JobId>,
}

impl Row<'_> {
    fn view(&self, now: Timestamp) -> JobView {
        JobView {
            id: *self.id,
            kind: self.kind,
            status: JobStatus::Pending,
            priority: self.priority,
            attempt_id: None,
            worker_id: None,
            attempts: 0,
            repository_id: self.repository.cloned(),
            base_sha: self.base.copied(),
            worker_pool: self.pool.clone(),
            policy_version: 1,
            source_ref: self.source_ref.cloned(),
            retry_of: self.retry_of.copied(),
            candidate_sha: None,
            failure_code: None,
            retry_at: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// Inserts a pending job, and returns its row and how it is seen from outside.
pub(super) fn insert(
    session: &Session,
    row: &Row<'_>,
    now: Timestamp,
) -> Result<(i64, JobView), StoreError> {
    session.memory().not_empty(row.pool);
    let inserted = session
        .connection()
        .prepare_cached(
            "INSERT INTO jobs (id, kind, status, ready, pool, priority, policy, work, repository_id, base_sha, \
             source_ref, retry_of, attempts, created_at, updated_at) \
             VALUES (?1, ?2, 'pending', 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?11)",
        )?
        .insert(params![
            row.id.as_str(),
            row.kind.as_str(),
            row.pool.as_str(),
            row.priority.get(),
            row.policy,
            row.work,
            row.repository.map(RepositoryId::as_str),
            row.base.map(GitSha::as_str),
            row.source_ref.map(SourceRef::as_str),
            row.retry_of.map(JobId::as_str),
            nanos(now),
        ]);
    match inserted {
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.code == ErrorCode::ConstraintViolation
                && error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE =>
        {
            Err(StoreError::IdTaken { what: "job" })
        }
        other => Ok((other?, row.view(now))),
    }
}

fn first_job(
    connection: &Connection,
    idempotency: &Idempotency,
) -> Result<Option<i64>, StoreError> {
    let found: Option<(i64, String)> = connection
        .prepare_cached("SELECT job, body FROM idempotency_keys WHERE key = ?1")?
        .query_row([idempotency.key.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match found {
        Some((job, body)) if body == idempotency.body.to_string() => Ok(Some(job)),
        Some(_) => Err(StoreError::IdempotencyConflict),
        None => Ok(None),
    }
}

/// A coding policy is for the repository of the task, and a text policy for none.
fn fits(work: &Work, policy: &ResolvedPolicy) -> bool {
    match (work.coding(), policy.execution().target()) {
        (Some(task), Some(target)) => *task.repository_id() == target.repository_id,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn store_policy(session: &Session, policy: &Arc<ResolvedPolicy>) -> Result<i64, StoreError> {
    if let Some(seq) = session.memory().stored_policy(policy) {
        return Ok(seq);
    }
    let connection = session.connection();
    let canonical = policy.canonical();
    let digest = digest_text::Sha256Text::of(canonical.as_bytes()).to_string();
    let known: Option<i64> = connection
        .prepare_cached("SELECT seq FROM policies WHERE digest = ?1")?
        .query_row([&digest], |row| row.get(0))
        .optional()?;
    let seq = match known {
        Some(seq) => seq,
        None => connection
            .prepare_cached("INSERT INTO policies (digest, canonical) VALUES (?1, ?2)")?
            .insert(params![digest, canonical])?,
    };
    session.memory().policy_is_stored(policy, seq);
    Ok(seq)
}

fn store_work(connection: &Connection, work: &Work) -> Result<i64, StoreError> {
    let mut insert = connection.prepare_cached("INSERT INTO works (kind, body) VALUES (?1, ?2)")?;
    let seq = match work {
        Work::Text { input } => insert.insert(params![work.kind().as_str(), input])?,
        Work::Coding(task) => insert.insert(params![work.kind().as_str(), task.canonical()])?,
    };
    Ok(seq)
}

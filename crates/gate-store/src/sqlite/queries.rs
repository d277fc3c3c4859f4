//! The operations that only read.

use forge_domain::{AttemptEnd, AttemptId, Event, EvidenceRecord, JobId, PoolId, SlotId, WorkerId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::cursor;
use super::rows::{JobRow, StoredEnd, read_work, select_jobs};
use super::values::{inconsistent, nanos, opt_parsed, parsed, time};
use crate::{
    AttemptView, EventView, EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView,
    MAX_PAGE, NextDue, Page, StoreError, WorkerView,
};

pub(super) fn job(connection: &Connection, job: &JobId) -> Result<Option<JobView>, StoreError> {
    Ok(JobRow::find(connection, job)?.map(|row| row.view))
}

pub(super) fn list(
    connection: &Connection,
    filter: &JobFilter,
    page: &Page,
) -> Result<JobPage, StoreError> {
    let before = match &page.cursor {
        Some(cursor) => cursor::read(filter, cursor)?,
        None => i64::MAX,
    };
    let limit = page.limit.clamp(1, MAX_PAGE);
    // The conditions of absent filters are not written, so that the planner sees which index fits.
    let mut sql = String::from(select_jobs!("WHERE j.seq < ?1"));
    let conditions = [
        (filter.status.is_some(), " AND j.status = ?2"),
        (filter.pool.is_some(), " AND j.pool = ?3"),
        (filter.repository.is_some(), " AND j.repository_id = ?4"),
    ];
    for (_, condition) in conditions.iter().filter(|(wanted, _)| *wanted) {
        sql.push_str(condition);
    }
    sql.push_str(" ORDER BY j.seq DESC LIMIT ?5");
    let mut statement = connection.prepare_cached(&sql)?;
    let parameters = params![
        before,
        filter.status.map(forge_domain::JobStatus::as_str),
        filter.pool.as_ref().map(PoolId::as_str),
        filter
            .repository
            .as_ref()
            .map(forge_domain::RepositoryId::as_str),
        limit + 1,
    ];
    let mut rows = statement
        .query_map(parameters, |row| Ok(JobRow::read(row)))?
        .map(|row| row?)
        .collect::<Result<Vec<_>, StoreError>>()?;
    let more = rows.len() > usize::from(limit);
    rows.truncate(usize::from(limit));
    let next_cursor = rows
        .last()
        .filter(|_| more)
        .map(|row| cursor::make(filter, row.seq));
    Ok(JobPage {
        items: rows.into_iter().map(|row| row.view).collect(),
        next_cursor,
    })
}

pub(super) fn attempts(
    connection: &Connection,
    job: &JobId,
) -> Result<Option<Vec<AttemptView>>, StoreError> {
    let Some(row) = JobRow::find(connection, job)? else {
        return Ok(None);
    };
    let attempts = attempts_of(connection, row.seq)?;
    Ok(Some(
        attempts.into_iter().map(|(_, attempt)| attempt).collect(),
    ))
}

pub(super) fn result(
    connection: &Connection,
    job: &JobId,
) -> Result<Option<JobResult>, StoreError> {
    let Some(row) = JobRow::find(connection, job)? else {
        return Ok(None);
    };
    let attempts = attempts_of(connection, row.seq)?
        .into_iter()
        .map(|(seq, attempt)| Ok((attempt, stored_evidence(connection, seq)?)))
        .collect::<Result<_, StoreError>>()?;
    let timeline = events_of(connection, row.seq, job)?;
    Ok(Some(JobResult {
        job: row.view,
        attempts,
        timeline,
    }))
}

pub(super) fn events(connection: &Connection, job: &JobId) -> Result<Vec<EventView>, StoreError> {
    match JobRow::find(connection, job)? {
        Some(row) => events_of(connection, row.seq, job),
        None => Ok(Vec::new()),
    }
}

pub(super) fn evidence(
    connection: &Connection,
    job: &JobId,
    attempt: &AttemptId,
) -> Result<Option<Vec<EvidenceView>>, StoreError> {
    let seq: Option<i64> = connection
        .prepare_cached("SELECT a.seq FROM jobs j JOIN attempts a ON a.job = j.seq WHERE j.id = ?1 AND a.id = ?2")?
        .query_row([job.as_str(), attempt.as_str()], |row| row.get(0))
        .optional()?;
    seq.map(|seq| stored_evidence(connection, seq)).transpose()
}

pub(super) fn output(
    connection: &Connection,
    job: &JobId,
) -> Result<Option<JobOutput>, StoreError> {
    let Some(row) = JobRow::find(connection, job)? else {
        return Ok(None);
    };
    let work = read_work(connection, row.work)?;
    let mut output = JobOutput {
        job: row.view,
        work,
        text: None,
        report: None,
    };
    let stored = match &row.last {
        Some(last) => connection
            .prepare_cached(
                "SELECT status, failure_code, failure_disposition, candidate_sha, result FROM attempts WHERE seq = ?1",
            )?
            .query_row([last.seq], |stored| Ok(StoredEnd::read(stored, 0)))?
            .map(Some)?,
        None => None,
    };
    match stored
        .map(|stored| stored.end(output.job.kind))
        .transpose()?
        .flatten()
    {
        Some(AttemptEnd::Text { result }) => output.text = Some(result),
        Some(AttemptEnd::Candidate { report, .. }) => output.report = report,
        Some(AttemptEnd::Failed(_) | AttemptEnd::Expired | AttemptEnd::Cancelled) | None => {}
    }
    Ok(Some(output))
}

const WORKERS: &str = "SELECT s.worker, s.slot, s.pool, s.connected, s.last_seen, j.id, a.id FROM slots s \
    LEFT JOIN attempts a ON a.slot = s.seq AND a.status = 'leased' LEFT JOIN jobs j ON j.seq = a.job ";

pub(super) fn workers(connection: &Connection) -> Result<Vec<WorkerView>, StoreError> {
    connection
        .prepare_cached(&format!("{WORKERS} ORDER BY s.worker, s.slot"))?
        .query_map([], |row| Ok(read_worker(row)))?
        .map(|row| row?)
        .collect()
}

pub(super) fn worker(
    connection: &Connection,
    slot: &SlotId,
) -> Result<Option<WorkerView>, StoreError> {
    connection
        .prepare_cached(&format!("{WORKERS} WHERE s.worker = ?1 AND s.slot = ?2"))?
        .query_row(params![slot.worker().as_str(), slot.slot()], |row| {
            Ok(read_worker(row))
        })
        .optional()?
        .transpose()
}

pub(super) fn ready_pools(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<PoolId>, StoreError> {
    // Asks per pool of the slots, not per job: the answer must not cost more with a longer queue.
    connection
        .prepare_cached(
            "SELECT p.pool FROM (SELECT DISTINCT pool FROM slots EXCEPT SELECT pool FROM paused_pools) p \
             WHERE EXISTS (SELECT 1 FROM jobs j INDEXED BY jobs_claimable WHERE j.ready = 1 AND j.pool = p.pool) \
             OR EXISTS (SELECT 1 FROM jobs j INDEXED BY jobs_waiting WHERE j.status = 'retry_wait' AND j.ready = 0 AND j.retry_at <= ?1 \
             AND j.pool = p.pool) ORDER BY p.pool",
        )?
        .query_map([nanos(now)], |row| Ok(parsed(row, 0)))?
        .map(|row| row?)
        .collect()
}

pub(super) fn next_due(connection: &Connection, now: Timestamp) -> Result<NextDue, StoreError> {
    let lease: Option<i64> = connection
        .prepare_cached("SELECT min(deadline_at) FROM attempts INDEXED BY one_live_attempt_per_slot WHERE status = 'leased'")?
        .query_row([], |row| row.get(0))?;
    let retry: Option<i64> = connection
        .prepare_cached("SELECT min(retry_at) FROM jobs INDEXED BY jobs_waiting WHERE status = 'retry_wait' AND ready = 0 AND retry_at > ?1")?
        .query_row([nanos(now)], |row| row.get(0))?;
    Ok(NextDue {
        lease: lease.map(time),
        retry: retry.map(time),
    })
}

/// Reads the evidence of an attempt in the order of its arrival.
pub(super) fn stored_evidence(
    connection: &Connection,
    attempt: i64,
) -> Result<Vec<EvidenceView>, StoreError> {
    connection
        .prepare_cached("SELECT record, bound_at FROM evidence WHERE attempt = ?1 ORDER BY seq")?
        .query_map([attempt], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?
        .map(|row| {
            let (record, bound_at) = row?;
            let record = EvidenceRecord::from_canonical(&record)
                .map_err(|error| inconsistent("a record of evidence", error))?;
            Ok(EvidenceView {
                record,
                bound_at: time(bound_at),
            })
        })
        .collect()
}

fn attempts_of(connection: &Connection, job: i64) -> Result<Vec<(i64, AttemptView)>, StoreError> {
    connection
        .prepare_cached(
            "SELECT a.seq, a.id, a.ordinal, a.status, a.failure_code, a.failure_disposition, a.candidate_sha, a.result, \
             a.leased_at, a.deadline_at, a.completed_at, s.worker, s.slot \
             FROM attempts a JOIN slots s ON s.seq = a.slot WHERE a.job = ?1 ORDER BY a.ordinal",
        )?
        .query_map([job], |row| Ok(read_attempt(row)))?
        .map(|row| row?)
        .collect()
}

fn read_attempt(row: &Row<'_>) -> Result<(i64, AttemptView), StoreError> {
    let end = StoredEnd::read(row, 3)?;
    let attempt = AttemptView {
        id: parsed(row, 1)?,
        ordinal: row.get(2)?,
        status: end.status,
        worker_id: read_slot(row, 11)?,
        failure_disposition: end.failure_disposition,
        failure_code: end.failure_code,
        candidate_sha: end.candidate_sha,
        report: end.report()?,
        leased_at: time(row.get(8)?),
        deadline_at: time(row.get(9)?),
        completed_at: row.get::<_, Option<i64>>(10)?.map(time),
    };
    Ok((row.get(0)?, attempt))
}

fn events_of(connection: &Connection, seq: i64, job: &JobId) -> Result<Vec<EventView>, StoreError> {
    connection
        .prepare_cached("SELECT seq, kind, detail, at FROM events WHERE job = ?1 ORDER BY seq")?
        .query_map([seq], |row| {
            Ok((
                row.get(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
                row.get(3)?,
            ))
        })?
        .map(|row| {
            let (id, kind, detail, at) = row?;
            let event = Event::parse(&kind, &detail)
                .map_err(|error| inconsistent(format!("event {id}"), error))?;
            Ok(EventView {
                id,
                job: *job,
                event,
                at: time(at),
            })
        })
        .collect()
}

fn read_worker(row: &Row<'_>) -> Result<WorkerView, StoreError> {
    Ok(WorkerView {
        slot: read_slot(row, 0)?,
        pool: parsed(row, 2)?,
        connected: row.get(3)?,
        last_seen: time(row.get(4)?),
        active_job: opt_parsed(row, 5)?,
        active_attempt: opt_parsed(row, 6)?,
    })
}

pub(super) fn read_slot(row: &Row<'_>, first: usize) -> Result<SlotId, StoreError> {
    let worker: WorkerId = parsed(row, first)?;
    SlotId::new(worker, row.get(first + 1)?).map_err(|error| inconsistent("a slot", error))
}

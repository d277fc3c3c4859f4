//! What is read of pools and queues. The cost of a place in a queue does not grow with the queue.

use std::collections::{BTreeMap, BTreeSet};

use forge_domain::{JobId, JobStatus, PoolId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::queries::read_slot;
use super::rows::JobRow;
use super::values::{nanos, opt_parsed, parsed, time};
use crate::{Ahead, JobView, MAX_AHEAD, Pause, PoolSlot, PoolView, QueuePlace, StoreError};

/// The pools that give out no work.
pub(super) fn paused(connection: &Connection) -> Result<BTreeSet<PoolId>, StoreError> {
    connection
        .prepare_cached("SELECT pool FROM paused_pools")?
        .query_map([], |row| Ok(parsed(row, 0)))?
        .map(|row| row?)
        .collect()
}

/// The pause of a pool.
pub(super) fn pause_of(
    connection: &Connection,
    pool: &PoolId,
) -> Result<Option<Pause>, StoreError> {
    connection
        .prepare_cached("SELECT since, reason FROM paused_pools WHERE pool = ?1")?
        .query_row([pool.as_str()], |row| Ok(read_pause(row, 0)))
        .optional()?
        .transpose()
}

fn read_pause(row: &Row<'_>, first: usize) -> Result<Pause, StoreError> {
    Ok(Pause {
        since: time(row.get(first)?),
        reason: opt_parsed(row, first + 1)?,
    })
}

/// Every pool with jobs that have not ended, or that is paused.
pub(super) fn pools(connection: &Connection) -> Result<Vec<PoolView>, StoreError> {
    let mut pools = Pools::default();
    // One walk over an index that holds all that is asked for, for each state.
    let mut ready = connection.prepare_cached(
        "SELECT pool, count(*), min(created_at) FROM jobs INDEXED BY jobs_claimable WHERE ready = 1 GROUP BY pool",
    )?;
    let mut rows = ready.query([])?;
    while let Some(row) = rows.next()? {
        let view = pools.of(parsed(row, 0)?);
        view.ready = row.get(1)?;
        view.oldest = Some(time(row.get(2)?));
    }
    let mut retrying = connection.prepare_cached(
        "SELECT pool, count(*) FROM jobs INDEXED BY jobs_waiting_by_pool \
         WHERE status = 'retry_wait' AND ready = 0 GROUP BY pool",
    )?;
    let mut rows = retrying.query([])?;
    while let Some(row) = rows.next()? {
        pools.of(parsed(row, 0)?).retrying = row.get(1)?;
    }
    let mut leased = connection.prepare_cached(
        "SELECT j.pool, count(*) FROM attempts a INDEXED BY one_live_attempt_per_slot \
         JOIN jobs j ON j.seq = a.job WHERE a.status = 'leased' GROUP BY j.pool",
    )?;
    let mut rows = leased.query([])?;
    while let Some(row) = rows.next()? {
        pools.of(parsed(row, 0)?).leased = row.get(1)?;
    }
    let mut paused = connection.prepare_cached("SELECT pool, since, reason FROM paused_pools")?;
    let mut rows = paused.query([])?;
    while let Some(row) = rows.next()? {
        pools.of(parsed(row, 0)?).pause = Some(read_pause(row, 1)?);
    }
    Ok(pools.0.into_values().collect())
}

#[derive(Default)]
struct Pools(BTreeMap<PoolId, PoolView>);

impl Pools {
    fn of(&mut self, pool: PoolId) -> &mut PoolView {
        self.0
            .entry(pool.clone())
            .or_insert_with(|| PoolView::empty(pool))
    }
}

/// Where a job stands, or nothing if it does not wait.
pub(super) fn queue_place(
    connection: &Connection,
    job: &JobId,
    now: Timestamp,
) -> Result<Option<QueuePlace>, StoreError> {
    let Some(job) = JobRow::find(connection, job)?.map(|row| row.view) else {
        return Ok(None);
    };
    let due = match job.status {
        JobStatus::Pending => true,
        JobStatus::RetryWait => job.retry_at.is_none_or(|at| at <= now),
        _ => return Ok(None),
    };
    let ahead = due.then(|| ahead(connection, &job)).transpose()?;
    Ok(Some(QueuePlace {
        ahead,
        pause: pause_of(connection, &job.worker_pool)?,
        last: last_end(connection, &job)?,
        slots: connected_slots(connection, &job.worker_pool)?,
    }))
}

fn ahead(connection: &Connection, job: &JobView) -> Result<Ahead, StoreError> {
    let counted: u32 = connection
        .prepare_cached(
            "SELECT count(*) FROM ( \
             SELECT 1 FROM jobs INDEXED BY jobs_claimable WHERE ready = 1 AND pool = ?1 AND priority > ?2 \
             UNION ALL SELECT 1 FROM jobs INDEXED BY jobs_claimable \
             WHERE ready = 1 AND pool = ?1 AND priority = ?2 AND created_at < ?3 \
             UNION ALL SELECT 1 FROM jobs INDEXED BY jobs_claimable \
             WHERE ready = 1 AND pool = ?1 AND priority = ?2 AND created_at = ?3 AND id < ?4 \
             LIMIT ?5)",
        )?
        .query_row(
            params![
                job.worker_pool.as_str(),
                job.priority.get(),
                nanos(job.created_at),
                job.id.as_str(),
                MAX_AHEAD + 1
            ],
            |row| row.get(0),
        )?;
    Ok(Ahead {
        jobs: counted.min(MAX_AHEAD),
        more: counted > MAX_AHEAD,
    })
}

fn last_end(
    connection: &Connection,
    job: &JobView,
) -> Result<
    Option<(
        forge_domain::AttemptStatus,
        Option<forge_domain::FailureCode>,
    )>,
    StoreError,
> {
    connection
        .prepare_cached(
            "SELECT a.status, a.failure_code FROM jobs j JOIN attempts a ON a.seq = j.last_attempt WHERE j.id = ?1",
        )?
        .query_row([job.id.as_str()], |row| {
            Ok(parsed(row, 0).and_then(|status| Ok((status, opt_parsed(row, 1)?))))
        })
        .optional()?
        .transpose()
}

fn connected_slots(connection: &Connection, pool: &PoolId) -> Result<Vec<PoolSlot>, StoreError> {
    connection
        .prepare_cached(
            "SELECT s.worker, s.slot, EXISTS (SELECT 1 FROM attempts WHERE slot = s.seq AND status = 'leased') \
             FROM slots s WHERE s.pool = ?1 AND s.connected = 1 ORDER BY s.worker, s.slot",
        )?
        .query_map([pool.as_str()], |row| {
            Ok(read_slot(row, 0).and_then(|slot| {
                Ok(PoolSlot {
                    slot,
                    working: row.get(2)?,
                })
            }))
        })?
        .map(|row| row?)
        .collect()
}

//! Giving the most urgent job of a pool to a slot.

use forge_domain::Grant;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::sqlite::rows::{JobRow, read_work, save, save_grant, select_jobs};
use crate::sqlite::values::{inconsistent, nanos};
use crate::sqlite::writer::Session;
use crate::{ClaimRequest, Lease, StoreError};

pub(in crate::sqlite) fn claim(
    session: &Session,
    request: ClaimRequest,
    now: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    let connection = session.connection();
    let Some((slot_seq, pool)) = free_slot(connection, &request)? else {
        return Ok(None);
    };
    promote_due(connection, now)?;
    let Some(mut row) = most_urgent(connection, &pool)? else {
        return Ok(None);
    };
    let policy = session.policy(row.policy)?;
    let work = read_work(connection, row.work)?;
    let grant = Grant {
        attempt: request.attempt,
        slot: request.slot,
        generation: request.generation,
    };
    // A clock that stands behind the one that made the job due must not stop the queue.
    let at = row.view.retry_at.map_or(now, |retry_at| retry_at.max(now));
    let step = row.run(&policy)?.lease(grant, at)?;
    let live = step
        .run
        .live()
        .ok_or_else(|| inconsistent("a grant", "it made no attempt"))?;
    save_grant(connection, &mut row, live, slot_seq)?;
    save(connection, &mut row, &step, now)?;
    Ok(Some(Lease {
        job: row.view.id,
        attempt: *live.id(),
        ordinal: live.ordinal(),
        work,
        policy,
        deadline: live.deadline(),
    }))
}

/// Finds the slot and its pool, unless an attempt of it is live.
fn free_slot(
    connection: &Connection,
    request: &ClaimRequest,
) -> Result<Option<(i64, String)>, StoreError> {
    let found: Option<(i64, String, bool)> = connection
        .prepare_cached(
            "SELECT seq, pool, EXISTS (SELECT 1 FROM attempts WHERE slot = slots.seq AND status = 'leased') \
             FROM slots WHERE worker = ?1 AND slot = ?2 AND generation = ?3 AND connected = 1",
        )?
        .query_row(
            params![request.slot.worker().as_str(), request.slot.slot(), request.generation.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    match found {
        None => Err(StoreError::Fenced),
        Some((_, _, true)) => Ok(None),
        Some((seq, pool, false)) => Ok(Some((seq, pool))),
    }
}

/// Puts waiting jobs whose time has come among the claimable ones, each once.
pub(in crate::sqlite) fn promote_due(
    connection: &Connection,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE jobs INDEXED BY jobs_waiting SET ready = 1 WHERE status = 'retry_wait' AND ready = 0 AND retry_at <= ?1")?
        .execute([nanos(now)])?;
    Ok(())
}

fn most_urgent(connection: &Connection, pool: &str) -> Result<Option<JobRow>, StoreError> {
    connection
        .prepare_cached(select_jobs!(
            "WHERE j.ready = 1 AND j.pool = ?1 ORDER BY j.priority DESC, j.created_at, j.id LIMIT 1"
        ))?
        .query_row([pool], |row| Ok(JobRow::read(row)))
        .optional()?
        .transpose()
}

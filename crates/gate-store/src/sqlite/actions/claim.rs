//! Giving the most urgent job of a pool to a slot.

use forge_domain::{Generation, Grant, SlotId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::sqlite::memory::{SlotRow, Waiting};
use crate::sqlite::rows::{JobRow, Place, read_work, save_grant, select_jobs};
use crate::sqlite::values::{inconsistent, nanos, parsed, time};
use crate::sqlite::writer::Session;
use crate::{ClaimRequest, Lease, StoreError};

pub(in crate::sqlite) fn claim(
    session: &Session,
    request: ClaimRequest,
    now: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    let connection = session.connection();
    let slot = slot(session, &request.slot, &request.generation)?;
    if !slot.free {
        return Ok(None);
    }
    if super::pools::is_paused(session, &slot.pool)? {
        return Ok(None);
    }
    promote_due(session, now)?;
    if session.memory().is_empty(&slot.pool) {
        return Ok(None);
    }
    let Some(mut row) = most_urgent(connection, slot.pool.as_str())? else {
        session.memory().found_empty(slot.pool);
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
    let place = Place {
        slot: slot.seq,
        attach: request.attach,
    };
    save_grant(connection, &mut row, &step, live, &place, now)?;
    let lease = Lease {
        job: row.view.id,
        attempt: *live.id(),
        ordinal: live.ordinal(),
        work,
        policy,
        deadline: live.deadline(),
    };
    let mut memory = session.memory();
    memory.slot_is_free(live.slot(), false);
    memory.is_leased(row);
    Ok(Some(lease))
}

/// Finds the slot of a connected session.
pub(super) fn slot(
    session: &Session,
    slot: &SlotId,
    generation: &Generation,
) -> Result<SlotRow, StoreError> {
    let known = session.memory().slot(slot, generation).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let found = session
        .connection()
        .prepare_cached(
            "SELECT seq, pool, EXISTS (SELECT 1 FROM attempts WHERE slot = slots.seq AND status = 'leased') \
             FROM slots WHERE worker = ?1 AND slot = ?2 AND generation = ?3 AND connected = 1",
        )?
        .query_row(
            params![slot.worker().as_str(), slot.slot(), generation.as_str()],
            |row| Ok((row.get(0)?, parsed(row, 1), row.get::<_, bool>(2)?)),
        )
        .optional()?;
    let (seq, pool, busy) = found.ok_or(StoreError::Fenced)?;
    let found = SlotRow {
        seq,
        pool: pool?,
        generation: *generation,
        free: !busy,
    };
    session.memory().slot_is(slot.clone(), found.clone());
    Ok(found)
}

/// Puts waiting jobs whose time has come among the claimable ones, each once.
pub(in crate::sqlite) fn promote_due(session: &Session, now: Timestamp) -> Result<(), StoreError> {
    let connection = session.connection();
    let waiting = session.memory().waiting();
    let first = match waiting {
        Waiting::Nobody => return Ok(()),
        Waiting::From(first) => Some(first),
        Waiting::Unknown => first_waiting(connection)?,
    };
    let Some(first) = first else {
        session.memory().waiting_is(Waiting::Nobody);
        return Ok(());
    };
    if now < first {
        session.memory().waiting_is(Waiting::From(first));
        return Ok(());
    }
    connection
        .prepare_cached("UPDATE jobs INDEXED BY jobs_waiting SET ready = 1 WHERE status = 'retry_wait' AND ready = 0 AND retry_at <= ?1")?
        .execute([nanos(now)])?;
    let next = first_waiting(connection)?.map_or(Waiting::Nobody, Waiting::From);
    let mut memory = session.memory();
    memory.none_is_empty();
    memory.waiting_is(next);
    Ok(())
}

fn first_waiting(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let first: Option<i64> = connection
        .prepare_cached("SELECT min(retry_at) FROM jobs INDEXED BY jobs_waiting WHERE status = 'retry_wait' AND ready = 0")?
        .query_row([], |row| row.get(0))?;
    Ok(first.map(time))
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

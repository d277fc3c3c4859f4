//! Pausing and resuming pools.

use forge_domain::PoolId;
use jiff::Timestamp;
use rusqlite::params;

use crate::sqlite::pools::pause_of;
use crate::sqlite::values::nanos;
use crate::sqlite::writer::Session;
use crate::{Pause, PauseReason, Paused, StoreError};

pub(in crate::sqlite) fn pause(
    session: &Session,
    pool: &PoolId,
    reason: Option<PauseReason>,
    now: Timestamp,
) -> Result<Paused, StoreError> {
    let connection = session.connection();
    let before = pause_of(connection, pool)?;
    let repeated = before.is_some();
    let pause = match before {
        // Without a new reason the old one still holds.
        Some(pause) => Pause {
            reason: reason.or(pause.reason),
            ..pause
        },
        None => Pause { since: now, reason },
    };
    connection
        .prepare_cached(
            "INSERT INTO paused_pools (pool, since, reason) VALUES (?1, ?2, ?3) \
             ON CONFLICT (pool) DO UPDATE SET reason = ?3",
        )?
        .execute(params![
            pool.as_str(),
            nanos(pause.since),
            pause.reason.as_ref().map(PauseReason::as_str)
        ])?;
    session.memory().pauses_changed();
    Ok(Paused { repeated, pause })
}

pub(in crate::sqlite) fn resume(session: &Session, pool: &PoolId) -> Result<bool, StoreError> {
    let changed = session
        .connection()
        .prepare_cached("DELETE FROM paused_pools WHERE pool = ?1")?
        .execute([pool.as_str()])?;
    session.memory().pauses_changed();
    Ok(changed > 0)
}

/// Whether the pool gives out no work.
pub(super) fn is_paused(session: &Session, pool: &PoolId) -> Result<bool, StoreError> {
    if let Some(known) = session.memory().is_paused(pool) {
        return Ok(known);
    }
    let paused = crate::sqlite::pools::paused(session.connection())?;
    let found = paused.contains(pool);
    session.memory().pauses_are(paused);
    Ok(found)
}

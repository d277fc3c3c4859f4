//! Sessions of slots: who is connected, and which session fences which.

use forge_domain::{Generation, PoolId, SlotId};
use jiff::Timestamp;
use rusqlite::params;

use crate::StoreError;
use crate::sqlite::values::nanos;
use crate::sqlite::writer::Session;

pub(in crate::sqlite) fn connect(
    session: &Session,
    slot: &SlotId,
    pool: &PoolId,
    generation: &Generation,
    now: Timestamp,
) -> Result<(), StoreError> {
    session.memory().slot_changed(slot);
    let changed = session
        .connection()
        .prepare_cached(
            "INSERT INTO slots (worker, slot, pool, generation, connected, last_seen) VALUES (?1, ?2, ?3, ?4, 1, ?5) \
             ON CONFLICT (worker, slot) DO UPDATE SET pool = ?3, generation = ?4, connected = 1, \
             last_seen = max(last_seen, ?5) WHERE connected = 0",
        )?
        .execute(params![slot.worker().as_str(), slot.slot(), pool.as_str(), generation.as_str(), nanos(now)])?;
    if changed == 0 {
        Err(StoreError::SlotBusy)
    } else {
        Ok(())
    }
}

pub(in crate::sqlite) fn disconnect(
    session: &Session,
    slot: &SlotId,
    generation: &Generation,
    now: Timestamp,
) -> Result<bool, StoreError> {
    session.memory().slot_changed(slot);
    let changed = session
        .connection()
        .prepare_cached(
            "UPDATE slots SET connected = 0, last_seen = max(last_seen, ?4) \
             WHERE worker = ?1 AND slot = ?2 AND generation = ?3 AND connected = 1",
        )?
        .execute(params![
            slot.worker().as_str(),
            slot.slot(),
            generation.as_str(),
            nanos(now)
        ])?;
    Ok(changed > 0)
}

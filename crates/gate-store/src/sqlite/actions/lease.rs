//! Prolonging leases, and ending those that ran out.

use forge_domain::{Holder, JobId};
use jiff::Timestamp;
use rusqlite::params;

use crate::sqlite::rows::{JobRow, save};
use crate::sqlite::values::{inconsistent, nanos};
use crate::sqlite::writer::Session;
use crate::{EndedLease, StoreError};

/// Most leases that one call ends.
const SWEEP: u32 = 256;

pub(in crate::sqlite) fn heartbeat(
    session: &Session,
    job: &JobId,
    holder: &Holder,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    let connection = session.connection();
    let row = session.job(job)?;
    let run = row
        .run(&*session.policy(row.policy)?)?
        .heartbeat(holder, now)?;
    let (Some(live), Some(last)) = (run.live(), &row.last) else {
        return Err(inconsistent("a heartbeat", "it ended its attempt"));
    };
    connection
        .prepare_cached("UPDATE attempts SET deadline_at = ?2 WHERE seq = ?1")?
        .execute(params![last.seq, nanos(live.deadline())])?;
    connection
        .prepare_cached("UPDATE jobs SET updated_at = max(updated_at, ?2) WHERE seq = ?1")?
        .execute(params![row.seq, nanos(now)])?;
    connection
        .prepare_cached("UPDATE slots SET last_seen = max(last_seen, ?2) WHERE seq = ?1")?
        .execute(params![last.slot_seq, nanos(now)])?;
    Ok(live.deadline())
}

pub(in crate::sqlite) fn expire_due(
    session: &Session,
    now: Timestamp,
) -> Result<Vec<EndedLease>, StoreError> {
    let connection = session.connection();
    // As many attempts are live as slots are at work: few enough to look at each.
    let due: Vec<i64> = connection
        .prepare_cached(
            "SELECT job FROM attempts INDEXED BY one_live_attempt_per_slot WHERE status = 'leased' AND deadline_at <= ?1 ORDER BY deadline_at, seq LIMIT ?2",
        )?
        .query_map(params![nanos(now), SWEEP], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    due.into_iter()
        .map(|job| expire(session, job, now))
        .collect()
}

fn expire(session: &Session, job: i64, now: Timestamp) -> Result<EndedLease, StoreError> {
    let mut row = JobRow::at(session.connection(), job)?;
    let step = row.run(&*session.policy(row.policy)?)?.expire(now)?;
    let mut memory = session.memory();
    memory.take_leased(&row.view.id);
    save(session.connection(), &mut memory, &mut row, &step, now)?;
    row.ended_lease()
        .ok_or_else(|| inconsistent("a lease that ran out", "it had no attempt"))
}

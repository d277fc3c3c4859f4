//! What happens between opening a database and serving it, in a fixed order: check every active
//! row, disconnect all slots, give the leases whose Workers can come back their whole time, end those
//! of the others that ran out, bound the deadlines of the rest and the pauses before next attempts. All
//! of it is one transaction; any failure is fatal, and nothing is repaired.

use forge_domain::{JobKind, JobState, JobStatus, Run};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::actions::lease::expire_due;
use super::queries::stored_evidence;
use super::rows::{JobRow, read_work, select_jobs};
use super::values::{inconsistent, nanos};
use super::writer::Session;
use crate::{Recovery, StoreError};

pub(super) fn recover(session: &Session, now: Timestamp) -> Result<Recovery, StoreError> {
    session.savepoint("recover", |session| {
        let connection = session.connection();
        validate(session)?;
        let mut recovery = Recovery {
            disconnected: connection
                .execute("UPDATE slots SET connected = 0 WHERE connected = 1", [])?,
            ..Recovery::default()
        };
        recovery.graced = grant_grace(session, now)?;
        loop {
            let ended = expire_due(session, now)?;
            if ended.is_empty() {
                break;
            }
            recovery.expired.extend(ended);
        }
        each_active(connection, "leased", |row| {
            recovery.live += 1;
            let clamped = move_deadline(session, &row, |run| run.clamp_deadline(now))?;
            recovery.clamped += usize::from(clamped);
            Ok(())
        })?;
        bound_pauses(session, now)?;
        Ok(recovery)
    })
}

/// Checks every job that is not terminal, with all that hangs on it.
fn validate(session: &Session) -> Result<(), StoreError> {
    let connection = session.connection();
    for status in ["pending", "leased", "retry_wait"] {
        each_active(connection, status, |row| {
            validate_job(session, &row).map_err(|error| match error {
                StoreError::Inconsistent { what, reason } => {
                    inconsistent(format!("job {}", row.view.id), format!("{what}: {reason}"))
                }
                other => other,
            })
        })?;
    }
    let stray: i64 = connection.query_row(
        "SELECT count(*) FROM attempts a JOIN jobs j ON j.seq = a.job \
         WHERE a.status = 'leased' AND (j.status <> 'leased' OR j.last_attempt <> a.seq)",
        [],
        |row| row.get(0),
    )?;
    if stray > 0 {
        return Err(inconsistent(
            "attempts",
            format!("{stray} are live without their job"),
        ));
    }
    Ok(())
}

fn validate_job(session: &Session, row: &JobRow) -> Result<(), StoreError> {
    let connection = session.connection();
    let policy = session.policy(row.policy)?;
    row.run(&policy)?;
    let view = &row.view;
    let broken = |reason: &str| Err(inconsistent("its row", reason));
    if *policy.worker_pool() != view.worker_pool {
        return broken("its pool is not the one of its policy");
    }
    let work = read_work(connection, row.work)?;
    if work.kind() != view.kind {
        return broken("its kind is not the one of its work");
    }
    let target = policy
        .execution()
        .target()
        .map(|target| &target.repository_id);
    if target != view.repository_id.as_ref() {
        return broken("its repository is not the one of its policy");
    }
    if let Some(task) = work.coding()
        && (Some(task.repository_id()) != view.repository_id.as_ref()
            || Some(task.base_sha()) != view.base_sha.as_ref())
    {
        return broken("its repository or base is not the one of its task");
    }
    let (count, last, live): (u16, Option<u16>, u16) = connection
        .prepare_cached("SELECT count(*), max(ordinal), count(*) FILTER (WHERE status = 'leased') FROM attempts WHERE job = ?1")?
        .query_row([row.seq], |found| Ok((found.get(0)?, found.get(1)?, found.get(2)?)))?;
    if count != view.attempts || last.unwrap_or(0) != count {
        return broken("its attempts are not numbered without gaps");
    }
    if live != u16::from(view.status == JobStatus::Leased) {
        return broken("its state is not the one of its attempts");
    }
    let last_ordinal = connection
        .prepare_cached(
            "SELECT count(*) FROM attempts WHERE seq = ?1 AND job = ?2 AND ordinal = ?3",
        )?
        .query_row(
            params![
                row.last.as_ref().map(|last| last.seq),
                row.seq,
                view.attempts
            ],
            |found| found.get::<_, u16>(0),
        )?;
    if view.attempts > 0 && last_ordinal != 1 {
        return broken("its last attempt is another one");
    }
    if let Some(last) = row
        .last
        .as_ref()
        .filter(|_| view.status == JobStatus::Leased && view.kind == JobKind::Coding)
    {
        stored_evidence(connection, last.seq)?;
    }
    Ok(())
}

/// Time in which no Gate served does not count where the Worker could not deliver in it.
fn grant_grace(session: &Session, now: Timestamp) -> Result<usize, StoreError> {
    let jobs: Vec<i64> = session
        .connection()
        .prepare_cached(
            "SELECT job FROM attempts INDEXED BY one_live_attempt_per_slot \
             WHERE status = 'leased' AND attach_digest IS NOT NULL",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut graced = 0;
    for job in jobs {
        let row = JobRow::at(session.connection(), job)?;
        graced += usize::from(move_deadline(session, &row, |run| run.grant_grace(now))?);
    }
    Ok(graced)
}

/// After a clock was set back, no next attempt waits longer than its pause, and one that was due
/// still is: a slot takes it for granted that it can have what is marked so.
fn bound_pauses(session: &Session, now: Timestamp) -> Result<(), StoreError> {
    let connection = session.connection();
    connection.execute(
        "UPDATE jobs SET retry_at = ?1 WHERE status = 'retry_wait' AND ready = 1 AND retry_at > ?1",
        [nanos(now)],
    )?;
    each_active(connection, "retry_wait", |row| {
        let mut run = row.run(&*session.policy(row.policy)?)?;
        if let (true, JobState::RetryWait { retry_at }) = (run.clamp_retry(now), run.state()) {
            connection
                .prepare_cached("UPDATE jobs SET retry_at = ?2 WHERE seq = ?1")?
                .execute(params![row.seq, nanos(*retry_at)])?;
        }
        Ok(())
    })
}

/// Writes the deadline of a lease, if `change` changed it.
fn move_deadline(
    session: &Session,
    row: &JobRow,
    change: impl FnOnce(&mut Run) -> bool,
) -> Result<bool, StoreError> {
    let mut run = row.run(&*session.policy(row.policy)?)?;
    if !change(&mut run) {
        return Ok(false);
    }
    if let (Some(live), Some(last)) = (run.live(), &row.last) {
        session
            .connection()
            .prepare_cached("UPDATE attempts SET deadline_at = ?2 WHERE seq = ?1")?
            .execute(params![last.seq, nanos(live.deadline())])?;
    }
    Ok(true)
}

/// Calls `visit` with every job of a status, a page at a time: a long queue must not be in memory
/// at once.
fn each_active(
    connection: &Connection,
    status: &str,
    mut visit: impl FnMut(JobRow) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let page: Vec<JobRow> = connection
            .prepare_cached(select_jobs!(
                "WHERE j.status = ?1 AND j.seq > ?2 ORDER BY j.seq LIMIT 256"
            ))?
            .query_map(params![status, after], |row| Ok(JobRow::read(row)))?
            .map(|row| row?)
            .collect::<Result<_, _>>()?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.seq;
        page.into_iter().try_for_each(&mut visit)?;
    }
}

//! A lease over the end of a connection, back to the queue, and after its end.

use digest_text::Sha256Text;
use forge_domain::{
    AttemptId, AttemptStatus, Event, Holder, JobId, JobStatus, NotAccepting, Refused, SlotId,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use subtle::ConstantTimeEq as _;

use super::claim;
use crate::sqlite::rows::{save_events, save_withdrawal};
use crate::sqlite::values::{inconsistent, opt_parsed, parsed};
use crate::sqlite::writer::Session;
use crate::{Attachment, JobView, StoreError};

/// An attempt as the slot that names it may know it.
struct Known {
    seq: i64,
    job: i64,
    ordinal: u16,
    status: AttemptStatus,
    token: Option<Sha256Text>,
}

pub(in crate::sqlite) fn attach(
    session: &Session,
    job: &JobId,
    holder: &Holder,
    token: &Sha256Text,
    now: Timestamp,
) -> Result<Attachment, StoreError> {
    let connection = session.connection();
    claim::slot(session, &holder.slot, &holder.generation)?;
    let known = find(connection, job, &holder.attempt, &holder.slot)?;
    let Some(known) = known.filter(|known| proves(token, known.token.as_ref())) else {
        return Ok(Attachment::Lost);
    };
    match known.status {
        AttemptStatus::Leased => {}
        AttemptStatus::Succeeded
        | AttemptStatus::TerminalFailed
        | AttemptStatus::RetryableFailed => return Ok(Attachment::Ended),
        AttemptStatus::Expired | AttemptStatus::Cancelled => return Ok(Attachment::Over),
    }
    let row = session.job(job)?;
    let step = match row
        .run(&*session.policy(row.policy)?)?
        .reattach(holder, now)
    {
        Ok(step) => step,
        // It is about to be ended.
        Err(Refused::DeadlinePassed) => return Ok(Attachment::Over),
        Err(refused) => return Err(inconsistent("a live attempt", refused)),
    };
    let deadline = step
        .run
        .live()
        .ok_or_else(|| inconsistent("a live attempt", "an attach ended it"))?
        .deadline();
    connection
        .prepare_cached("UPDATE attempts SET generation = ?2 WHERE seq = ?1")?
        .execute(params![known.seq, holder.generation.as_str()])?;
    save_events(connection, row.seq, &step.events, now)?;
    Ok(Attachment::Live {
        ordinal: known.ordinal,
        deadline,
    })
}

pub(in crate::sqlite) fn withdraw(
    session: &Session,
    job: &JobId,
    holder: &Holder,
    reason: NotAccepting,
    now: Timestamp,
) -> Result<JobView, StoreError> {
    let connection = session.connection();
    let mut row = session.job(job)?;
    let step = row
        .run(&*session.policy(row.policy)?)?
        .withdraw(holder, reason, now)?;
    let begun: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM evidence WHERE attempt = ?1)")?
        .query_row([row.last.as_ref().map(|last| last.seq)], |row| row.get(0))?;
    if begun {
        return Err(StoreError::Refused(Refused::IllegalEdge {
            from: JobStatus::Leased,
            edge: "give its lease back: the attempt has evidence",
        }));
    }
    save_withdrawal(connection, &mut session.memory(), &mut row, &step, now)?;
    Ok(row.view)
}

pub(in crate::sqlite) fn stopped(
    session: &Session,
    job: &JobId,
    attempt: &AttemptId,
    slot: &SlotId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let connection = session.connection();
    let known = find(connection, job, attempt, slot)?;
    let ended = known.filter(|known| known.status != AttemptStatus::Leased);
    let known = ended.ok_or(Refused::Superseded)?;
    let event = Event::Stopped {
        attempt: *attempt,
        ordinal: known.ordinal,
    };
    save_events(connection, known.job, &[event], now)
}

/// Finds an attempt that was leased to this very slot.
fn find(
    connection: &Connection,
    job: &JobId,
    attempt: &AttemptId,
    slot: &SlotId,
) -> Result<Option<Known>, StoreError> {
    connection
        .prepare_cached(
            "SELECT a.seq, a.job, a.ordinal, a.status, a.attach_digest FROM jobs j \
             JOIN attempts a ON a.job = j.seq JOIN slots s ON s.seq = a.slot \
             WHERE j.id = ?1 AND a.id = ?2 AND s.worker = ?3 AND s.slot = ?4",
        )?
        .query_row(
            params![
                job.as_str(),
                attempt.as_str(),
                slot.worker().as_str(),
                slot.slot()
            ],
            |row| {
                let (seq, job, ordinal) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let read = || {
                    Ok(Known {
                        seq,
                        job,
                        ordinal,
                        status: parsed(row, 3)?,
                        token: opt_parsed(row, 4)?,
                    })
                };
                Ok(read())
            },
        )
        .optional()?
        .transpose()
}

/// Compared in constant time: how long a refusal takes says nothing about the token.
fn proves(token: &Sha256Text, stored: Option<&Sha256Text>) -> bool {
    stored.is_some_and(|stored| bool::from(stored.as_bytes().ct_eq(token.as_bytes())))
}

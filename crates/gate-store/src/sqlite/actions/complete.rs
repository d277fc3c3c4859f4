//! Storing the result of an attempt, and answering the identical one again.

use forge_domain::{Completion, Holder, JobId, Refused, agrees_with_candidate};
use jiff::Timestamp;
use rusqlite::Connection;

use crate::sqlite::queries::stored_evidence;
use crate::sqlite::rows::{JobRow, StoredEnd, save};
use crate::sqlite::writer::Session;
use crate::{Completed, StoreError};

pub(in crate::sqlite) fn complete(
    session: &Session,
    job: &JobId,
    holder: &Holder,
    completion: Completion,
    now: Timestamp,
) -> Result<Completed, StoreError> {
    let connection = session.connection();
    let mut row = session.job(job)?;
    let run = row.run(&*session.policy(row.policy)?)?;
    let live = run.live().filter(|live| *live.id() == holder.attempt);
    let (Some(_), Some(last)) = (live, &row.last) else {
        repeated(connection, &row, holder, &completion)?;
        return Ok(Completed {
            repeated: true,
            job: row.view,
        });
    };
    if let Completion::Candidate { sha, .. } = &completion {
        let evidence = stored_evidence(connection, last.seq)?;
        agrees_with_candidate(evidence.iter().map(|stored| &stored.record), sha)?;
    }
    let step = run.complete(holder, completion, now)?;
    save(connection, &mut session.memory(), &mut row, &step, now)?;
    Ok(Completed {
        repeated: false,
        job: row.view,
    })
}

/// Accepts a result that an ended attempt of this slot has already.
fn repeated(
    connection: &Connection,
    job: &JobRow,
    holder: &Holder,
    completion: &Completion,
) -> Result<(), StoreError> {
    let end = match StoredEnd::of(connection, job, holder)? {
        Some((_, stored)) => stored.end(job.view.kind)?,
        None => None,
    };
    end.ok_or(Refused::Superseded)?.repeats(completion)?;
    Ok(())
}

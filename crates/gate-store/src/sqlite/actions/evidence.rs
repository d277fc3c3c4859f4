//! Binding evidence to a live attempt, and answering the identical evidence again.

use forge_domain::{
    AttemptStatus, EvidenceBatch, EvidenceContext, EvidenceRecord, Holder, JobId, MAX_RECORDS,
    Refused,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::sqlite::rows::{JobRow, StoredEnd, read_work};
use crate::sqlite::values::{inconsistent, nanos};
use crate::sqlite::writer::Session;
use crate::{Bound, StoreError};

pub(in crate::sqlite) fn bind(
    session: &Session,
    job: &JobId,
    holder: &Holder,
    batch: &EvidenceBatch,
    now: Timestamp,
) -> Result<Bound, StoreError> {
    let connection = session.connection();
    let row = session.job(job)?;
    let policy = session.policy(row.policy)?;
    let run = row.run(&policy)?;
    if run.live().is_none_or(|live| *live.id() != holder.attempt) {
        return repeated(connection, &row, holder, batch);
    }
    run.authorize(holder, now)?;
    let work = read_work(connection, row.work)?;
    let task = work.coding().ok_or(Refused::WrongKind {
        kind: row.view.kind,
    })?;
    let context = EvidenceContext {
        task,
        limits: policy.execution().limits(),
    };
    batch.check(&context).map_err(StoreError::InvalidEvidence)?;
    let attempt = row
        .last
        .as_ref()
        .ok_or_else(|| inconsistent("a live attempt", "it has no row"))?
        .seq;

    let mut insert = connection.prepare_cached(
        "INSERT INTO evidence (attempt, evidence_id, record, bound_at) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut bound = Bound {
        added: 0,
        repeated: 0,
    };
    for record in batch.records() {
        let canonical = record.canonical();
        let id = record.evidence_id.as_str();
        match find(connection, attempt, record)? {
            Some(stored) if stored == canonical => bound.repeated += 1,
            Some(_) => {
                return Err(StoreError::EvidenceConflict {
                    evidence_id: record.evidence_id,
                });
            }
            None => {
                insert.execute(params![attempt, id, canonical, nanos(now)])?;
                bound.added += 1;
            }
        }
    }
    let records: u32 = connection
        .prepare_cached("SELECT count(*) FROM evidence WHERE attempt = ?1")?
        .query_row([attempt], |row| row.get(0))?;
    if usize::try_from(records).is_ok_and(|records| records > MAX_RECORDS) {
        return Err(StoreError::TooMuchEvidence);
    }
    Ok(bound)
}

/// Accepts records that an attempt of this slot had when it ended with a result.
fn repeated(
    connection: &Connection,
    job: &JobRow,
    holder: &Holder,
    batch: &EvidenceBatch,
) -> Result<Bound, StoreError> {
    let (attempt, stored) = StoredEnd::of(connection, job, holder)?.ok_or(Refused::Superseded)?;
    match stored.status {
        AttemptStatus::Succeeded
        | AttemptStatus::TerminalFailed
        | AttemptStatus::RetryableFailed => {}
        AttemptStatus::Leased | AttemptStatus::Expired | AttemptStatus::Cancelled => {
            return Err(Refused::Superseded.into());
        }
    }
    for record in batch.records() {
        match find(connection, attempt, record)? {
            Some(stored) if stored == record.canonical() => {}
            Some(_) => {
                return Err(StoreError::EvidenceConflict {
                    evidence_id: record.evidence_id,
                });
            }
            None => {
                return Err(StoreError::Refused(Refused::Immutable {
                    status: stored.status,
                }));
            }
        }
    }
    Ok(Bound {
        added: 0,
        repeated: batch.records().len(),
    })
}

/// The stored form of a record with the same id.
fn find(
    connection: &Connection,
    attempt: i64,
    record: &EvidenceRecord,
) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT record FROM evidence WHERE attempt = ?1 AND evidence_id = ?2")?
        .query_row(params![attempt, record.evidence_id.as_str()], |row| {
            row.get(0)
        })
        .optional()?)
}

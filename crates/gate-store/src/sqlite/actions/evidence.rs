//! Binding evidence to a live attempt.

use forge_domain::{EvidenceBatch, EvidenceContext, Holder, JobId, MAX_RECORDS, Refused};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use crate::sqlite::rows::read_work;
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
    row.run(&policy)?.authorize(holder, now)?;
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

    let mut find = connection
        .prepare_cached("SELECT record FROM evidence WHERE attempt = ?1 AND evidence_id = ?2")?;
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
        let stored: Option<String> = find
            .query_row(params![attempt, id], |row| row.get(0))
            .optional()?;
        match stored {
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

//! What an owner may do to a job: cancel it, or ask for another attempt.

use forge_domain::{JobId, JobStatus, Run};
use jiff::Timestamp;

use super::submit::{Row, insert};
use crate::sqlite::rows::{JobRow, save, save_events};
use crate::sqlite::writer::Session;
use crate::{Cancelled, Retried, StoreError};

pub(in crate::sqlite) fn cancel(
    session: &Session,
    job: &JobId,
    now: Timestamp,
) -> Result<Cancelled, StoreError> {
    let mut row = session.job(job)?;
    match row.view.status {
        JobStatus::Cancelled => {
            return Ok(Cancelled {
                repeated: true,
                job: row.view,
                ended: None,
            });
        }
        status @ (JobStatus::Succeeded | JobStatus::Failed) => {
            return Err(StoreError::JobTerminal { status });
        }
        JobStatus::Pending | JobStatus::Leased | JobStatus::RetryWait => {}
    }
    let step = row.run(&*session.policy(row.policy)?)?.cancel(now)?;
    save(
        session.connection(),
        &mut session.memory(),
        &mut row,
        &step,
        now,
    )?;
    let ended = if step.finished.is_some() {
        row.ended_lease()
    } else {
        None
    };
    Ok(Cancelled {
        repeated: false,
        job: row.view,
        ended,
    })
}

pub(in crate::sqlite) fn retry(
    session: &Session,
    job: &JobId,
    new_id: &JobId,
    now: Timestamp,
) -> Result<Retried, StoreError> {
    let mut row = session.job(job)?;
    match row.view.status {
        JobStatus::RetryWait => {
            let step = row.run(&*session.policy(row.policy)?)?.retry_now(now)?;
            save(
                session.connection(),
                &mut session.memory(),
                &mut row,
                &step,
                now,
            )?;
            Ok(Retried::Due(row.view))
        }
        JobStatus::Failed | JobStatus::Cancelled => {
            repeat(session, &row, new_id, now).map(Retried::Created)
        }
        status @ (JobStatus::Pending | JobStatus::Leased | JobStatus::Succeeded) => {
            Err(StoreError::NotRetryable { status })
        }
    }
}

/// Makes a new job of what the old one was submitted with: work, policy, priority and source.
fn repeat(
    session: &Session,
    old: &JobRow,
    new_id: &JobId,
    now: Timestamp,
) -> Result<crate::JobView, StoreError> {
    let connection = session.connection();
    let (seq, view) = insert(
        session,
        &Row {
            id: new_id,
            kind: old.view.kind,
            pool: &old.view.worker_pool,
            priority: old.view.priority,
            policy: old.policy,
            work: old.work,
            repository: old.view.repository_id.as_ref(),
            base: old.view.base_sha.as_ref(),
            source_ref: old.view.source_ref.as_ref(),
            retry_of: Some(&old.view.id),
        },
        now,
    )?;
    let step = Run::submit(old.view.kind, &*session.policy(old.policy)?);
    save_events(connection, seq, &step.events, now)?;
    Ok(view)
}

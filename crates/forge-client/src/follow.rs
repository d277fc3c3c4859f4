//! Following a job to its end through a network that may fail in between.

use std::time::Duration;

use cli_shell::clock;
use forge_domain::JobId;

use crate::api::Seen;
use crate::error::ClientError;
use crate::http::GateClient;
use crate::view::{Event, Job};

/// Something new about the job that is followed.
#[derive(Debug)]
pub enum Change {
    /// An entry of its journal.
    Event(Seen<Event>),
    /// The attempt that has it went on to another stage.
    Stage(String),
    /// The Gate does not answer; asking goes on.
    Lost(ClientError),
    /// The Gate answers again.
    Found,
}

/// Asks until the job has ended, and tells of every change on the way.
///
/// # Errors
/// The job does not exist, the limit is over, or the Gate refuses to tell.
pub async fn follow(
    client: &GateClient,
    id: &JobId,
    limit: Duration,
    poll: Duration,
    tell: &mut (dyn FnMut(Change) -> Result<(), ClientError> + Send),
) -> Result<Seen<Job>, ClientError> {
    let started = clock::instant();
    let mut told = 0;
    let mut last: Option<Job> = None;
    let mut lost = false;
    loop {
        match look(client, id, &mut told, last.as_ref(), tell).await {
            Ok(job) => {
                if std::mem::take(&mut lost) {
                    tell(Change::Found)?;
                }
                if job.view.is_terminal() {
                    return Ok(job);
                }
                last = Some(job.view);
            }
            Err(error) if error.is_transient() => {
                if started.elapsed() >= limit {
                    return Err(error);
                }
                if !std::mem::replace(&mut lost, true) {
                    tell(Change::Lost(error))?;
                }
            }
            Err(error) => return Err(error),
        }
        let left = limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(ClientError::StillRunning {
                job: id.to_string(),
                status: last.map_or_else(|| "unknown".to_owned(), |job| job.status),
                limit,
            });
        }
        tokio::time::sleep(poll.min(left)).await;
    }
}

/// One look at the job, and at its journal where something moved.
async fn look(
    client: &GateClient,
    id: &JobId,
    told: &mut usize,
    last: Option<&Job>,
    tell: &mut (dyn FnMut(Change) -> Result<(), ClientError> + Send),
) -> Result<Seen<Job>, ClientError> {
    let job = client.job(id).await?;
    let moved = last.is_none_or(|last| {
        (&last.status, &last.updated_at, &last.attempt_id)
            != (&job.view.status, &job.view.updated_at, &job.view.attempt_id)
    });
    if moved {
        let events = client.events(id).await?;
        for event in events.into_iter().skip(*told) {
            *told += 1;
            tell(Change::Event(event))?;
        }
    }
    let known = last
        .filter(|last| last.attempt_id == job.view.attempt_id)
        .map_or(0, |last| last.stages.len());
    for stage in job.view.stages.iter().skip(known) {
        tell(Change::Stage(stage.clone()))?;
    }
    Ok(job)
}

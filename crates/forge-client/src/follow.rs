//! Following a job to its end through a network that may fail in between.

use std::time::Duration;

use cli_shell::clock;
use forge_domain::JobId;

use crate::api::Seen;
use crate::error::ClientError;
use crate::http::GateClient;
use crate::view::{Activity, Event, Job, WhyWaiting};

/// Something new about the job that is followed.
#[derive(Debug)]
pub enum Change {
    /// An entry of its journal.
    Event(Seen<Event>),
    /// The attempt that has it says that it went on to another stage.
    Stage {
        /// The attempt.
        attempt: Option<String>,
        /// The stage.
        activity: Activity,
    },
    /// Why it has not started is said in other words than before.
    Waiting {
        /// Why.
        waiting: WhyWaiting,
        /// It is another reason, not only another number.
        is_new: bool,
    },
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
    let mut told = Told::default();
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

/// How far the changes have been told.
#[derive(Debug, Default)]
struct Told {
    /// Entries of the journal.
    events: usize,
    /// The last attempt that was in a stage, and the number of that stage.
    stage: (Option<String>, u64),
    /// Why it has not started.
    waiting: Option<WhyWaiting>,
}

/// One look at the job, and at its journal where something moved.
async fn look(
    client: &GateClient,
    id: &JobId,
    told: &mut Told,
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
        for event in events.into_iter().skip(told.events) {
            told.events += 1;
            tell(Change::Event(event))?;
        }
    }
    let before = std::mem::replace(&mut told.waiting, job.view.waiting.clone());
    if let Some(waiting) = job
        .view
        .waiting
        .clone()
        .filter(|now| before.as_ref() != Some(now))
    {
        let is_new = before.is_none_or(|before| before.reason != waiting.reason);
        tell(Change::Waiting { waiting, is_new })?;
    }
    let attempt = &job.view.attempt_id;
    for activity in &job.view.activity {
        if told.stage.0 == *attempt && activity.sequence <= told.stage.1 {
            continue;
        }
        told.stage = (attempt.clone(), activity.sequence);
        tell(Change::Stage {
            attempt: attempt.clone(),
            activity: activity.clone(),
        })?;
    }
    Ok(job)
}

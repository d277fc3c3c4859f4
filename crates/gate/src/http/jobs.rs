//! One job: how it stands, what became of it, and the two things its owner can
//! do to it.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use forge_domain::{AttemptId, CancelReason, JobId, JobKind, JobStatus};
use gate_store::{JobView, Retried};
use serde::Serialize;

use super::answer::{ApiError, json};
use super::views::{Evidence, FullResult, Job, JournalEntry, Status};
use crate::log;
use crate::random;
use crate::state::GateState;
use crate::why::{Waiting, why};
use web_server::body;

/// The largest result that is answered whole.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// The largest body of a request that needs none.
const MAX_EMPTY_BODY: usize = 4096;

type Answer = Result<Response, ApiError>;

/// `GET /v1/jobs/{id}`
pub(super) async fn job(State(state): State<GateState>, Path(id): Path<String>) -> Answer {
    let job = find(&state, &id).await?;
    let waiting = why(&state, &job).await?;
    let explained = Explained {
        job: Job::of(&job, &state),
        waiting,
    };
    Ok(json(StatusCode::OK, &explained))
}

/// A job and, if it waits, why.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    job: Job<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Waiting>,
}

/// `GET /v1/jobs/{id}/status`
pub(super) async fn status(State(state): State<GateState>, Path(id): Path<String>) -> Answer {
    let job = find(&state, &id).await?;
    Ok(json(StatusCode::OK, &Status::of(&job)))
}

/// `GET /v1/jobs/{id}/result`
pub(super) async fn result(State(state): State<GateState>, Path(id): Path<String>) -> Answer {
    let id = job_id(&id)?;
    let found = state.judge(state.store().result(id).await)?;
    let found = found.ok_or_else(ApiError::job_not_found)?;
    if !found.job.status.is_terminal() {
        return Err(not_terminal(found.job.status));
    }
    let bytes = strict_json::to_forge_frame(&FullResult::from(&found));
    if bytes.len() > MAX_RESULT_BYTES {
        return Err(ApiError::coded(
            StatusCode::PAYLOAD_TOO_LARGE,
            "result_too_large",
            "the result is larger than 1 MiB; read the attempts' evidence one by one",
        ));
    }
    Ok(json(StatusCode::OK, &FullResult::from(&found)))
}

/// `GET /v1/jobs/{id}/events`: empty for an unknown job.
pub(super) async fn events(State(state): State<GateState>, Path(id): Path<String>) -> Answer {
    let events = match job_id(&id) {
        Ok(id) => state.judge(state.store().events(id).await)?,
        Err(_) => Vec::new(),
    };
    let entries: Vec<_> = events.iter().map(JournalEntry::from).collect();
    Ok(json(StatusCode::OK, &entries))
}

/// `GET /v1/jobs/{id}/output`: the text of a text job that succeeded.
pub(super) async fn output(State(state): State<GateState>, Path(id): Path<String>) -> Answer {
    let id = job_id(&id)?;
    let found = state.judge(state.store().output(id).await)?;
    let found = found.ok_or_else(ApiError::job_not_found)?;
    let no_output = |message| ApiError::coded(StatusCode::NOT_FOUND, "no_output", message);
    if found.job.kind == JobKind::Coding {
        return Err(no_output(
            "a coding job has a candidate commit and no text output",
        ));
    }
    if !found.job.status.is_terminal() {
        return Err(not_terminal(found.job.status));
    }
    let text = found
        .text
        .ok_or_else(|| no_output("the job did not succeed, so there is no output"))?;
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((headers, text).into_response())
}

/// `GET /v1/jobs/{id}/attempts/{attempt}/evidence`
pub(super) async fn evidence(
    State(state): State<GateState>,
    Path((job, attempt)): Path<(String, String)>,
) -> Answer {
    let not_found = || ApiError::Message {
        status: StatusCode::NOT_FOUND,
        message: "not found",
    };
    let job: JobId = job.parse().map_err(|_| not_found())?;
    let attempt: AttemptId = attempt.parse().map_err(|_| not_found())?;
    let records = state.judge(state.store().evidence(job, attempt).await)?;
    let records = records.ok_or_else(not_found)?;
    let work = state
        .judge(state.store().output(job).await)?
        .map(|output| output.work);
    let checks = work
        .as_ref()
        .and_then(|work| work.coding())
        .map(|task| task.tests())
        .unwrap_or_default();
    let views: Vec<_> = records
        .iter()
        .map(|record| Evidence::new(record, checks))
        .collect();
    Ok(json(StatusCode::OK, &views))
}

/// `POST /v1/jobs/{id}/cancel`
pub(super) async fn cancel(
    State(state): State<GateState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let id = job_id(&id)?;
    expect_no_body(&state, &headers, body).await?;
    let cancelled = state.judge(state.store().cancel(id, state.now()).await)?;
    if !cancelled.repeated {
        log::job_cancelled(&cancelled.job);
    }
    if let Some(ended) = &cancelled.ended {
        state.live_activity().forget(&ended.attempt);
        state.orders().ended(ended, CancelReason::Operator);
        state.bells().all(&ended.pool);
    }
    Ok(json(StatusCode::OK, &Job::of(&cancelled.job, &state)))
}

/// `POST /v1/jobs/{id}/retry`
pub(super) async fn retry(
    State(state): State<GateState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let id = job_id(&id)?;
    expect_no_body(&state, &headers, body).await?;
    let new_id = new_job_id(&state)?;
    let retried = state.judge(state.store().retry(id, new_id, state.now()).await)?;
    let (status, job) = match &retried {
        Retried::Due(job) => (StatusCode::OK, job),
        Retried::Created(job) => {
            log::job_submitted(job);
            (StatusCode::CREATED, job)
        }
    };
    state.ring(&job.worker_pool);
    Ok(json(status, &Job::of(job, &state)))
}

/// A new id; without randomness the Gate cannot go on.
pub(super) fn new_job_id(state: &GateState) -> Result<JobId, ApiError> {
    random::job().map_err(|error| {
        state.fail(error);
        ApiError::failed()
    })
}

async fn find(state: &GateState, id: &str) -> Result<JobView, ApiError> {
    let found = state.judge(state.store().job(job_id(id)?).await)?;
    found.ok_or_else(ApiError::job_not_found)
}

/// What is no id names no job.
fn job_id(text: &str) -> Result<JobId, ApiError> {
    text.parse().map_err(|_| ApiError::job_not_found())
}

fn not_terminal(status: JobStatus) -> ApiError {
    let message = format!("the job is `{status}`; ask again when it has ended");
    ApiError::coded(StatusCode::CONFLICT, "job_not_terminal", message)
}

/// Nothing, or an object without fields.
pub(super) async fn expect_no_body(
    state: &GateState,
    headers: &HeaderMap,
    body: Body,
) -> Result<(), ApiError> {
    let bytes = body::read(headers, body, MAX_EMPTY_BODY, state.deadlines().body)
        .await
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    if bytes.is_empty() {
        return Ok(());
    }
    let limits = strict_json::Limits {
        bytes: MAX_EMPTY_BODY,
        depth: 2,
    };
    strict_json::parse_object(&bytes, &limits, strict_json::Layout::Spaced)
        .map_err(|error| ApiError::bad_request(error.to_string()))?
        .fields("")
        .end()
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

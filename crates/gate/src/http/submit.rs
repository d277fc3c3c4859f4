//! `POST /v1/jobs`: takes a task. What the request may not decide (repository
//! path, pool, policy) is no field of it.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use digest_text::Sha256Text;
use forge_domain::{CodingTask, IdempotencyKey, Priority, SourceRef, TaskOrigin, Work};
use gate_store::{Idempotency, NewJob, StoreError, Submitted};
use strict_json::{FieldError, Fields, Layout, Limits, parse_object};

use super::answer::{ApiError, json};
use super::jobs::new_job_id;
use super::views::Job;
use crate::log;
use crate::state::{GateState, Refusal};
use web_server::body::{self, BodyError};

/// The largest body.
const MAX_BODY_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 8;

/// A request that was understood.
struct Submission {
    work: Work,
    priority: Priority,
    source_ref: Option<SourceRef>,
}

pub(super) async fn submit(
    State(state): State<GateState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(&headers, body, MAX_BODY_BYTES, state.deadlines().body)
        .await
        .map_err(unread)?;
    let submission = decode(&bytes).map_err(invalid)?;
    let key = idempotency_key(&headers).map_err(invalid)?;
    let policy = match &submission.work {
        Work::Text { .. } => state.text_policy(),
        Work::Coding(task) => state
            .repository_policy(task.repository_id())
            .ok_or_else(|| {
                invalid("`repository_id` names no repository of this Gate".to_owned())
            })?,
    };
    let job = NewJob {
        id: new_job_id(&state).map_err(|_| failed())?,
        work: submission.work,
        policy,
        priority: submission.priority,
        source_ref: submission.source_ref,
        idempotency: key.map(|key| Idempotency {
            key,
            body: Sha256Text::of(&bytes),
        }),
    };
    let pool = job.policy.worker_pool().clone();
    let answer = state.store().submit(job, state.now());
    // Behind the job in the store's queue, so that one commit holds it and its lease.
    state.ring(&pool);
    let submitted = state.judge(answer.await).map_err(|refusal| match refusal {
        Refusal::Stopping => failed(),
        Refusal::Store(StoreError::IdempotencyConflict) => ApiError::from(refusal),
        Refusal::Store(error) => invalid(error.to_string()),
    })?;
    let status = match &submitted {
        Submitted::Created(job) => {
            log::job_submitted(job);
            StatusCode::CREATED
        }
        Submitted::Existing(_) => StatusCode::OK,
    };
    Ok(json(status, &Job::of(submitted.job(), &state)))
}

fn decode(bytes: &[u8]) -> Result<Submission, String> {
    let limits = Limits {
        bytes: MAX_BODY_BYTES,
        depth: MAX_DEPTH,
    };
    let object = parse_object(bytes, &limits, Layout::Spaced).map_err(|error| error.to_string())?;
    fields(object.fields("")).map_err(|error| error.to_string())
}

fn fields(mut fields: Fields) -> Result<Submission, FieldError> {
    let source_ref = fields.opt_parse("source_ref")?;
    let priority = match fields.opt_i64("priority")? {
        None => Priority::default(),
        Some(priority) => Priority::new(priority)
            .map_err(|error| FieldError::invalid("priority", error.to_string()))?,
    };
    let work = if fields.contains("input") {
        Work::text(fields.text("input")?)
            .map_err(|error| FieldError::invalid("input", error.to_string()))?
    } else {
        Work::Coding(CodingTask::take(&mut fields, TaskOrigin::Submission)?)
    };
    fields.end()?;
    Ok(Submission {
        work,
        priority,
        source_ref,
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, String> {
    let mut values = headers.get_all("idempotency-key").iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let key = value
                .to_str()
                .map_err(|_| "`Idempotency-Key` must be printable ASCII")?;
            key.parse()
                .map(Some)
                .map_err(|error: forge_domain::DomainError| error.to_string())
        }
        (Some(_), Some(_)) => Err("`Idempotency-Key` stands twice".to_owned()),
    }
}

fn unread(error: BodyError) -> ApiError {
    let status = match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken => StatusCode::BAD_REQUEST,
    };
    ApiError::Plain {
        status,
        error: "invalid request",
        reason: Some(error.to_string()),
    }
}

fn invalid(reason: String) -> ApiError {
    ApiError::Plain {
        status: StatusCode::BAD_REQUEST,
        error: "invalid request",
        reason: Some(reason),
    }
}

fn failed() -> ApiError {
    ApiError::Plain {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        error: "request failed",
        reason: None,
    }
}

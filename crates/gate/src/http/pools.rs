//! The pools: what waits in each, and the two things their owner can do to one.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use forge_domain::PoolId;
use gate_store::{PauseReason, PoolView};
use jiff::Timestamp;
use serde::Serialize;
use strict_json::{FieldError, Layout, Limits, parse_object};

use super::answer::{ApiError, json};
use super::jobs::expect_no_body;
use crate::log;
use crate::pools::{self, SlotState, SlotView};
use crate::state::GateState;
use web_server::body::{self, BodyError};

/// The largest body of a request to pause: a reason in escapes, and room.
const MAX_BODY: usize = 4096;

type Answer = Result<Response, ApiError>;

#[derive(Serialize)]
struct PoolList<'a> {
    items: Vec<Pool<'a>>,
}

/// A pool.
#[derive(Serialize)]
struct Pool<'a> {
    id: &'a PoolId,
    paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_reason: Option<&'a str>,
    slots: usize,
    connected: usize,
    working: usize,
    refusing: usize,
    stopping: usize,
    greeting: usize,
    ready: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ready_at: Option<Timestamp>,
    retrying: u32,
    leased: u32,
}

impl<'a> Pool<'a> {
    fn new(view: &'a PoolView, slots: &[SlotView]) -> Self {
        let pause = view.pause.as_ref();
        let count = |wanted: fn(SlotState) -> bool| {
            let own = slots.iter().filter(|slot| slot.pool == view.pool);
            own.filter(|slot| wanted(slot.state)).count()
        };
        Self {
            id: &view.pool,
            paused: pause.is_some(),
            paused_since: pause.map(|pause| pause.since),
            pause_reason: pause
                .and_then(|pause| pause.reason.as_ref())
                .map(PauseReason::as_str),
            slots: count(|_| true),
            connected: count(|state| state != SlotState::Away),
            working: count(|state| state == SlotState::Working),
            refusing: count(|state| matches!(state, SlotState::Refusing(_))),
            stopping: count(|state| state == SlotState::Stopping),
            greeting: count(|state| state == SlotState::Greeting),
            ready: view.ready,
            oldest_ready_at: view.oldest,
            retrying: view.retrying,
            leased: view.leased,
        }
    }
}

/// `GET /v1/pools`
pub(super) async fn list(State(state): State<GateState>) -> Answer {
    let known = state.judge(state.store().pools().await)?;
    let workers = state.judge(state.store().workers().await)?;
    let all = pools::with_configured(&state, known);
    let slots = pools::slots(&state, &workers);
    let list = PoolList {
        items: all.iter().map(|view| Pool::new(view, &slots)).collect(),
    };
    Ok(json(StatusCode::OK, &list))
}

/// `POST /v1/pools/{pool}/pause`
pub(super) async fn pause(
    State(state): State<GateState>,
    Path(pool): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let pool = find(&state, &pool).await?;
    let bytes = body::read(&headers, body, MAX_BODY, state.deadlines().body)
        .await
        .map_err(unread)?;
    let reason = reason(&bytes)?;
    let paused = state.store().pause_pool(pool.clone(), reason, state.now());
    let paused = state.judge(paused.await)?;
    log::pool_paused(&pool, &paused.pause);
    show(&state, &pool).await
}

/// `POST /v1/pools/{pool}/resume`
pub(super) async fn resume(
    State(state): State<GateState>,
    Path(pool): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let pool = find(&state, &pool).await?;
    expect_no_body(&state, &headers, body).await?;
    if state.judge(state.store().resume_pool(pool.clone()).await)? {
        log::pool_resumed(&pool);
        state.bells().all(&pool);
    }
    show(&state, &pool).await
}

/// A pool of the configuration, or one that is not in it any more but still has something.
async fn find(state: &GateState, text: &str) -> Result<PoolId, ApiError> {
    let not_found = || {
        let message = "no pool has this id; `GET /v1/pools` lists them";
        ApiError::coded(StatusCode::NOT_FOUND, "pool_not_found", message)
    };
    let pool: PoolId = text.parse().map_err(|_| not_found())?;
    if state.has_pool(&pool) {
        return Ok(pool);
    }
    let known = state.judge(state.store().pools().await)?;
    let known = known.into_iter().any(|view| view.pool == pool);
    known.then_some(pool).ok_or_else(not_found)
}

async fn show(state: &GateState, pool: &PoolId) -> Answer {
    let known = state.judge(state.store().pools().await)?;
    let workers = state.judge(state.store().workers().await)?;
    let view = known.into_iter().find(|view| view.pool == *pool);
    let view = view.unwrap_or_else(|| PoolView::empty(pool.clone()));
    let slots = pools::slots(state, &workers);
    Ok(json(StatusCode::OK, &Pool::new(&view, &slots)))
}

/// Nothing, or an object with at most a reason.
fn reason(bytes: &[u8]) -> Result<Option<PauseReason>, ApiError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let limits = Limits {
        bytes: MAX_BODY,
        depth: 2,
    };
    let object = parse_object(bytes, &limits, Layout::Spaced)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let read = || -> Result<_, FieldError> {
        let mut fields = object.fields("");
        let reason = fields.opt_parse("reason")?;
        fields.end()?;
        Ok(reason)
    };
    read().map_err(|error| ApiError::bad_request(error.to_string()))
}

fn unread(error: BodyError) -> ApiError {
    let status = match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken => StatusCode::BAD_REQUEST,
    };
    ApiError::coded(status, "invalid_request", error.to_string())
}

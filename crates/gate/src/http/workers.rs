//! The slots: those that connected, and those that are only configured.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use forge_domain::SlotId;
use serde::Serialize;

use super::answer::{ApiError, json};
use super::views::Worker;
use crate::state::GateState;

#[derive(Serialize)]
struct WorkerList<'a> {
    items: Vec<Worker<'a>>,
}

/// `GET /v1/workers`
pub(super) async fn list(State(state): State<GateState>) -> Result<Response, ApiError> {
    let seen = state.judge(state.store().workers().await)?;
    let configured: Vec<_> = state.slots().collect();
    let mut all: BTreeMap<&SlotId, Worker<'_>> = configured
        .iter()
        .map(|(slot, pool)| (slot, Worker::never_seen(slot, pool)))
        .collect();
    all.extend(
        seen.iter()
            .map(|view| (&view.slot, Worker::seen(view, &state))),
    );
    let list = WorkerList {
        items: all.into_values().collect(),
    };
    Ok(json(StatusCode::OK, &list))
}

/// `GET /v1/workers/{id}`, where slot 1 of `w` is `w%231`.
pub(super) async fn one(
    State(state): State<GateState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let not_found = || {
        ApiError::coded(
            StatusCode::NOT_FOUND,
            "worker_not_found",
            "no slot has this id; slot 1 of a Worker is `ID%231`",
        )
    };
    let slot: SlotId = id.parse().map_err(|_| not_found())?;
    if let Some(view) = state.judge(state.store().worker(slot.clone()).await)? {
        return Ok(json(StatusCode::OK, &Worker::seen(&view, &state)));
    }
    let pool = state.pool_of(&slot).ok_or_else(not_found)?;
    Ok(json(StatusCode::OK, &Worker::never_seen(&slot, pool)))
}

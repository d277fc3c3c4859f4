//! Whether the Gate lives and whether it serves.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::answer::json;
use crate::state::GateState;

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// `GET /healthz`
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &Health { status: "ok" })
}

/// `GET /readyz`: 503 while the Gate stops.
pub(super) async fn ready(State(state): State<GateState>) -> Response {
    if state.stopping().is_cancelled() {
        let stopping = Health { status: "stopping" };
        return json(StatusCode::SERVICE_UNAVAILABLE, &stopping);
    }
    json(StatusCode::OK, &Health { status: "ready" })
}

//! Whether the registry lives and whether it serves.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::answer::json;
use crate::log;
use crate::state::RegistryState;

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// `GET /healthz`
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &Health { status: "ok" })
}

/// `GET /readyz`: 503 while the registry stops, or if its database does not answer.
pub(super) async fn ready(State(state): State<RegistryState>) -> Response {
    let status = if state.lifetime().stopping.is_cancelled() {
        "stopping"
    } else if let Err(error) = state.store().ping().await {
        log::internal(&error);
        "failing"
    } else {
        return json(StatusCode::OK, &Health { status: "ready" });
    };
    json(StatusCode::SERVICE_UNAVAILABLE, &Health { status })
}

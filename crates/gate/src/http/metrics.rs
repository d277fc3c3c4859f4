//! `GET /metrics`: what the Gate counts of itself, for the owner, or for everybody on this machine
//! if the configuration says so.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};

use super::answer::ApiError;
use crate::metrics::{CONTENT_TYPE, scrape};
use crate::state::GateState;

pub(super) async fn metrics(
    State(state): State<GateState>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !state.metrics_are_open() && !state.tokens().is_owner(&headers) {
        return Err(ApiError::Unauthorized);
    }
    let text = scrape(&state).await?;
    let head = [
        (header::CONTENT_TYPE, CONTENT_TYPE),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((head, text).into_response())
}

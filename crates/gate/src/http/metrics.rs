//! `GET /metrics`: what the Gate counts of itself, for the owner, or for everybody on this machine
//! if the configuration says so.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use super::answer::ApiError;
use crate::metrics::{CONTENT_TYPE, scrape};
use crate::state::GateState;

pub(super) async fn metrics(State(state): State<GateState>, headers: HeaderMap) -> Response {
    let mut response = match read(&state, &headers).await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => error.into_response(),
    };
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

async fn read(state: &GateState, headers: &HeaderMap) -> Result<String, ApiError> {
    if !state.metrics_are_open() && !state.tokens().is_owner(headers) {
        return Err(ApiError::Unauthorized);
    }
    Ok(scrape(state).await?)
}

//! `GET /catalog`: the plugins that can be had.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use registry_store::{MAX_PAGE, Page};

use super::answer::{ApiError, Versioned, json};
use super::query::Query;
use crate::state::RegistryState;

const DEFAULT_LIMIT: u32 = 20;
const MAX_CURSOR: usize = 2048;

/// `GET /catalog`
pub(super) async fn catalog(
    State(state): State<RegistryState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::parse(query.as_deref(), &["limit", "cursor", "q"])?;
    let page = page(&mut query)?;
    let listed = state.store().catalog(query.text("q"), page).await?;
    Ok(json(StatusCode::OK, &Versioned::of(&listed)))
}

/// Takes the parameters that every list has.
pub(super) fn page(query: &mut Query) -> Result<Page, ApiError> {
    let limit = match query.text("limit") {
        None => DEFAULT_LIMIT,
        Some(text) => number(&text)
            .ok_or_else(|| ApiError::invalid(format!("`limit` must be from 1 to {MAX_PAGE}")))?,
    };
    let cursor = query.text("cursor");
    if cursor.as_ref().is_some_and(|text| text.len() > MAX_CURSOR) {
        return Err(ApiError::invalid("the cursor is not one of this list"));
    }
    Ok(Page { limit, cursor })
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (1..=MAX_PAGE).contains(&number).then_some(number)
}

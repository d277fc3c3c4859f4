//! `GET /v1/jobs`: a page of jobs, newest first.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use forge_domain::JobStatus;
use gate_store::{JobFilter, MAX_PAGE, Page};
use serde::Serialize;

use super::answer::{ApiError, json};
use super::views::Job;
use crate::state::GateState;

const DEFAULT_LIMIT: u16 = 25;
const MAX_CURSOR_BYTES: usize = 512;

#[derive(Serialize)]
struct JobList<'a> {
    items: Vec<Job<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

pub(super) async fn list(
    State(state): State<GateState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (filter, page) = parse(query.as_deref().unwrap_or_default())?;
    let page = state.judge(state.store().list_jobs(filter, page).await)?;
    let list = JobList {
        items: page.items.iter().map(|job| Job::of(job, &state)).collect(),
        next_cursor: page.next_cursor.as_deref(),
    };
    Ok(json(StatusCode::OK, &list))
}

fn parse(query: &str) -> Result<(JobFilter, Page), ApiError> {
    let mut filter = JobFilter::default();
    let mut limit = None;
    let mut cursor = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        // Every allowed value is of unreserved characters: nothing to decode.
        let invalid = || ApiError::bad_request(format!("`{key}` has no valid value"));
        let fresh = match key {
            "status" => filter
                .status
                .replace(status(value).ok_or_else(invalid)?)
                .is_none(),
            "pool" => filter
                .pool
                .replace(value.parse().map_err(|_| invalid())?)
                .is_none(),
            "repository_id" => {
                let id = value.parse().map_err(|_| invalid())?;
                filter.repository.replace(id).is_none()
            }
            "limit" => limit.replace(count(value).ok_or_else(invalid)?).is_none(),
            "cursor" => {
                let fits = !value.is_empty() && value.len() <= MAX_CURSOR_BYTES;
                let value = fits.then(|| value.to_owned()).ok_or_else(invalid)?;
                cursor.replace(value).is_none()
            }
            _ => {
                let known = "`status`, `pool`, `repository_id`, `limit`, `cursor`";
                let key = cli_shell::visible(key);
                return Err(ApiError::bad_request(format!(
                    "`{key}` is unknown; known: {known}"
                )));
            }
        };
        if !fresh {
            return Err(ApiError::bad_request(format!("`{key}` stands twice")));
        }
    }
    let page = Page {
        limit: limit.unwrap_or(DEFAULT_LIMIT),
        cursor,
    };
    Ok((filter, page))
}

fn status(text: &str) -> Option<JobStatus> {
    JobStatus::ALL
        .into_iter()
        .find(|status| status.as_str() == text)
}

fn count(text: &str) -> Option<u16> {
    text.parse()
        .ok()
        .filter(|count| (1..=MAX_PAGE).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_read_once() {
        let (filter, page) =
            parse("status=retry_wait&pool=coding&repository_id=forge&limit=100&cursor=abc")
                .unwrap();
        assert_eq!(filter.status, Some(JobStatus::RetryWait));
        assert_eq!(filter.pool.unwrap().as_str(), "coding");
        assert_eq!(filter.repository.unwrap().as_str(), "forge");
        assert_eq!((page.limit, page.cursor.as_deref()), (100, Some("abc")));
        assert_eq!(parse("").unwrap().1.limit, DEFAULT_LIMIT);
    }

    #[test]
    fn refuses_what_is_unknown_double_or_out_of_bounds() {
        for query in [
            "limit=0",
            "limit=101",
            "limit=-1",
            "limit=",
            "limit=1&limit=1",
            "status=running",
            "status=",
            "pool=A",
            "repository_id=..",
            "cursor=",
            "x=1",
            "limit",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
        assert!(parse(&format!("cursor={}", "a".repeat(512))).is_ok());
        assert!(parse(&format!("cursor={}", "a".repeat(513))).is_err());
    }
}

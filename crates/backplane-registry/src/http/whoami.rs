//! What a token is good for, and the description of all routes.

use axum::Extension;
use axum::extract::RawQuery;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::access::Caller;
use super::answer::{ApiError, PROTOCOL_VERSION, json};
use super::query::Query;
use crate::config::{Pattern, Scope};

const OPENAPI: &str = include_str!("../../openapi.json");

#[derive(Serialize)]
struct Identity<'a> {
    protocol_version: &'a str,
    name: &'a str,
    scopes: Vec<&'a str>,
    plugins: Vec<&'a str>,
}

/// `GET /whoami`
pub(super) async fn whoami(
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let identity = caller.identity()?;
    let plugins = identity.plugins.as_ref().map_or_else(
        || vec!["*"],
        |patterns| patterns.iter().map(Pattern::as_str).collect(),
    );
    let identity = Identity {
        protocol_version: PROTOCOL_VERSION,
        name: &identity.name,
        scopes: identity.scopes.iter().copied().map(Scope::as_str).collect(),
        plugins,
    };
    Ok(json(StatusCode::OK, &identity))
}

/// `GET /openapi.json`
pub(super) async fn openapi(RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let json = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, json)], OPENAPI).into_response())
}

//! `/installations`: what hosts say of the plugins that they installed.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use registry_store::{InstallationFilter, InstallationStatus, Report};
use strict_json::{FieldError, Fields};

use super::access::Caller;
use super::answer::{ApiError, Versioned, json};
use super::body;
use super::catalog::page;
use super::query::Query;
use crate::state::RegistryState;

/// `GET /installations`
pub(super) async fn list(
    State(state): State<RegistryState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let known = ["limit", "cursor", "plugin_id", "host"];
    let mut query = Query::parse(query.as_deref(), &known)?;
    let page = page(&mut query)?;
    let filter = InstallationFilter {
        plugin_id: query.parsed("plugin_id")?,
        host: query.text("host"),
    };
    let listed = state.store().installations(filter, page).await?;
    Ok(json(StatusCode::OK, &Versioned::of(&listed)))
}

/// `POST /installations`
pub(super) async fn report(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let report = body::json(&headers, body, read).await?;
    caller.may_change(report.plugin_id.as_str())?;
    let by = caller.name().to_owned();
    let noted = state.store().report(report, by, state.now()).await?;
    Ok(json(StatusCode::OK, &Versioned::of(&noted)))
}

fn read(mut fields: Fields) -> Result<Report, FieldError> {
    let report = Report {
        installation_id: fields.parse("installation_id")?,
        host: fields.text("host")?,
        plugin_id: fields.parse("plugin_id")?,
        release_id: fields.parse("release_id")?,
        artifact_digest: fields.parse("artifact_digest")?,
        status: status(&mut fields)?,
        error: fields.opt_text("error")?,
    };
    fields.end()?;
    Ok(report)
}

fn status(fields: &mut Fields) -> Result<InstallationStatus, FieldError> {
    let text = fields.text("status")?;
    InstallationStatus::from_name(&text).ok_or_else(|| {
        let rule = "must be `installed`, `updated`, `failed` or `removed`";
        FieldError::invalid("status", rule)
    })
}

//! Releases: found, made, listed, put into channels and withdrawn.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use digest_text::Sha256Text;
use registry_store::{ChannelName, PluginId, Release, ReleaseId, Wanted};
use strict_json::{FieldError, Fields};

use super::access::Caller;
use super::answer::{ApiError, Versioned, json};
use super::body;
use super::catalog::page;
use super::params::Params;
use super::query::Query;
use crate::state::RegistryState;

fn ok(release: &Release) -> Response {
    json(StatusCode::OK, &Versioned::of(release))
}

/// `GET /resolve`
pub(super) async fn resolve(
    State(state): State<RegistryState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let mut query = Query::parse(query.as_deref(), &["plugin_id", "release_id", "channel"])?;
    let wanted = Wanted {
        plugin_id: query.parsed("plugin_id")?,
        release_id: query.parsed("release_id")?,
        channel: query.parsed("channel")?,
    };
    Ok(ok(&state.store().resolve(wanted).await?))
}

/// `GET /plugins/{plugin_id}/releases`
pub(super) async fn list(
    State(state): State<RegistryState>,
    params: Params,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let plugin: PluginId = params.get("plugin_id")?;
    let mut query = Query::parse(query.as_deref(), &["limit", "cursor"])?;
    let page = page(&mut query)?;
    let listed = state.store().releases(plugin, page).await?;
    Ok(json(StatusCode::OK, &Versioned::of(&listed)))
}

struct Publish {
    artifact: Sha256Text,
    channel: Option<ChannelName>,
}

impl Publish {
    fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let publish = Self {
            artifact: fields.parse("artifact_digest")?,
            channel: fields.opt_parse("channel")?,
        };
        fields.end()?;
        Ok(publish)
    }
}

/// `POST /releases`
pub(super) async fn publish(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let Publish { artifact, channel } = body::json(&headers, body, Publish::read).await?;
    let known = state.store().artifact(artifact).await?;
    let known =
        known.ok_or_else(|| ApiError::not_found("no artifact of this digest was uploaded"))?;
    caller.may_change(known.plugin_id.as_str())?;
    let publisher = caller.name().to_owned();
    let published = state
        .store()
        .publish(artifact, channel, publisher, state.now())
        .await?;
    let status = match published.created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(json(status, &Versioned::of(&published.release)))
}

struct Promote {
    release: ReleaseId,
    expected: Option<ReleaseId>,
}

impl Promote {
    fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let promote = Self {
            release: fields.parse("release_id")?,
            expected: fields.opt_parse("expected_release_id")?,
        };
        fields.end()?;
        Ok(promote)
    }
}

/// `PUT /plugins/{plugin_id}/channels/{channel}`
pub(super) async fn promote(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let plugin: PluginId = params.get("plugin_id")?;
    let channel: ChannelName = params.get("channel")?;
    caller.may_change(plugin.as_str())?;
    let Promote { release, expected } = body::json(&headers, body, Promote::read).await?;
    let promoted = state
        .store()
        .promote(plugin, channel, release, expected, state.now());
    Ok(ok(&promoted.await?))
}

/// `POST /releases/{release_id}/yank`
pub(super) async fn yank(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let release = params.get("release_id")?;
    let reason = body::json_or_nothing(&headers, body, |mut fields| {
        let reason = fields.opt_text("reason")?;
        fields.end()?;
        Ok(reason)
    });
    let reason = reason.await?.flatten();
    may_yank(&state, &caller, release).await?;
    Ok(ok(&state
        .store()
        .yank(release, reason, state.now())
        .await?))
}

/// `POST /releases/{release_id}/unyank`
pub(super) async fn unyank(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let release = params.get("release_id")?;
    body::json_or_nothing(&headers, body, Fields::end).await?;
    may_yank(&state, &caller, release).await?;
    Ok(ok(&state.store().unyank(release, state.now()).await?))
}

/// Finds out whose release it is, and refuses a token that is not for that plugin.
async fn may_yank(
    state: &RegistryState,
    caller: &Caller,
    release: ReleaseId,
) -> Result<(), ApiError> {
    let wanted = Wanted {
        release_id: Some(release),
        ..Wanted::default()
    };
    let found = state.store().resolve(wanted).await?;
    caller.may_change(found.plugin_id.as_str())
}

//! `/artifacts/{digest}`: the archives of releases, and uploads before their release.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use registry_store::Admission;

use super::access::Caller;
use super::answer::{ApiError, Versioned, json};
use super::body;
use super::bytes::{Reply, Representation};
use super::params::Params;
use super::query::Query;
use crate::state::RegistryState;

/// What archives are served as.
const MEDIA_TYPE: &str = "application/x-tar+gzip";
/// What they may come as.
const MEDIA_TYPES: [&str; 3] = [MEDIA_TYPE, "application/gzip", "application/octet-stream"];
/// How long an upload waits for its turn.
pub(super) const TURN: Duration = Duration::from_secs(5);

/// `GET` and `HEAD /artifacts/{digest}`
pub(super) async fn download(
    State(state): State<RegistryState>,
    method: Method,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let digest = params.digest()?;
    let known = state.store().artifact(digest).await?;
    let artifact = known
        .filter(|artifact| artifact.released)
        .ok_or_else(|| ApiError::not_found("there is no released artifact of this digest"))?;
    let representation = Representation {
        digest,
        length: artifact.bytes,
        media_type: MEDIA_TYPE,
        public: state.anonymous_read(),
    };
    match representation.answer(&method, &headers)? {
        Reply::Done(answer) => Ok(answer),
        Reply::Send(range, answer) => {
            let bytes = state.store().read(digest, range).await?;
            Ok(answer.map(|_| Body::from_stream(bytes)))
        }
    }
}

/// `PUT /artifacts/{digest}`
pub(super) async fn upload(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let digest = params.digest()?;
    let limits = state.limits();
    body::plain(&headers)?;
    body::media_type(&headers, &MEDIA_TYPES)?;
    body::announced(&headers, limits.archive.archive_bytes)?;
    let admission = admitted(&state).await?;
    let most = admission.archive_bytes();
    let bytes = body::upload(&headers, body, most, limits.upload_timeout).await?;
    let checked = admission.check(bytes.into(), digest).await?;
    caller.may_change(checked.plugin_id().as_str())?;
    let uploaded = state.store().upload(checked, state.now()).await?;
    let status = match uploaded.created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(json(status, &Versioned::of(&uploaded)))
}

/// Waits a little for memory to hold one more package.
async fn admitted(state: &RegistryState) -> Result<Admission, ApiError> {
    match tokio::time::timeout(TURN, state.store().admit()).await {
        Ok(admitted) => Ok(admitted?),
        Err(_) => Err(ApiError::busy("too many uploads are under way")),
    }
}

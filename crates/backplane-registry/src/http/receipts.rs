//! `/artifacts/{digest}/receipt`: what attest wrote of how an archive was made.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use digest_text::Sha256Text;
use serde::Serialize;

use super::access::Caller;
use super::answer::{ApiError, PROTOCOL_VERSION, json};
use super::artifacts::TURN;
use super::body;
use super::bytes::{Reply, Representation};
use super::params::Params;
use super::query::Query;
use crate::state::RegistryState;

/// The longest receipt, which is what attest reads of one.
const MAX_RECEIPT: usize = attest_receipt::receipt::MAX_BYTES;
/// What receipts are served as.
const MEDIA_TYPE: &str = "application/yaml";
/// What they may come as.
const MEDIA_TYPES: [&str; 2] = [MEDIA_TYPE, "application/octet-stream"];

/// `GET` and `HEAD /artifacts/{digest}/receipt`
pub(super) async fn receipt(
    State(state): State<RegistryState>,
    method: Method,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let receipt = state.store().receipt(params.digest()?).await?;
    let representation = Representation {
        digest: receipt.digest,
        length: receipt.bytes.len() as u64,
        media_type: MEDIA_TYPE,
        public: state.anonymous_read(),
    };
    match representation.answer(&method, &headers)? {
        Reply::Done(answer) => Ok(answer),
        Reply::Send(range, answer) => {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let part = receipt.bytes.slice(place(range.start)..place(range.end));
            Ok(answer.map(|_| Body::from(part)))
        }
    }
}

#[derive(Serialize)]
struct Kept<'a> {
    protocol_version: &'a str,
    artifact_digest: Sha256Text,
    receipt_bytes: usize,
}

/// `PUT /artifacts/{digest}/receipt`
pub(super) async fn put_receipt(
    State(state): State<RegistryState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    Query::parse(query.as_deref(), &[])?;
    let digest = params.digest()?;
    body::plain(&headers)?;
    body::media_type(&headers, &MEDIA_TYPES)?;
    body::announced(&headers, MAX_RECEIPT as u64)?;
    let artifact = state.store().artifact(digest).await?;
    let artifact =
        artifact.ok_or_else(|| ApiError::not_found("no artifact of this digest was uploaded"))?;
    caller.may_change(artifact.plugin_id.as_str())?;
    let turn = tokio::time::timeout(TURN, state.receipts().acquire()).await;
    let _turn = turn.map_err(|_| ApiError::busy("too many receipts are under way"))?;
    let timeout = state.limits().upload_timeout;
    let bytes = body::upload(&headers, body, MAX_RECEIPT as u64, timeout).await?;
    let receipt_bytes = bytes.len();
    let by = caller.name().to_owned();
    let created = state
        .store()
        .put_receipt(digest, bytes.into(), by, state.now())
        .await?;
    let status = match created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let kept = Kept {
        protocol_version: PROTOCOL_VERSION,
        artifact_digest: digest,
        receipt_bytes,
    };
    Ok(json(status, &kept))
}

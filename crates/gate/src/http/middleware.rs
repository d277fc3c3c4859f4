//! What every request passes, outermost first: a panic becomes an answer, the
//! headers that browsers need are set, foreign hosts and origins are turned
//! away. Owner routes add the token and forbid caching.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tower_http::catch_panic::CatchPanicLayer;
use web_server::Foreign;

use super::answer::ApiError;
use crate::state::GateState;

const CONTENT_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// Wraps all routes.
pub(super) fn around(routes: Router<GateState>, state: &GateState) -> Router<GateState> {
    routes
        .layer(from_fn_with_state(state.clone(), known_host))
        .layer(from_fn(browser_headers))
        .layer(CatchPanicLayer::custom(|_panic| {
            tracing::error!(component = "gate", "a handler panicked");
            ApiError::failed().into_response()
        }))
        .layer(from_fn_with_state(state.clone(), count))
}

/// Counts what is answered. The label is the route's pattern, so that no id is ever in it.
async fn count(State(state): State<GateState>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    state
        .metrics()
        .answered(&method, route, response.status().as_u16());
    response
}

/// Wraps the routes of the owner.
pub(super) fn for_owner(routes: Router<GateState>, state: &GateState) -> Router<GateState> {
    routes.route_layer(from_fn_with_state(state.clone(), owner))
}

async fn owner(State(state): State<GateState>, request: Request, next: Next) -> Response {
    let mut response = if state.tokens().is_owner(request.headers()) {
        next.run(request).await
    } else {
        ApiError::Unauthorized.into_response()
    };
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

async fn known_host(State(state): State<GateState>, request: Request, next: Next) -> Response {
    let (status, code, message) = match state.hosts().check(request.uri(), request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(Foreign::Malformed) => (
            StatusCode::BAD_REQUEST,
            "invalid_host",
            "the request needs exactly one valid Host",
        ),
        Err(Foreign::Host) => (
            StatusCode::FORBIDDEN,
            "foreign_host",
            "this Gate does not answer to that host; see `allowed_hosts`",
        ),
        Err(Foreign::Origin) => (
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "this Gate takes no requests from that origin; see `allowed_origins`",
        ),
    };
    ApiError::coded(status, code, message).into_response()
}

async fn browser_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        for (name, value) in HEADERS {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

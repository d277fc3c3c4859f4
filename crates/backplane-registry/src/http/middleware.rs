//! What every request passes, in this order: it gets an id, its answer is logged, a panic becomes
//! an answer, the headers that browsers need are set, a head that is too long and foreign hosts
//! and origins are turned away. Bodies have their limits of size and time where they are read,
//! uploads a limit of number, connections theirs below HTTP.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tower_http::catch_panic::CatchPanicLayer;
use web_server::Foreign;

use super::access::Caller;
use super::answer::{ApiError, Code, LoggedCode};
use crate::log;
use crate::state::RegistryState;

/// Bytes of a request head, names and values and target together.
pub(crate) const MAX_HEAD: usize = 16 * 1024;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Wraps all routes. The last layer is the outermost.
pub(super) fn around(
    routes: Router<RegistryState>,
    state: &RegistryState,
) -> Router<RegistryState> {
    routes
        .layer(from_fn_with_state(state.clone(), known_host))
        .layer(from_fn(bounded_head))
        .layer(from_fn(browser_headers))
        .layer(CatchPanicLayer::custom(|_panic| {
            tracing::error!(component = "registry", "a handler panicked");
            ApiError::failed().into_response()
        }))
        .layer(from_fn_with_state(state.clone(), identified_and_logged))
}

async fn identified_and_logged(
    State(state): State<RegistryState>,
    request: Request,
    next: Next,
) -> Response {
    let id = state.next_request_id();
    let start = state.instant();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let extensions = response.extensions();
    log::answered(&log::Answered {
        request_id: &id,
        method: known_method(&method),
        route: route.as_ref().map_or("", MatchedPath::as_str),
        status: response.status().as_u16(),
        code: extensions.get::<LoggedCode>().map_or("", |code| code.0),
        token: extensions.get::<Caller>().map_or("", Caller::name),
        took: state.instant().saturating_duration_since(start),
    });
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A client may make methods up, and nothing that it wrote gets into the log.
fn known_method(method: &axum::http::Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "PUT" | "POST" | "DELETE" | "OPTIONS" | "PATCH") => known,
        _ => "other",
    }
}

async fn browser_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn bounded_head(request: Request, next: Next) -> Response {
    let fields = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |all| all.as_str().len());
    if fields.sum::<usize>() + target > MAX_HEAD {
        let message = format!("the request line and the headers are longer than {MAX_HEAD} bytes");
        return ApiError::new(Code::HeadTooLarge, message).into_response();
    }
    next.run(request).await
}

async fn known_host(State(state): State<RegistryState>, request: Request, next: Next) -> Response {
    let refusal = match state.hosts().check(request.uri(), request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(Foreign::Malformed) => ApiError::invalid("the request needs exactly one valid Host"),
        Err(Foreign::Host) => ApiError::new(
            Code::Forbidden,
            "this registry does not answer to that host; see `allowed_hosts`",
        ),
        Err(Foreign::Origin) => ApiError::new(
            Code::Forbidden,
            "this registry takes no requests from other sites",
        ),
    };
    refusal.into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;
    use registry_store::{ArtifactPlace, Limits, Store};
    use tower::ServiceExt as _;
    use web_server::HostRules;

    use super::*;
    use crate::config::ServiceLimits;
    use crate::state::Service;
    use crate::tokens::Tokens;

    async fn panics() -> &'static str {
        panic!("canary")
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_like_any_other_failure() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let service = Service {
            store: Store::open(&root, ArtifactPlace::Memory, Limits::default()).unwrap(),
            tokens: Tokens::new([]).unwrap(),
            hosts: HostRules::default(),
            anonymous_read: false,
            limits: ServiceLimits::default(),
        };
        let state = RegistryState::new(service, Arc::new(cli_shell::clock::now), 1);
        let routes = around(Router::new().route("/", get(panics)), &state).with_state(state);
        let request = Request::get("/").header(header::HOST, "a");
        let answer = routes
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.headers().contains_key(REQUEST_ID));
        let body = axum::body::to_bytes(answer.into_body(), 4096)
            .await
            .unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(
            body.contains("\"internal\"") && !body.contains("canary"),
            "{body}"
        );
    }
}

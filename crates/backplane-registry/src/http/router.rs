//! All routes, and what each needs of a token.

use axum::Router;
use axum::routing::{get, post, put};

use super::access::Need::{self, Reader, Scope, Token};
use super::answer::{ApiError, Code};
use super::{
    access, artifacts, catalog, health, installations, middleware, receipts, releases, whoami,
};
use crate::config::Scope::{Promote, Publish, Read, Report, Yank};
use crate::state::RegistryState;

/// What every path of the protocol begins with.
pub const PREFIX: &str = "/plugin-protocol/v1";

/// The service of a registry with this state.
pub fn router(state: RegistryState) -> Router {
    let need = |need: Need, route| access::need(need, &state, route);
    let api = Router::new()
        .route("/catalog", need(Reader, get(catalog::catalog)))
        .route("/resolve", need(Reader, get(releases::resolve)))
        .route(
            "/artifacts/{digest}",
            need(Reader, get(artifacts::download))
                .merge(need(Scope(Publish), put(artifacts::upload))),
        )
        .route(
            "/artifacts/{digest}/receipt",
            need(Reader, get(receipts::receipt))
                .merge(need(Scope(Publish), put(receipts::put_receipt))),
        )
        .route("/releases", need(Scope(Publish), post(releases::publish)))
        .route(
            "/releases/{release_id}/yank",
            need(Scope(Yank), post(releases::yank)),
        )
        .route(
            "/releases/{release_id}/unyank",
            need(Scope(Yank), post(releases::unyank)),
        )
        .route(
            "/plugins/{plugin_id}/releases",
            need(Reader, get(releases::list)),
        )
        .route(
            "/plugins/{plugin_id}/channels/{channel}",
            need(Scope(Promote), put(releases::promote)),
        )
        .route(
            "/installations",
            need(Scope(Read), get(installations::list))
                .merge(need(Scope(Report), post(installations::report))),
        )
        .route("/whoami", need(Token, get(whoami::whoami)))
        .route("/openapi.json", get(whoami::openapi))
        .method_not_allowed_fallback(method_not_allowed);
    let routes = Router::new()
        .nest(PREFIX, api)
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(|| async { ApiError::not_found("no such route") });
    middleware::around(routes, &state).with_state(state)
}

/// The router adds `Allow`.
async fn method_not_allowed() -> ApiError {
    let message = "this route does not have this method; `allow` says which it has";
    ApiError::new(Code::MethodNotAllowed, message)
}

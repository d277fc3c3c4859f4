//! All routes.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};

use super::answer::ApiError;
use super::{health, jobs, list, metrics, middleware, pools, proof, submit, workers};
use crate::link;
use crate::state::GateState;

/// The service of a Gate with this state.
pub fn router(state: GateState) -> Router {
    let owner = Router::new()
        .route("/v1/jobs", post(submit::submit).get(list::list))
        .route("/v1/jobs/{id}", get(jobs::job))
        .route("/v1/jobs/{id}/status", get(jobs::status))
        .route("/v1/jobs/{id}/result", get(jobs::result))
        .route("/v1/jobs/{id}/events", get(jobs::events))
        .route("/v1/jobs/{id}/output", get(jobs::output))
        .route("/v1/jobs/{id}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{id}/retry", post(jobs::retry))
        .route(
            "/v1/jobs/{id}/attempts/{attempt}/evidence",
            get(jobs::evidence),
        )
        .route("/v1/pools", get(pools::list))
        .route("/v1/pools/{pool}/pause", post(pools::pause))
        .route("/v1/pools/{pool}/resume", post(pools::resume))
        .route("/v1/workers", get(workers::list))
        .route("/v1/workers/{id}", get(workers::one));
    let routes = middleware::for_owner(owner, &state)
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/install-proof", get(proof::install_proof))
        .route(gate_link::CONNECT_PATH, get(link::connect))
        .fallback(|| async {
            ApiError::coded(StatusCode::NOT_FOUND, "not_found", "no such route")
        });
    middleware::around(routes, &state).with_state(state)
}

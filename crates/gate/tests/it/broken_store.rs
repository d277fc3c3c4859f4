//! A store that fails: nobody is told a lie, and the Gate stops.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use cli_shell::Secret;
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, Generation, Holder, JobId, PoolId, SlotId,
};
use gate::{GateState, HostRules, Tokens};
use gate_store::{
    Answer, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease, EventView,
    EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, NewJob, NextDue, Page,
    Retried, Store, StoreError, Submitted, WorkerView,
};
use jiff::Timestamp;
use tower::ServiceExt as _;

use crate::support::{config_in, owner, read_config};

struct Broken;

macro_rules! fail {
    ($(fn $name:ident($($argument:ty),*) -> $answer:ty;)+) => {
        impl Store for Broken {
            $(fail!(@ $name [$($argument),*] $answer);)+
        }
    };
    (@ $name:ident [] $answer:ty) => {
        fn $name(&self) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
    (@ $name:ident [$a:ty] $answer:ty) => {
        fn $name(&self, _: $a) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
    (@ $name:ident [$a:ty, $b:ty] $answer:ty) => {
        fn $name(&self, _: $a, _: $b) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
    (@ $name:ident [$a:ty, $b:ty, $c:ty] $answer:ty) => {
        fn $name(&self, _: $a, _: $b, _: $c) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
    (@ $name:ident [$a:ty, $b:ty, $c:ty, $d:ty] $answer:ty) => {
        fn $name(&self, _: $a, _: $b, _: $c, _: $d) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
    (@ $name:ident [$a:ty, $b:ty, $c:ty, $d:ty, $e:ty] $answer:ty) => {
        fn $name(&self, _: $a, _: $b, _: $c, _: $d, _: $e) -> Answer<$answer> { Box::pin(async { Err(StoreError::Closed) }) }
    };
}

fail! {
    fn submit(NewJob, Timestamp) -> Submitted;
    fn claim(ClaimRequest, Timestamp) -> Option<Lease>;
    fn heartbeat(JobId, Holder, Timestamp) -> Timestamp;
    fn bind_evidence(JobId, Holder, EvidenceBatch, Timestamp) -> Bound;
    fn complete(JobId, Holder, Completion, Timestamp) -> Completed;
    fn complete_and_claim(JobId, Holder, Completion, ClaimRequest, Timestamp) -> (Completed, Option<Lease>);
    fn expire_due(Timestamp) -> Vec<EndedLease>;
    fn cancel(JobId, Timestamp) -> Cancelled;
    fn retry(JobId, JobId, Timestamp) -> Retried;
    fn connect_slot(SlotId, PoolId, Generation, Timestamp) -> ();
    fn disconnect_slot(SlotId, Generation, Timestamp) -> bool;
    fn job(JobId) -> Option<JobView>;
    fn list_jobs(JobFilter, Page) -> JobPage;
    fn attempts(JobId) -> Option<Vec<AttemptView>>;
    fn result(JobId) -> Option<JobResult>;
    fn events(JobId) -> Vec<EventView>;
    fn evidence(JobId, AttemptId) -> Option<Vec<EvidenceView>>;
    fn output(JobId) -> Option<JobOutput>;
    fn workers() -> Vec<WorkerView>;
    fn worker(SlotId) -> Option<WorkerView>;
    fn ready_pools(Timestamp) -> Vec<PoolId>;
    fn next_due(Timestamp) -> NextDue;
}

fn state() -> GateState {
    let dir = tempfile::tempdir().unwrap();
    let config = read_config(&config_in(&dir)).unwrap();
    let secret = |name: &str| Secret::from_file(&dir.path().join(name)).unwrap();
    let workers = [("worker-1".parse().unwrap(), secret("worker"))];
    let tokens = Tokens::new(&secret("owner"), workers).unwrap();
    let rules = HostRules::new(true, "127.0.0.1", None, &BTreeSet::new());
    GateState::new(
        &config,
        Arc::new(Broken),
        tokens,
        rules,
        Arc::new(Timestamp::now),
    )
    .unwrap()
}

async fn status(state: &GateState, request: Request<Body>) -> (StatusCode, String) {
    let response = gate::router(state.clone()).oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn ready() -> Request<Body> {
    Request::get("/readyz")
        .header(header::HOST, "localhost")
        .body(Body::empty())
        .unwrap()
}

#[tokio::test]
async fn a_failed_store_fails_the_request_and_stops_the_gate() {
    let id = "a".repeat(32);
    for (method, path, body) in [
        ("POST", "/v1/jobs".to_owned(), "{\"input\":\"x\"}"),
        ("GET", "/v1/jobs".to_owned(), ""),
        ("GET", format!("/v1/jobs/{id}"), ""),
        ("GET", format!("/v1/jobs/{id}/result"), ""),
        ("POST", format!("/v1/jobs/{id}/cancel"), ""),
        ("GET", "/v1/workers".to_owned(), ""),
    ] {
        let state = state();
        assert_eq!(status(&state, ready()).await.0, StatusCode::OK);
        let (code, answer) =
            status(&state, owner(method, &path).body(Body::from(body)).unwrap()).await;
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}");
        assert!(
            !answer.contains("closed"),
            "the cause is for the log: {answer}"
        );
        assert_eq!(
            status(&state, ready()).await.0,
            StatusCode::SERVICE_UNAVAILABLE,
            "{method} {path}"
        );
    }
}

//! A store that fails: nobody is told a lie, and the Gate stops. One that panics: what it
//! panicked in lets go of its slot. One that is slow: whoever did not wait has no slot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use cli_shell::Secret;
use digest_text::Sha256Text;
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, Generation, Holder, JobId, NotAccepting, PoolId, SlotId,
};
use futures_util::StreamExt as _;
use gate::{GateState, HostRules, Tokens};
use gate_store::{
    Answer, Attachment, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease,
    EventView, EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, NewJob,
    NextDue, Page, PauseReason, Paused, PoolView, QueuePlace, Retried, Store, StoreError,
    Submitted, WorkerView,
};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tower::ServiceExt as _;

use crate::support::{PATIENCE, WORKER, config_in, owner, read_config};

#[derive(Default)]
struct Broken {
    /// Takes a slot, panics when it is to have work, and counts how often it was given back.
    panics: Option<Arc<AtomicUsize>>,
    /// Says that a slot is taken only once it is told to.
    slow: Option<Arc<Notify>>,
}

macro_rules! fail {
    ($(fn $name:ident($($argument:ty),*) -> $answer:ty;)+) => {
        impl Store for Broken {
            fn claim(&self, _: ClaimRequest, _: Timestamp) -> Answer<Option<Lease>> {
                assert!(self.panics.is_none(), "a defect");
                Box::pin(async { Err(StoreError::Closed) })
            }
            fn connect_slot(&self, _: SlotId, _: PoolId, _: Generation, _: Timestamp) -> Answer<()> {
                let works = self.panics.is_some();
                let slow = self.slow.clone();
                Box::pin(async move {
                    if let Some(slow) = slow {
                        slow.notified().await;
                    }
                    works.then_some(()).ok_or(StoreError::Closed)
                })
            }
            fn disconnect_slot(&self, _: SlotId, _: Generation, _: Timestamp) -> Answer<bool> {
                let freed = self.panics.as_ref().map(|freed| freed.fetch_add(1, Ordering::SeqCst));
                Box::pin(async move { freed.map(|_| true).ok_or(StoreError::Closed) })
            }
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
    fn heartbeat(JobId, Holder, Timestamp) -> Timestamp;
    fn attach(JobId, Holder, Sha256Text, Timestamp) -> Attachment;
    fn withdraw(JobId, Holder, NotAccepting, Timestamp) -> JobView;
    fn stopped(JobId, AttemptId, SlotId, Timestamp) -> ();
    fn bind_evidence(JobId, Holder, EvidenceBatch, Timestamp) -> Bound;
    fn complete(JobId, Holder, Completion, Timestamp) -> Completed;
    fn complete_and_claim(JobId, Holder, Completion, ClaimRequest, Timestamp) -> (Completed, Option<Lease>);
    fn expire_due(Timestamp) -> Vec<EndedLease>;
    fn cancel(JobId, Timestamp) -> Cancelled;
    fn retry(JobId, JobId, Timestamp) -> Retried;
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
    fn pause_pool(PoolId, Option<PauseReason>, Timestamp) -> Paused;
    fn resume_pool(PoolId) -> bool;
    fn pools() -> Vec<PoolView>;
    fn queue_place(JobId, Timestamp) -> Option<QueuePlace>;
}

fn state() -> GateState {
    state_on(Broken::default())
}

fn state_on(store: Broken) -> GateState {
    let dir = tempfile::tempdir().unwrap();
    let config = read_config(&config_in(&dir)).unwrap();
    let secret = |name: &str| Secret::from_file(&dir.path().join(name)).unwrap();
    let workers = [("worker-1".parse().unwrap(), secret("worker"))];
    let tokens = Tokens::new(&secret("owner"), workers).unwrap();
    let rules = HostRules::new(true, "127.0.0.1", None, &BTreeSet::new());
    GateState::new(
        &config,
        Arc::new(store),
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

#[tokio::test]
async fn a_slot_whose_task_panics_can_be_connected_again() {
    let freed = Arc::new(AtomicUsize::new(0));
    let state = state_on(Broken {
        panics: Some(Arc::clone(&freed)),
        slow: None,
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = tokio::task::JoinSet::new();
    let router = gate::router(state.clone());
    serving.spawn(async move { axum::serve(listener, router).await });

    let url = format!("ws://{address}/v1/workers/connect?worker_id=worker-1&slot=0");
    for round in 1..=2 {
        let mut request = url.as_str().into_client_request().unwrap();
        let bearer = format!("Bearer {WORKER}").parse().unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .unwrap();
        let end = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        assert!(!matches!(end, Some(Ok(_))), "{end:?}");
        given_back(&freed, round).await;
    }
    // It is a slot's defect, not the Gate's end.
    assert_eq!(status(&state, ready()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_slot_whose_worker_left_before_the_store_answered_is_given_back() {
    let freed = Arc::new(AtomicUsize::new(0));
    let slow = Arc::new(Notify::new());
    let state = state_on(Broken {
        panics: Some(Arc::clone(&freed)),
        slow: Some(Arc::clone(&slow)),
    });
    let request = Request::get("/v1/workers/connect?worker_id=worker-1&slot=0")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {WORKER}"))
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "AAAAAAAAAAAAAAAAAAAAAA==")
        .body(Body::empty())
        .unwrap();
    // A server drops what it is answering together with the connection.
    let answer = gate::router(state.clone()).oneshot(request);
    tokio::time::timeout(Duration::from_millis(50), answer)
        .await
        .unwrap_err();
    slow.notify_one();
    given_back(&freed, 1).await;
}

async fn given_back(freed: &AtomicUsize, times: usize) {
    let waiting = async {
        while freed.load(Ordering::SeqCst) < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

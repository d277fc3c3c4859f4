//! A Gate in this process, an HTTP client that talks to its router, and a
//! Worker that says exactly what a test tells it to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use futures_util::{SinkExt as _, StreamExt as _};
use gate::{Gate, GateConfig, GateError, GateState};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strict_json::{Layout, Limits, parse_object};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tower::ServiceExt as _;

pub(crate) const OWNER: &str = "owner-token-canary";
pub(crate) const WORKER: &str = "worker-token-canary";
pub(crate) const BASE: &str = "1111111111111111111111111111111111111111";
pub(crate) const CANDIDATE: &str = "2222222222222222222222222222222222222222";
/// Longer than anything here should take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A clock that a test moves.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(
            "2026-01-01T00:00:00Z".parse().unwrap(),
        )))
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        *now += SignedDuration::try_from(by).unwrap();
    }

    /// Sets it back, as nobody but a person or a broken machine does.
    pub(crate) fn step_back(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        *now -= SignedDuration::try_from(by).unwrap();
    }

    fn reader(&self) -> gate::Clock {
        let shared = Arc::clone(&self.0);
        Arc::new(move || *shared.lock().unwrap())
    }
}

/// A running Gate.
pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    pub(crate) clock: TestClock,
    pub(crate) state: GateState,
    pub(crate) address: SocketAddr,
    config: Value,
    serving: JoinSet<Result<(), GateError>>,
}

/// The configuration that tests start from: one Worker with two slots in the
/// pool `coding`, one repository.
pub(crate) fn config_in(dir: &TempDir) -> Value {
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("owner"), format!("{OWNER}\n")).unwrap();
    std::fs::write(path("worker"), WORKER).unwrap();
    std::fs::write(path("other"), "other-token-canary").unwrap();
    let execution = json!({
        "plugin_id": "reference",
        "environment": ["PATH"],
        "plugin_timeout": "15m",
        "check_timeout": "10m",
        "git_timeout": "1m",
        "cleanup_timeout": "10s",
        "plugin_output_bytes": 1_048_576,
        "check_output_bytes": 2048,
        "git_output_bytes": 1_048_576,
    });
    json!({
        "version": 1,
        "listen": "127.0.0.1:0",
        "database": path("state/gate.db"),
        "owner_token_file": path("owner"),
        "recovery_interval": "1s",
        "lease_poll_interval": "10ms",
        "default_pool": "coding",
        "lifecycle": {"lease_ttl": "30s", "retry_base": "1s", "max_attempts": 3},
        "default_execution": execution,
        "workers": [
            {"id": "worker-1", "pool": "coding", "token_file": path("worker"), "concurrency": 2},
            {"id": "worker-2", "pool": "other", "token_file": path("other"), "concurrency": 1},
        ],
        "repositories": [
            {"id": "agent-forge", "default_branch": "main", "worker_pool": "coding", "execution": execution},
        ],
    })
}

pub(crate) fn read_config(config: &Value) -> Result<GateConfig, strict_json::FieldError> {
    let limits = Limits {
        bytes: 1 << 20,
        depth: 32,
    };
    let object = parse_object(config.to_string().as_bytes(), &limits, Layout::Spaced).unwrap();
    GateConfig::read(object.fields(""))
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Value)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config_in(&dir);
        change(&mut config);
        Self::launch(dir, TestClock::new(), config).await
    }

    async fn launch(dir: TempDir, clock: TestClock, config: Value) -> Self {
        let parsed = read_config(&config).unwrap();
        let gate = Gate::start(&parsed, clock.reader())
            .await
            .unwrap()
            .with_grace(Duration::from_millis(200));
        let (state, address) = (gate.handle(), gate.address());
        let mut serving = JoinSet::new();
        serving.spawn(gate.serve());
        Self {
            dir,
            clock,
            state,
            address,
            config,
            serving,
        }
    }

    /// Stops the Gate and starts another one on the same database.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(Duration::ZERO).await
    }

    /// Likewise, after a time in which no Gate served.
    pub(crate) async fn restart_after(mut self, outage: Duration) -> Self {
        self.stop().await;
        self.clock.advance(outage);
        let Self {
            dir,
            clock,
            config,
            state,
            ..
        } = self;
        // The store closes with its last owner, and a second one is refused until then.
        drop(state);
        Self::launch(dir, clock, config).await
    }

    /// Likewise, with another configuration.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.config);
        self.restart().await
    }

    pub(crate) async fn stop(&mut self) {
        self.state.stop();
        let ended = tokio::time::timeout(PATIENCE, self.serving.join_next()).await;
        ended
            .expect("the Gate stops in time")
            .unwrap()
            .unwrap()
            .unwrap();
    }

    /// Moves the clock and lets the timekeeper see it.
    pub(crate) async fn pass(&self, by: Duration) {
        self.clock.advance(by);
        // The fallback poll of 10 ms is real time.
        tokio::time::sleep(Duration::from_millis(60)).await;
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = gate::router(self.state.clone())
            .oneshot(request)
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        Reply {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(owner("GET", path).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: impl ToString) -> Reply {
        self.send(
            owner("POST", path)
                .body(Body::from(body.to_string()))
                .unwrap(),
        )
        .await
    }

    /// Submits a text job and answers its id.
    pub(crate) async fn submit_text(&self, input: &str) -> String {
        let reply = self.post("/v1/jobs", json!({"input": input})).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.body);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a coding job with one declared check and answers its id.
    pub(crate) async fn submit_coding(&self) -> String {
        let reply = self.post("/v1/jobs", coding()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.body);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn job(&self, id: &str) -> Value {
        self.get(&format!("/v1/jobs/{id}")).await.json()
    }

    /// Waits until a job has a state.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        let wait = async {
            loop {
                let job = self.job(id).await;
                if job["status"] == status {
                    return job;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(job) => job,
            Err(_) => panic!("still not {status}: {}", self.job(id).await),
        }
    }

    pub(crate) async fn connect(&self, slot: u16) -> Peer {
        let path = format!("worker_id=worker-1&slot={slot}");
        self.try_connect(&path, WORKER, &[]).await.unwrap()
    }

    pub(crate) async fn try_connect(
        &self,
        query: &str,
        token: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Peer, StatusCode> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let url = format!("ws://{}/v1/workers/connect?{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Peer { socket }),
            Err(Error::Http(response)) => Err(response.status()),
            Err(other) => panic!("{other}"),
        }
    }
}

/// An HTTP answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: header::HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

pub(crate) fn owner(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1")
        .header(header::AUTHORIZATION, format!("Bearer {OWNER}"))
}

pub(crate) fn coding() -> Value {
    json!({
        "repository_id": "agent-forge",
        "base_sha": BASE,
        "instruction": "fix it",
        "tests": [["go", "test", "./..."]],
    })
}

/// A scripted Worker on one slot.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    pub(crate) async fn send(&mut self, message: impl ToString) {
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// Writes nothing before the next message is sent.
    pub(crate) async fn feed_raw(&mut self, message: Message) {
        self.socket.feed(message).await.unwrap();
    }

    /// The next text message as it came.
    pub(crate) async fn receive_text(&mut self) -> String {
        match self.next().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("no text message but {other:?}"),
        }
    }

    pub(crate) async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text().await).unwrap()
    }

    /// Expects a lease and answers it.
    pub(crate) async fn lease(&mut self) -> Value {
        let lease = self.receive().await;
        assert_eq!(lease["type"], "lease", "{lease}");
        lease
    }

    /// Expects the acknowledgement of a lease's message.
    pub(crate) async fn ack(&mut self, lease: &Value) {
        assert_eq!(self.receive().await, about(lease, json!({"type": "ack"})));
    }

    /// Expects the error message and then the end, without a closing handshake.
    pub(crate) async fn refused(&mut self) {
        let text = self.receive_text().await;
        assert_eq!(text, "{\"type\":\"error\",\"error\":\"request failed\"}\n");
        match self.next().await {
            None | Some(Err(_)) => {}
            Some(Ok(other)) => panic!("{other:?} after the refusal"),
        }
    }

    /// Nothing comes in for this long.
    pub(crate) async fn silent(&mut self, time: Duration) {
        let waited = tokio::time::timeout(time, self.socket.next()).await;
        assert!(waited.is_err(), "{waited:?}");
    }

    /// The next message, however long it takes.
    pub(crate) async fn socket_next(&mut self) -> Option<Result<Message, Error>> {
        self.socket.next().await
    }

    pub(crate) async fn next(&mut self) -> Option<Result<Message, Error>> {
        let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        next.expect("the Gate answers in time")
    }
}

/// A message about the attempt of a lease.
pub(crate) fn about(lease: &Value, mut message: Value) -> Value {
    message["job_id"] = lease["job_id"].clone();
    message["attempt_id"] = lease["attempt_id"].clone();
    message
}

pub(crate) fn heartbeat(lease: &Value) -> Value {
    about(lease, json!({"type": "heartbeat", "worker_id": "worker-1"}))
}

pub(crate) fn text_result(lease: &Value, text: &str) -> Value {
    about(lease, json!({"type": "result", "result": text}))
}

pub(crate) fn failure(lease: &Value, code: &str, disposition: &str) -> Value {
    about(
        lease,
        json!({"type": "result", "error": code, "disposition": disposition}),
    )
}

pub(crate) fn candidate(lease: &Value) -> Value {
    let report = "{\"summary\":\"s\",\"changes\":[\"c\"]}";
    about(
        lease,
        json!({"type": "result", "candidate_sha": CANDIDATE, "result": report}),
    )
}

/// Evidence of one passed check.
pub(crate) fn evidence(lease: &Value) -> Value {
    about(
        lease,
        json!({"type": "evidence", "evidence": [{
            "evidence_id": "c".repeat(32),
            "phase": "scoped_check",
            "reason": "scoped_check_passed",
            "check_index": 0,
            "exit_code": 0,
            "duration_ms": 15,
            "output": "[REDACTED]",
            "output_redacted": true,
            "base_sha": BASE,
            "candidate_sha": CANDIDATE,
        }]}),
    )
}

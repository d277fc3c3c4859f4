//! R60: thousands of requests that a generator makes up from every route, method, header and shape
//! of body. None is answered with a 5xx, none that is refused changes a byte of the store, and
//! memory stays bounded.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{
    BASE, OWNER, PATIENCE, Rig, WORKER, about, candidate, coding, evidence, failure, text_result,
};

/// Requests of one seed.
const REQUESTS: usize = 2500;
/// What a store of some thousand jobs and its answers may cost; a leak of bodies costs far more.
const MOST_GROWTH: u64 = 192 << 20;

/// SplitMix64: the numbers follow from the seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// A Gate with a job in every state, and the ids of its jobs and attempts.
async fn populated() -> (Rig, Vec<String>) {
    let rig = Rig::start().await;
    let mut ids = Vec::new();
    let mut peer = rig.connect(0).await;
    let done = rig.submit_text("done").await;
    let lease = peer.lease().await;
    peer.send(text_result(&lease, "FORGE: DONE")).await;
    peer.ack(&lease).await;
    let checked = rig.submit_coding().await;
    let lease = peer.lease().await;
    peer.send(evidence(&lease)).await;
    peer.ack(&lease).await;
    peer.send(candidate(&lease)).await;
    peer.ack(&lease).await;
    ids.push(lease["attempt_id"].as_str().unwrap().to_owned());
    let failed = rig.submit_text("fails").await;
    let lease = peer.lease().await;
    peer.send(failure(&lease, "invalid_task", "terminal")).await;
    peer.ack(&lease).await;
    let waits = rig.submit_text("waits").await;
    let lease = peer.lease().await;
    peer.send(failure(&lease, "execution_failed", "retryable"))
        .await;
    peer.ack(&lease).await;
    let runs = rig.submit_text("runs").await;
    peer.lease().await;
    let pending = rig.submit_text("pending").await;
    let cancelled = rig.submit_text("cancelled").await;
    let reply = rig.post(&format!("/v1/jobs/{cancelled}/cancel"), "").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    for (id, status) in [
        (done, "succeeded"),
        (checked, "succeeded"),
        (failed, "failed"),
        (waits, "retry_wait"),
        (runs, "leased"),
        (pending, "pending"),
        (cancelled, "cancelled"),
    ] {
        assert_eq!(rig.job(&id).await["status"], status);
        ids.push(id);
    }
    // The slot must not take what is submitted from here on, nor give back what it has.
    std::mem::forget(peer);
    (rig, ids)
}

const ROUTES: [&str; 19] = [
    "/v1/jobs",
    "/v1/jobs/{}",
    "/v1/jobs/{}/status",
    "/v1/jobs/{}/result",
    "/v1/jobs/{}/events",
    "/v1/jobs/{}/output",
    "/v1/jobs/{}/cancel",
    "/v1/jobs/{}/retry",
    "/v1/jobs/{}/attempts/{}/evidence",
    "/v1/workers",
    "/v1/workers/{}",
    "/v1/pools",
    "/v1/pools/{}/pause",
    "/v1/pools/{}/resume",
    "/healthz",
    "/readyz",
    "/metrics",
    "/install-proof",
    "/v1/workers/connect",
];

const METHODS: [&str; 10] = [
    "GET", "GET", "POST", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW",
];

const ODD_IDS: [&str; 17] = [
    "coding",
    "0",
    "..",
    ".",
    "%2e%2e",
    "%00",
    "%ff%fe",
    "%",
    "%zz",
    "worker-1%231",
    "worker-1%23999",
    "worker-1",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "%F0%9F%8D%B5",
    "a%2Fb",
    "%27%3B--",
];

const QUERIES: [&str; 18] = [
    "limit=1",
    "limit=100",
    "limit=101",
    "limit=0",
    "limit=-1",
    "limit=1e1",
    "limit=99999999999999999999",
    "limit=1&limit=1",
    "status=pending",
    "status=leased&pool=coding",
    "status=%00",
    "pool=../..",
    "repository_id=agent-forge",
    "cursor=AAAA",
    "cursor=%F0",
    "worker_id=worker-1&slot=0",
    "&&&=&",
    "a=b&a=b&%",
];

fn target(random: &mut Random, ids: &[String]) -> String {
    if random.one_in(12) {
        let junk: String = random
            .bytes(40)
            .iter()
            .map(|byte| char::from(b'!' + byte % 94))
            .filter(|letter| !"\"<>\\^`{|}#".contains(*letter))
            .collect();
        return format!("/{junk}");
    }
    let mut path = random.pick(&ROUTES.map(|route| route)).to_owned();
    while path.contains("{}") {
        let id = match random.below(6) {
            0 => random.pick(&ODD_IDS).to_owned(),
            1 if random.one_in(4) => "x".repeat(3000),
            _ => ids[random.below(ids.len())].clone(),
        };
        path = path.replacen("{}", &id, 1);
    }
    match random.below(20) {
        0 => path.push('/'),
        1 => path.insert(0, '/'),
        2 => path = path.to_uppercase(),
        _ => {}
    }
    if random.one_in(3) {
        path.push('?');
        path.push_str(random.pick(&QUERIES));
    }
    path
}

/// A value of JSON that grows no deeper than its budget.
fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 12 } else { 14 }) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => random.next().to_string(),
        3 => random
            .pick(&[
                "-0",
                "1e0",
                "1.0",
                "-1",
                "1e999",
                "00",
                "0x1",
                "NaN",
                "+1",
                "9223372036854775808",
            ])
            .to_owned(),
        4 => format!("\"{}\"", "long ".repeat(random.below(20_000))),
        5 => random
            .pick(&[
                r#""\ud800""#,
                r#""\udc00\ud800""#,
                r#""\u0000""#,
                r#""a\nb\u001b[31m""#,
                "\"\u{202e}bidi\"",
                "\"raw\ttab\"",
                r#""\x""#,
                "\"open",
            ])
            .to_owned(),
        6 => BASE.to_owned(),
        7 => format!("\"{BASE}\""),
        8 => "\"agent-forge\"".to_owned(),
        9 => "\"text\"".to_owned(),
        10 => "\"\"".to_owned(),
        11 => "[[\"go\",\"test\"]]".to_owned(),
        12 => {
            let items: Vec<String> = (0..random.below(5))
                .map(|_| value(random, depth - 1))
                .collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let fields: Vec<String> = (0..random.below(4))
                .map(|index| format!("\"f{index}\":{}", value(random, depth - 1)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

const FIELDS: [&str; 12] = [
    "input",
    "repository_id",
    "base_sha",
    "instruction",
    "tests",
    "priority",
    "source_ref",
    "author",
    "repository",
    "base",
    "\\u0069nput",
    "unknown",
];

/// A submission that is right, or nearly so, or nothing of the kind.
fn body(random: &mut Random) -> Vec<u8> {
    let right = if random.one_in(2) {
        coding()
    } else {
        json!({"input": "text", "priority": 5})
    };
    match random.below(14) {
        0..=2 => right.to_string().into_bytes(),
        3 => Vec::new(),
        4 => b"{}".to_vec(),
        5 => random.bytes(300),
        6 => {
            let depth = random.below(5000);
            let open = if random.one_in(2) { "[" } else { "{\"a\":" };
            open.repeat(depth).into_bytes()
        }
        7 => {
            // One byte of a right body is another one.
            let mut bytes = right.to_string().into_bytes();
            let place = random.below(bytes.len());
            bytes[place] = random.next().to_le_bytes()[0];
            bytes
        }
        8 => {
            let mut bytes = right.to_string().into_bytes();
            bytes.truncate(random.below(bytes.len()));
            bytes
        }
        9 => {
            let around = random.pick(&["\u{feff}", " ", "\0", "x", "[1]", "{}"]);
            match random.one_in(2) {
                true => format!("{around}{right}").into_bytes(),
                false => format!("{right}{around}").into_bytes(),
            }
        }
        10 => vec![b' '; (1 << 20) - 1 + random.below(3)],
        _ => {
            let mut fields: Vec<String> = right
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| format!("\"{name}\":{value}"))
                .collect();
            if random.one_in(3) {
                fields.remove(random.below(fields.len()));
            }
            let name = random.pick(&FIELDS);
            fields.push(format!("\"{name}\":{}", value(random, 3)));
            format!("{{{}}}", fields.join(",")).into_bytes()
        }
    }
}

const ODD_HEADERS: [(&str, &[u8]); 22] = [
    ("content-type", b"application/json"),
    ("content-type", b"text/html; charset=\xff"),
    ("content-length", b"5"),
    ("content-length", b"-1"),
    ("content-length", b"99999999999999999999"),
    ("content-length", b"10485760"),
    ("transfer-encoding", b"chunked"),
    ("expect", b"100-continue"),
    ("origin", b"http://127.0.0.1"),
    ("origin", b"https://evil.example"),
    ("origin", b"null"),
    ("idempotency-key", b""),
    ("idempotency-key", b"\xf0\x9f\x8d\xb5"),
    ("idempotency-key", &[b'k'; 129]),
    ("connection", b"upgrade"),
    ("upgrade", b"websocket"),
    ("sec-websocket-version", b"12"),
    ("sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
    ("range", b"bytes=0-1"),
    ("if-none-match", b"*"),
    ("cookie", b"a=b"),
    ("x-forwarded-for", b"127.0.0.1\t"),
];

fn request(random: &mut Random, ids: &[String]) -> Option<Request<Body>> {
    // Half of them are right but for their body, so that all of the Gate is reached.
    let right = random.one_in(2);
    let (method, uri) = match right {
        true if random.one_in(2) => ("POST", "/v1/jobs".to_owned()),
        true => (random.pick(&METHODS[..4]), target(random, ids)),
        false => (random.pick(&METHODS), target(random, ids)),
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut made = Request::builder().method(method).uri(uri);
    let authorization = match random.below(if right { 200 } else { 12 }) {
        0 => None,
        1 => Some(format!("Bearer {WORKER}")),
        2 => Some(format!("bearer {OWNER}")),
        3 => Some(format!("Bearer {OWNER}x")),
        4 => Some("Basic Og==".to_owned()),
        _ => Some(format!("Bearer {OWNER}")),
    };
    if let Some(authorization) = authorization {
        made = made.header(header::AUTHORIZATION, authorization);
    }
    let host: &[u8] = match random.below(if right { 200 } else { 12 }) {
        0 => b"evil.example",
        1 => b"127.0.0.1:99999",
        2 => b"\xff",
        3 => b"",
        _ => b"127.0.0.1",
    };
    made = made.header(header::HOST, host);
    if random.one_in(40) {
        made = made.header(header::HOST, "127.0.0.1");
    }
    if random.one_in(3) {
        let key = format!("key-{}", random.below(50));
        made = made.header("idempotency-key", key);
    }
    for _ in 0..random.below(if right { 2 } else { 4 }) {
        let (name, value) = ODD_HEADERS[random.below(ODD_HEADERS.len())];
        made = made.header(name, value);
    }
    // What is no request for the library never reaches the Gate.
    made.body(Body::from(body(random))).ok()
}

/// Changes with every commit, and with nothing else.
fn mark(rig: &Rig) -> (u64, SystemTime) {
    let wal = fs::metadata(rig.dir.path().join("state/gate.db-wal")).unwrap();
    (wal.len(), wal.modified().unwrap())
}

fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

async fn hammer(seed: u64) -> BTreeMap<u16, usize> {
    let (rig, ids) = populated().await;
    let mut random = Random(seed);
    let mut statuses = BTreeMap::new();
    let before = resident();
    for number in 0..REQUESTS {
        let Some(request) = request(&mut random, &ids) else {
            continue;
        };
        let shown = format!("seed {seed}, request {number}: {request:?}");
        let stored = mark(&rig);
        let safe = *request.method() != Method::POST;
        let reply = rig.send(request).await;
        let status = reply.status.as_u16();
        *statuses.entry(status).or_insert(0) += 1;
        assert!(status < 500 && status != 101, "{status}: {shown}");
        if safe || status >= 400 {
            assert_eq!(
                stored,
                mark(&rig),
                "{status}: something was stored: {shown}"
            );
        }
        assert!(
            !reply.body.contains(OWNER) && !reply.body.contains(WORKER),
            "a token was answered: {shown}"
        );
        let strange = |letter: char| letter.is_control() && letter != '\n';
        assert!(!reply.body.contains(strange), "{}: {shown}", reply.body);
        assert!(reply.body.len() <= 2 << 20, "{shown}");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{} MiB after seed {seed}", grown >> 20);
    assert_eq!(rig.get("/readyz").await.status, StatusCode::OK);
    rig.submit_text("still served").await;
    statuses
}

#[tokio::test]
async fn r60_no_request_breaks_the_gate_and_no_refused_one_changes_anything() {
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for seed in [1, 2, 3] {
        for (status, count) in hammer(seed).await {
            *statuses.entry(status).or_default() += count;
        }
    }
    // The generator gets everywhere, and does not only run into the first check.
    for status in [200, 201, 400, 401, 403, 404, 405, 409, 413] {
        let count = statuses.get(&status).copied().unwrap_or(0);
        assert!(count >= 5, "{count} answers with {status}: {statuses:?}");
    }
}

/// Bytes that are nearly a request, over a real socket.
fn nearly_http(random: &mut Random) -> Vec<u8> {
    let content = Value::from("x".repeat(random.below(2000))).to_string();
    let mut bytes = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{{\"input\":{content}}}",
        content.len() + 10
    )
    .into_bytes();
    match random.below(4) {
        0 => bytes = random.bytes(4000),
        1 => bytes.truncate(random.below(bytes.len())),
        _ => {
            for _ in 0..=random.below(5) {
                let place = random.below(bytes.len());
                bytes[place] = random.next().to_le_bytes()[0];
            }
        }
    }
    bytes
}

#[tokio::test]
async fn r60_bytes_that_are_hardly_http_break_nothing() {
    let rig = Rig::start().await;
    let mut random = Random(4);
    let before = resident();
    for number in 0..600 {
        let bytes = nearly_http(&mut random);
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        // The Gate may have seen enough before it has seen everything.
        drop(stream.write_all(&bytes).await);
        drop(stream.shutdown().await);
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(
            read.is_ok(),
            "request {number} is never answered: {bytes:?}"
        );
        let text = String::from_utf8_lossy(&answer);
        assert!(
            !text.starts_with("HTTP/1.1 5") && !text.contains(OWNER),
            "{text}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{} MiB", grown >> 20);
    rig.submit_text("still served").await;
}

/// What a slot may say, and what it may not: the slot is dropped, and the job waits for its lease.
#[tokio::test]
async fn r60_a_slot_that_talks_nonsense_changes_no_job() {
    let rig = Rig::start().await;
    let job = rig.submit_text("work").await;
    let mut peer = rig.connect(0).await;
    let lease = peer.lease().await;
    let known = rig.job(&job).await;
    let mut random = Random(5);
    for _ in 0..200 {
        let mut message = about(&lease, json!({"type": "result", "result": "x"})).to_string();
        match random.below(4) {
            0 => message = String::from_utf8_lossy(&random.bytes(200)).into_owned(),
            1 => message.truncate(random.below(message.len())),
            2 => message.insert_str(1, "\"type\":\"ack\","),
            _ => message = value(&mut random, 3),
        }
        // Slot 1 holds no lease; whatever it says has no place, and nothing frees the other one.
        let mut stranger = loop {
            let query = "worker_id=worker-1&slot=1";
            match rig.try_connect(query, WORKER, &[]).await {
                Ok(peer) => break peer,
                Err(StatusCode::CONFLICT) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        };
        stranger.send(message).await;
        stranger.refused().await;
    }
    assert_eq!(rig.job(&job).await, known);
    peer.send(text_result(&lease, "done")).await;
    peer.ack(&lease).await;
    rig.until(&job, "succeeded").await;
}

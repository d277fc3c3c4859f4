//! The description that is served, held against what is served.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::support::*;

fn document() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}

/// What the description says of an operation.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> &'a Value {
    &document["paths"][path][method.to_ascii_lowercase()]
}

/// A registry in which every documented answer can be had.
struct Tour {
    rig: Rig,
    document: Value,
    seen: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Tour {
    async fn go(&mut self, method: &str, pattern: &str, request: Request<Body>) -> Answer {
        let answer = self.rig.send(request).await;
        let status = answer.status.as_u16().to_string();
        let key = (method.to_owned(), pattern.to_owned());
        self.seen.entry(key).or_default().insert(status.clone());
        let told = &operation(&self.document, method, pattern)["responses"][&status];
        assert!(
            told.is_object(),
            "{method} {pattern} {status} is not described: {answer:?}"
        );
        if let Some(example) = told["content"]["application/json"].get("example") {
            same_shape(
                example,
                &answer.json(),
                &format!("{method} {pattern} {status}"),
            );
        }
        for name in told["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            assert_ne!(
                answer.header(name),
                "",
                "{method} {pattern} {status}: {name}"
            );
        }
        answer
    }
}

/// Objects have the same keys, lists alike entries, values the same types; `null` stands for what
/// may be absent.
fn same_shape(example: &Value, real: &Value, at: &str) {
    match (example, real) {
        (Value::Object(example), Value::Object(real)) => {
            let keys = |map: &serde_json::Map<String, Value>| -> Vec<String> {
                map.keys()
                    .cloned()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect()
            };
            assert_eq!(keys(example), keys(real), "{at}");
            for (key, value) in example {
                same_shape(value, &real[key], &format!("{at}.{key}"));
            }
        }
        (Value::Array(example), Value::Array(real)) => {
            for (example, real) in example.first().into_iter().zip(real) {
                same_shape(example, real, &format!("{at}[]"));
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (example, real) => assert_eq!(
            std::mem::discriminant(example),
            std::mem::discriminant(real),
            "{at}: {example} {real}"
        ),
    }
}

#[tokio::test]
async fn the_description_is_served() {
    let rig = Rig::new();
    let served = rig.get("/openapi.json", "").await;
    assert_eq!(served.json(), document());
    assert_eq!(document()["openapi"], "3.1.0");
    assert_eq!(document()["servers"][0]["url"], V1);
}

#[tokio::test]
async fn every_described_route_is_there_with_these_methods_and_no_others() {
    let rig = Rig::new();
    let document = document();
    for (pattern, item) in document["paths"].as_object().unwrap() {
        let path = pattern.replace(['{', '}'], "");
        let mut described: BTreeSet<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|name| name.to_uppercase())
            .collect();
        if described.contains("GET") {
            described.insert("HEAD".to_owned());
        }
        let answer = rig.send(Ask::new("DELETE", &path).token(ALL).empty()).await;
        answer.refused(405, "method_not_allowed");
        let allowed: BTreeSet<_> = answer
            .header("allow")
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect();
        assert_eq!(described, allowed, "{pattern}");
    }
}

#[tokio::test]
async fn every_scope_that_is_described_is_the_one_that_is_asked_for() {
    let rig = Rig::new();
    for (pattern, item) in document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let scope = operation["x-scope"].as_str().unwrap_or("");
            let path = pattern.replace(['{', '}'], "");
            let token = if scope == "report" { READER } else { REPORTER };
            let ask = Ask::new(&method.to_uppercase(), &path).token(token);
            let answer = rig.send(ask.empty()).await;
            match scope {
                "" | "any" => assert_eq!(answer.status, 200, "{method} {pattern}"),
                _ if method == "head" => assert_eq!(answer.status, 403),
                scope => assert!(answer.message().contains(scope), "{method} {pattern}"),
            }
        }
    }
}

#[tokio::test]
async fn every_described_answer_can_be_had_and_looks_like_its_example() {
    let mut tour = Tour {
        rig: Rig::new(),
        document: document(),
        seen: BTreeMap::new(),
    };
    publishing(&mut tour).await;
    reading(&mut tour).await;
    changing(&mut tour).await;
    reporting(&mut tour).await;
    everywhere(&mut tour).await;
    let mut described = BTreeMap::new();
    for (pattern, item) in tour.document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let codes = operation["responses"].as_object().unwrap().keys();
            let codes: BTreeSet<String> =
                codes.filter(|code| *code != "default").cloned().collect();
            described.insert((method.to_uppercase(), pattern.clone()), codes);
        }
    }
    assert_eq!(described, tour.seen);
}

const ARTIFACT: &str = "/artifacts/{digest}";
const RECEIPT: &str = "/artifacts/{digest}/receipt";
const LIST: &str = "/plugins/{plugin_id}/releases";
const CHANNEL: &str = "/plugins/{plugin_id}/channels/{channel}";
const YANK: &str = "/releases/{release_id}/yank";
const UNYANK: &str = "/releases/{release_id}/unyank";

fn zeros() -> String {
    format!("sha256:{}", "0".repeat(64))
}

fn first() -> Vec<u8> {
    package("acme-tools", "1")
}

fn typed(method: &str, path: &str, media_type: &str, body: Vec<u8>) -> Request<Body> {
    let ask = Ask::new(method, path).token(ALL);
    ask.with(header::CONTENT_TYPE, media_type).body(body)
}

async fn publishing(tour: &mut Tour) {
    let archive = first();
    let name = digest(&archive);
    for _ in 0..2 {
        tour.go("PUT", ARTIFACT, put_artifact(&archive, ALL)).await;
    }
    tour.go("PUT", ARTIFACT, put_as(&zeros(), &archive, ALL))
        .await;
    tour.go("PUT", ARTIFACT, put_as("x", &archive, ALL)).await;
    tour.go("PUT", ARTIFACT, put_artifact(b"rubbish", ALL))
        .await;
    let long = vec![0; 33_554_433];
    tour.go("PUT", ARTIFACT, put_artifact(&long, ALL)).await;
    let path = format!("/artifacts/{name}");
    tour.go(
        "PUT",
        ARTIFACT,
        typed("PUT", &path, "text/plain", archive.clone()),
    )
    .await;
    let body = json!({"artifact_digest": name, "channel": "stable"});
    for _ in 0..2 {
        tour.go(
            "POST",
            "/releases",
            Ask::new("POST", "/releases").token(ALL).json(&body),
        )
        .await;
    }
    let unknown = json!({"artifact_digest": zeros()});
    tour.go(
        "POST",
        "/releases",
        Ask::new("POST", "/releases").token(ALL).json(&unknown),
    )
    .await;
    let gone = package("acme-gone", "1");
    let release = tour.rig.publish(&gone).await;
    let id = release["release_id"].as_str().unwrap();
    tour.rig
        .post(&format!("/releases/{id}/yank"), ALL, &json!({}))
        .await;
    let gone = json!({"artifact_digest": digest(&gone)});
    tour.go(
        "POST",
        "/releases",
        Ask::new("POST", "/releases").token(ALL).json(&gone),
    )
    .await;
    let path = format!("/artifacts/{name}/receipt");
    let receipt = receipt_of(&archive, "1");
    for _ in 0..2 {
        tour.go("PUT", RECEIPT, put_receipt(&name, &receipt, ALL))
            .await;
    }
    tour.go(
        "PUT",
        RECEIPT,
        put_receipt(&name, &receipt_of(&archive, "2"), ALL),
    )
    .await;
    tour.go("PUT", RECEIPT, put_receipt(&name, "rubbish", ALL))
        .await;
    tour.go("PUT", RECEIPT, put_receipt(&zeros(), &receipt, ALL))
        .await;
    tour.go("PUT", RECEIPT, put_receipt("x", &receipt, ALL))
        .await;
    tour.go(
        "PUT",
        RECEIPT,
        typed("PUT", &path, "text/plain", Vec::new()),
    )
    .await;
    let long = vec![b'#'; attest_receipt::receipt::MAX_BYTES + 1];
    tour.go(
        "PUT",
        RECEIPT,
        typed("PUT", &path, "application/yaml", long),
    )
    .await;
}

async fn reading(tour: &mut Tour) {
    let name = digest(&first());
    let get = |path: &str| Ask::new("GET", path).token(READER);
    tour.go("GET", "/catalog", get("/catalog").empty()).await;
    tour.go("GET", "/catalog", get("/catalog?x=1").empty())
        .await;
    for query in [
        "plugin_id=acme-tools",
        "x=1",
        "plugin_id=unknown",
        "plugin_id=acme-gone",
    ] {
        tour.go("GET", "/resolve", get(&format!("/resolve?{query}")).empty())
            .await;
    }
    tour.go("GET", LIST, get("/plugins/acme-tools/releases").empty())
        .await;
    tour.go("GET", LIST, get("/plugins/unknown/releases").empty())
        .await;
    tour.go("GET", LIST, get("/plugins/Acme/releases").empty())
        .await;
    for (pattern, rest) in [(ARTIFACT, ""), (RECEIPT, "/receipt")] {
        let path = format!("/artifacts/{name}{rest}");
        for ask in [
            get(&path),
            get(&path).with(header::RANGE, "bytes=0-1"),
            get(&path).with(header::RANGE, "bytes=99999999-"),
            get(&path).with(header::IF_NONE_MATCH, "*"),
            get(&path).with(header::IF_MATCH, "\"x\""),
            get(&format!("/artifacts/x{rest}")),
            get(&format!("/artifacts/{}{rest}", zeros())),
        ] {
            tour.go("GET", pattern, ask.empty()).await;
        }
    }
    let head = |path: &str| Ask::new("HEAD", path).token(READER);
    for (pattern, rest) in [(ARTIFACT, ""), (RECEIPT, "/receipt")] {
        let path = format!("/artifacts/{name}{rest}");
        for ask in [
            head(&path),
            head(&path).with(header::IF_NONE_MATCH, "*"),
            head(&path).with(header::IF_MATCH, "\"x\""),
            head(&format!("/artifacts/x{rest}")),
            head(&format!("/artifacts/{}{rest}", zeros())),
        ] {
            tour.go("HEAD", pattern, ask.empty()).await;
        }
    }
    tour.go("GET", "/whoami", get("/whoami").empty()).await;
    tour.go("GET", "/whoami", get("/whoami?x=1").empty()).await;
    for path in ["/openapi.json", "/openapi.json?x=1"] {
        tour.go("GET", "/openapi.json", get(path).empty()).await;
    }
}

async fn changing(tour: &mut Tour) {
    let found = tour
        .rig
        .get("/resolve?plugin_id=acme-tools", ALL)
        .await
        .json();
    let id = found["release_id"].as_str().unwrap();
    let unknown = format!("r-{}", "0".repeat(32));
    let path = "/plugins/acme-tools/channels/beta";
    for body in [
        json!({"release_id": id}),
        json!({"release_id": id, "expected_release_id": unknown}),
        json!({"release_id": unknown}),
        json!({}),
    ] {
        tour.go("PUT", CHANNEL, Ask::new("PUT", path).token(ALL).json(&body))
            .await;
    }
    for (pattern, verb) in [(YANK, "yank"), (UNYANK, "unyank")] {
        for id in [id, &unknown, "x"] {
            let ask = Ask::new("POST", &format!("/releases/{id}/{verb}")).token(ALL);
            tour.go("POST", pattern, ask.json(&json!({}))).await;
        }
    }
}

async fn reporting(tour: &mut Tour) {
    let found = tour
        .rig
        .get("/resolve?plugin_id=acme-tools", ALL)
        .await
        .json();
    let mut report = json!({
        "installation_id": "0f".repeat(16), "host": "build-1", "plugin_id": "acme-tools",
        "release_id": found["release_id"], "artifact_digest": found["artifact_digest"],
        "status": "installed",
    });
    let post = |body: &Value| Ask::new("POST", "/installations").token(ALL).json(body);
    tour.go("POST", "/installations", post(&report)).await;
    report["release_id"] = json!(format!("r-{}", "0".repeat(32)));
    tour.go("POST", "/installations", post(&report)).await;
    let other = tour.rig.publish(&package("other-tools", "1")).await;
    for member in ["plugin_id", "release_id", "artifact_digest"] {
        report[member] = other[member].clone();
    }
    tour.go("POST", "/installations", post(&report)).await;
    tour.go("POST", "/installations", post(&json!({}))).await;
    for query in ["", "?x=1"] {
        let ask = Ask::new("GET", &format!("/installations{query}")).token(ALL);
        tour.go("GET", "/installations", ask.empty()).await;
    }
}

/// What every route says to a stranger, to a token without the scope, and to a wrong body.
async fn everywhere(tour: &mut Tour) {
    let paths = tour.document["paths"].clone();
    for (pattern, item) in paths.as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let path = pattern
                .replace("{digest}", &digest(&first()))
                .replace("{plugin_id}", "acme-tools")
                .replace("{channel}", "stable")
                .replace("{release_id}", &format!("r-{}", "0".repeat(32)));
            let codes = operation["responses"].as_object().unwrap();
            if codes.contains_key("401") {
                tour.go(&method, pattern, Ask::new(&method, &path).empty())
                    .await;
            }
            if codes.contains_key("403") {
                let host = Ask::new(&method, &path).token(ALL);
                let host = host.with(header::ORIGIN, "https://evil.example");
                tour.go(&method, pattern, host.empty()).await;
            }
            if operation["requestBody"]["content"]
                .get("application/json")
                .is_some()
            {
                let ask = || Ask::new(&method, &path).token(ALL);
                tour.go(&method, pattern, ask().text(&" ".repeat(65_537)))
                    .await;
                let wrong = ask().with(header::CONTENT_TYPE, "text/plain").body("{}");
                tour.go(&method, pattern, wrong).await;
                tour.go(&method, pattern, ask().text("[]")).await;
            }
        }
    }
}

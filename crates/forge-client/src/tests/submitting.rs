//! A task arrives once, whole, or not at all.

use std::collections::BTreeSet;

use super::fake_gate::Reply;
use super::*;

const POST: &str = "POST /v1/jobs";

fn key(request: &fake_gate::Request) -> String {
    request.headers["idempotency-key"].clone()
}

#[test]
fn flags_become_one_strict_request() {
    let gate = FakeGate::new();
    gate.json(POST, 201, job("pending", ""));
    let done = forge(
        &gate,
        &format!(
            "submit --repository demo --base {BASE} --instruction fix~it --check cargo~test \
             --check sh~-c~'a~|~b' --check-json [\"x\",\"\"] --author-name Ada --author-email ada@example.org \
             --priority -5 --source-ref https://example.org/1 --idempotency-key k1"
        ),
    );
    assert!(done.screen.err().contains(&format!("forge watch {JOB}")));
    assert_eq!(done.ok(), format!("{JOB}\n"));
    let request = &gate.requests()[0];
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body,
        serde_json::json!({
            "repository_id": "demo", "base_sha": BASE, "instruction": "fix it",
            "tests": [["cargo", "test"], ["sh", "-c", "a | b"], ["x", ""]],
            "commit_author_name": "Ada", "commit_author_email": "ada@example.org",
            "priority": -5, "source_ref": "https://example.org/1",
        })
    );
    assert_eq!(key(request), "k1");
}

#[test]
fn texts_and_documents() {
    let gate = FakeGate::new();
    gate.json(POST, 201, job("pending", ""));
    forge(&gate, "submit --text hello --format json").ok();
    assert_eq!(gate.requests()[0].body, "{\"input\":\"hello\"}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("task.json");
    let document = "{ \"input\": \"from a file\" }\n";
    fs_err::write(&file, document).unwrap();
    forge(&gate, &format!("submit {}", file.display())).ok();
    forge(&gate, &format!("submit -file {}", file.display())).ok();
    assert_eq!(gate.requests()[1].body, document);
    assert_eq!(gate.requests()[2].body, document);
    let keys: BTreeSet<String> = gate.requests().iter().map(key).collect();
    assert_eq!(keys.len(), 3, "each run has a key of its own");
    fs_err::write(&file, "{\"input\":1,\"input\":2}").unwrap();
    let (code, message, _) = forge(&gate, &format!("submit {}", file.display())).failed();
    assert_eq!(code, 2);
    assert!(message.contains("is not one JSON object"), "{message}");
    assert_eq!(gate.requests().len(), 3);
}

#[test]
fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    let gate = FakeGate::new();
    gate.on(POST, Reply::HangUp);
    gate.json(POST, 200, job("pending", ""));
    gate.json("GET /v1/jobs", 200, "{\"items\":[]}");
    let done = forge(&gate, "submit --text hello");
    assert!(
        done.screen
            .err()
            .contains("submitted under this key before")
    );
    done.ok();
    let posts: Vec<_> = gate
        .requests()
        .into_iter()
        .filter(|request| request.line == POST)
        .collect();
    assert_eq!(posts.len(), 2);
    assert_eq!(key(&posts[0]), key(&posts[1]));
}

#[test]
fn a_gate_without_keys_is_never_asked_twice() {
    let gate = FakeGate::new();
    gate.on(POST, Reply::HangUp);
    let (code, message, hints) = forge(&gate, "submit --text hello").failed();
    assert_eq!(code, 2);
    assert!(
        message.starts_with("the job may or may not have been accepted"),
        "{message}"
    );
    let requests = gate.requests();
    let posts: Vec<_> = requests
        .iter()
        .filter(|request| request.line == POST)
        .collect();
    assert_eq!(posts.len(), 1);
    assert!(
        hints.contains(&format!("--idempotency-key {}", key(posts[0]))),
        "{hints}"
    );
}

#[test]
fn a_refusal_without_reason_is_explained() {
    let gate = FakeGate::new();
    gate.json(POST, 400, "{\"error\":\"invalid request\"}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("task.json");
    fs_err::write(
        &file,
        format!("{{\"repository_id\":\"demo\",\"base_sha\":\"{BASE}\",\"instruction\":\"\"}}"),
    )
    .unwrap();
    let (code, message, hints) = forge(&gate, &format!("submit {}", file.display())).failed();
    assert_eq!(code, 2);
    assert!(message.contains("invalid request"), "{message}");
    assert!(hints.contains("`instruction`"), "{hints}");
}

#[test]
fn limits_are_checked_before_anything_is_sent() {
    let gate = FakeGate::new();
    gate.json(POST, 201, job("pending", ""));
    forge(&gate, &format!("submit --text {}", "x".repeat(65_536))).ok();
    let long = forge(&gate, &format!("submit --text {}", "x".repeat(65_537)));
    assert_eq!(long.failed().0, 2);
    let checks = |count: usize| {
        format!(
            "submit --repository demo --base {BASE} --instruction x{}",
            " --check true".repeat(count)
        )
    };
    forge(&gate, &checks(32)).ok();
    assert!(forge(&gate, &checks(33)).failed().1.contains("tests"));
    assert_eq!(gate.requests().len(), 2);
}

#[test]
fn waiting_shows_the_end_and_its_verdict() {
    let gate = FakeGate::new();
    gate.json(POST, 201, job("pending", ""));
    let path = format!("GET /v1/jobs/{JOB}");
    gate.json(&path, 200, job("pending", ""));
    gate.json(&path, 200, succeeded());
    gate.json(&format!("{path}/events"), 200, "[]");
    let json = forge(&gate, "submit --text hello --wait --poll 1ms --format json").ok();
    assert_eq!(json, succeeded());
    let gate = FakeGate::new();
    gate.json(POST, 201, job("pending", ""));
    gate.json(
        &path,
        200,
        job("cancelled", ",\"failure_code\":\"cancelled\""),
    );
    gate.json(&format!("{path}/events"), 200, "[]");
    let (code, message, _) = forge(&gate, "submit -text hello -wait").failed();
    assert_eq!((code, message), (1, format!("job `{JOB}` was cancelled")));
}

#[test]
fn flags_that_do_not_go_together_are_usage_errors() {
    for line in [
        "submit",
        "submit --text a --repository b",
        "submit --text a task.json",
        "submit --repository a --instruction b",
        "submit --repository a --base 1111",
        "submit --text a --check b",
        "submit --text a --priority 101",
        "submit --text a --author-name b",
        "submit --repository a --repo-path . --instruction b --check $x",
    ] {
        let error = Cli::try_parse_from(format!("forge {line}").split(' ')).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
    }
    for priority in ["100", "-100"] {
        Cli::try_parse_from(["forge", "submit", "--text", "a", "--priority", priority]).unwrap();
    }
}

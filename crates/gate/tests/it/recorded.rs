//! The recorded messages of the link, one of each kind, said to a whole Gate byte for byte, and
//! what becomes of them when they are damaged.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{BASE, CANDIDATE, PATIENCE, Peer, Rig, WORKER};

const WIRE: &str = include_str!("../data/wire.ndjson");

/// What the recordings have in place of the ids.
const JOB: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const ATTEMPT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// The lines of the file.
const TEXT_LEASE: usize = 0;
const CODING_LEASE: usize = 2;
const HEARTBEAT: usize = 3;
const ACTIVITY: usize = 4;
const EVIDENCE: usize = 5;
const ACK: usize = 6;
const TEXT_RESULT: usize = 7;
const CANDIDATE_RESULT: usize = 8;
const FAILURE: usize = 9;
const ERROR: usize = 10;

/// A recorded message about the attempt of a lease, with the line feed that each one ends with.
fn recorded(line: usize, lease: &Value) -> String {
    let id = |name: &str| lease[name].as_str().unwrap();
    let text = WIRE.lines().nth(line).unwrap();
    text.replace(JOB, id("job_id"))
        .replace(ATTEMPT, id("attempt_id"))
        + "\n"
}

/// A Gate whose policies are those of the recordings.
async fn rig() -> Rig {
    Rig::start_with(|config| {
        config["default_execution"]["environment"] = json!([]);
        config["repositories"][0]["execution"]["plugin_id"] = json!("codex");
    })
    .await
}

async fn submit(rig: &Rig, body: Value) -> String {
    let reply = rig.post("/v1/jobs", body).await;
    reply.json()["id"].as_str().unwrap().to_owned()
}

/// A coding job with two declared checks: enough for every recorded message.
fn checked() -> Value {
    json!({
        "repository_id": "agent-forge", "base_sha": BASE, "instruction": "fix",
        "tests": [["true"], ["true"]],
    })
}

#[tokio::test]
async fn leases_are_written_as_they_were_recorded() {
    let rig = rig().await;
    let text = json!({"input": "hello"});
    let coding = json!({"repository_id": "agent-forge", "base_sha": BASE, "instruction": "fix"});
    for (slot, body, line) in [(0, text, TEXT_LEASE), (1, coding, CODING_LEASE)] {
        let job = submit(&rig, body).await;
        let mut worker = rig.connect(slot).await;
        let said = worker.receive_text().await;
        let lease: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(lease["job_id"], job.as_str());
        assert_eq!(said, recorded(line, &lease));
    }
}

#[tokio::test]
async fn every_recorded_message_of_a_worker_is_taken_and_acknowledged_as_recorded() {
    let rig = rig().await;
    let mut worker = rig.connect(0).await;
    for (body, lines, status) in [
        (json!({"input": "hello"}), &[TEXT_RESULT][..], "succeeded"),
        (checked(), &[EVIDENCE, CANDIDATE_RESULT], "succeeded"),
        (checked(), &[FAILURE], "retry_wait"),
    ] {
        let job = submit(&rig, body).await;
        let lease = worker.lease().await;
        worker.send(recorded(HEARTBEAT, &lease)).await;
        for line in lines {
            worker.send(recorded(*line, &lease)).await;
            assert_eq!(worker.receive_text().await, recorded(ACK, &lease));
        }
        let seen = rig.job(&job).await;
        assert_eq!(seen["status"], status);
        if lines.contains(&CANDIDATE_RESULT) {
            assert_eq!(seen["candidate_sha"], CANDIDATE);
        }
    }
}

#[tokio::test]
async fn recorded_activity_that_was_not_agreed_on_gets_the_recorded_error() {
    let rig = rig().await;
    submit(&rig, checked()).await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(recorded(ACTIVITY, &lease)).await;
    assert_eq!(worker.receive_text().await, recorded(ERROR, &lease));
}

/// Fields that a message is whole without.
const OPTIONAL: [&str; 6] = [
    "result",
    "disposition",
    "exit_code",
    "output",
    "output_redacted",
    "candidate_sha",
];

/// The message in every damaged form that must not pass.
fn damaged(message: &str) -> Vec<String> {
    let object: Value = serde_json::from_str(message).unwrap();
    let body = message.trim_end();
    let open = body.strip_suffix('}').unwrap();
    let mut forms = vec![
        format!("{body}{body}"),
        format!("{body} x"),
        format!("[{body}]"),
        format!("\u{feff}{body}"),
        open.to_owned(),
        format!("{open},\"unknown\":1}}"),
        format!("{open},\"input\":\"x\"}}"),
        format!("{open},\"t\\u0079pe\":\"heartbeat\"}}"),
    ];
    for (name, value) in object.as_object().unwrap() {
        let quoted = format!("\"{name}\":");
        forms.push(format!("{open},{quoted}{value}}}"));
        forms.push(body.replacen(&quoted, &format!("\"{}\":", name.to_uppercase()), 1));
        for other in [json!(null), json!(1.5), json!({}), json!([])] {
            let mut changed = object.clone();
            changed[name] = other;
            forms.push(changed.to_string());
        }
        if !OPTIONAL.contains(&name.as_str()) {
            let mut shorter = object.clone();
            shorter.as_object_mut().unwrap().remove(name);
            forms.push(shorter.to_string());
        }
    }
    forms
}

/// Takes the slot as soon as the Gate has noticed that its last connection is gone.
async fn again(rig: &Rig) -> Peer {
    let taken = async {
        loop {
            match rig
                .try_connect("worker_id=worker-1&slot=0", WORKER, &[])
                .await
            {
                Ok(peer) => return peer,
                Err(status) => assert_eq!(status, StatusCode::CONFLICT),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, taken).await.unwrap()
}

#[tokio::test]
async fn no_damaged_message_passes_or_leaves_a_trace() {
    let rig = rig().await;
    for line in [HEARTBEAT, EVIDENCE, CANDIDATE_RESULT, FAILURE] {
        let count = damaged(WIRE.lines().nth(line).unwrap()).len();
        for number in 0..count {
            let job = submit(&rig, checked()).await;
            let mut worker = again(&rig).await;
            let lease = worker.lease().await;
            let message = damaged(&recorded(line, &lease)).swap_remove(number);
            worker.send_raw(Message::text(message.as_str())).await;
            worker.refused().await;
            drop(worker);

            let attempt = lease["attempt_id"].as_str().unwrap();
            let seen = rig.job(&job).await;
            assert_eq!(seen["status"], "leased", "{message}");
            assert_eq!(seen["attempt_id"], attempt, "{message}");
            let stored = rig
                .get(&format!("/v1/jobs/{job}/attempts/{attempt}/evidence"))
                .await;
            assert_eq!(stored.json(), json!([]), "{message}");
            rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
        }
    }
}

//! Whatever has no place on the link gets the error message and the end of the
//! connection, and leaves no trace.

use std::time::Duration;

use serde_json::{Value, json};
use test_case::test_case;
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};

use crate::support::{
    BASE, CANDIDATE, Peer, Rig, WORKER, about, candidate, evidence, failure, heartbeat, text_result,
};

/// A coding job whose attempt runs on slot 0.
async fn leased() -> (Rig, Peer, String, Value) {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    (rig, worker, job, lease)
}

/// The whole visible state of a job.
async fn trace(rig: &Rig, job: &str, lease: &Value) -> [String; 3] {
    let attempt = lease["attempt_id"].as_str().unwrap();
    [
        rig.get(&format!("/v1/jobs/{job}")).await.body,
        rig.get(&format!("/v1/jobs/{job}/events")).await.body,
        rig.get(&format!("/v1/jobs/{job}/attempts/{attempt}/evidence"))
            .await
            .body,
    ]
}

async fn refuses(message: impl FnOnce(&Value) -> Value) {
    let (rig, mut worker, job, lease) = leased().await;
    let before = trace(&rig, &job, &lease).await;
    worker.send(message(&lease)).await;
    worker.refused().await;
    assert_eq!(trace(&rig, &job, &lease).await, before);
}

fn with(mut message: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    message.pointer_mut(parent).unwrap()[key] = value;
    message
}

#[test_case("job_id")]
#[test_case("attempt_id")]
#[tokio::test]
async fn a_message_for_another_attempt_is_refused(field: &str) {
    let field = field.to_owned();
    for make in [heartbeat, evidence, candidate] {
        let field = field.clone();
        refuses(|lease| with(make(lease), &format!("/{field}"), json!("d".repeat(32)))).await;
    }
}

#[tokio::test]
async fn a_heartbeat_in_another_name_is_refused() {
    for name in ["worker-2", "worker-1#0", "worker-1#1", ""] {
        refuses(|lease| with(heartbeat(lease), "/worker_id", json!(name))).await;
    }
}

#[tokio::test]
async fn any_extra_field_is_refused() {
    let extra = [
        ("input", json!("x")),
        ("policy", json!({})),
        ("activity_version", json!("live_activity/v1")),
        ("receipt", json!("x")),
    ];
    for (key, value) in extra {
        for make in [heartbeat, evidence, candidate] {
            refuses(|lease| with(make(lease), &format!("/{key}"), value.clone())).await;
        }
    }
    refuses(|lease| with(heartbeat(lease), "/result", json!("x"))).await;
    refuses(|lease| with(evidence(lease), "/worker_id", json!("worker-1"))).await;
    refuses(|lease| with(candidate(lease), "/error", json!("execution_failed"))).await;
}

#[tokio::test]
async fn a_failure_code_that_is_not_the_workers_is_refused() {
    for code in [
        "out_of_coffee",
        "max_attempts_exceeded",
        "cancelled",
        "",
        "INVALID_TASK",
    ] {
        refuses(|lease| failure(lease, code, "terminal")).await;
    }
    refuses(|lease| failure(lease, "execution_failed", "terminal")).await;
    refuses(|lease| failure(lease, "invalid_task", "retryable")).await;
}

#[tokio::test]
async fn a_result_of_the_wrong_kind_is_refused() {
    refuses(|lease| text_result(lease, "a text for a coding job")).await;
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(candidate(&lease)).await;
    worker.refused().await;
    assert_eq!(rig.job(&job).await["status"], "leased");
}

#[tokio::test]
async fn a_malformed_report_is_refused() {
    for report in [
        "done",
        "{}",
        "{\"summary\":\"s\",\"changes\":[]}",
        "{\"summary\":\" s\",\"changes\":[\"c\"]}",
    ] {
        refuses(|lease| with(candidate(lease), "/result", json!(report))).await;
    }
}

#[test_case("/evidence/0/base_sha", json!(CANDIDATE); "another base")]
#[test_case("/evidence/0/check_index", json!(1); "a check that was not declared")]
#[test_case("/evidence/0/duration_ms", json!(601_001); "longer than the policy allows")]
#[test_case("/evidence/0/output", json!("secret"); "raw output")]
#[test_case("/evidence/0/reason", json!("no_changes"); "a reason of another phase")]
#[test_case("/evidence/0/exit_code", json!(256); "no exit code")]
#[test_case("/evidence/0/argv", json!(["go"]); "an argv")]
#[test_case("/evidence", json!([]); "no record")]
#[tokio::test]
async fn evidence_that_breaks_a_rule_is_refused(pointer: &str, value: Value) {
    let pointer = pointer.to_owned();
    refuses(|lease| with(evidence(lease), &pointer, value)).await;
}

#[tokio::test]
async fn evidence_that_contradicts_stored_evidence_is_refused() {
    let (rig, mut worker, job, lease) = leased().await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    let before = trace(&rig, &job, &lease).await;
    worker
        .send(with(evidence(&lease), "/evidence/0/duration_ms", json!(16)))
        .await;
    worker.refused().await;
    assert_eq!(trace(&rig, &job, &lease).await, before);
}

#[tokio::test]
async fn a_candidate_that_evidence_contradicts_is_refused() {
    let (rig, mut worker, job, lease) = leased().await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    worker
        .send(with(candidate(&lease), "/candidate_sha", json!(BASE)))
        .await;
    worker.refused().await;
    assert_eq!(rig.job(&job).await["status"], "leased");
}

#[tokio::test]
async fn r13_a_second_result_is_refused_and_the_first_one_stays() {
    let (rig, mut worker, job, lease) = leased().await;
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    let before = trace(&rig, &job, &lease).await;
    worker.send(candidate(&lease)).await;
    worker.refused().await;
    assert_eq!(trace(&rig, &job, &lease).await, before);
}

#[tokio::test]
async fn an_idle_slot_has_nothing_to_say() {
    let rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    let nobody = json!({"job_id": "a".repeat(32), "attempt_id": "b".repeat(32)});
    worker.send(heartbeat(&nobody)).await;
    worker.refused().await;
}

#[tokio::test]
async fn what_is_not_one_strict_object_is_refused() {
    let (_, _, _, lease) = leased().await;
    let good = heartbeat(&lease).to_string();
    let broken = [
        String::new(),
        "null".to_owned(),
        format!("[{good}]"),
        format!("{good}{good}"),
        format!("{good}x"),
        good.replacen('{', "{\"type\":\"heartbeat\",", 1),
        good.replace("worker-1", "\\ud800"),
        good.replace("worker_id", "Worker_Id"),
        good.replace("\"worker-1\"", "null"),
        good.replace("heartbeat", "lease"),
        good.replace("heartbeat", "ping"),
    ];
    for message in broken {
        let (rig, mut worker, job, lease) = leased().await;
        let before = trace(&rig, &job, &lease).await;
        worker.send(&message).await;
        worker.refused().await;
        assert_eq!(trace(&rig, &job, &lease).await, before, "{message}");
    }
}

#[tokio::test]
async fn binary_messages_and_invalid_utf8_are_refused() {
    let (_rig, mut worker, _, lease) = leased().await;
    worker
        .send_raw(Message::Binary(
            heartbeat(&lease).to_string().into_bytes().into(),
        ))
        .await;
    worker.refused().await;

    let (_rig, mut worker, _, _) = leased().await;
    let bytes = Bytes::from_static(b"{\"type\":\"\xff\"}");
    // The text type promises UTF-8; a raw frame does not.
    use tokio_tungstenite::tungstenite::protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    };
    let frame = Frame::message(bytes, OpCode::Data(Data::Text), true);
    worker.send_raw(Message::Frame(frame)).await;
    worker.refused().await;
}

#[tokio::test]
async fn one_mebibyte_is_read_and_one_byte_more_closes_with_1009() {
    let padded = |lease: &Value, length: usize| {
        let mut text = candidate(lease).to_string();
        text.push_str(&" ".repeat(length - text.len()));
        Message::Text(Utf8Bytes::from(text))
    };
    let (_rig, mut worker, _, lease) = leased().await;
    worker.send_raw(padded(&lease, 1 << 20)).await;
    worker.ack(&lease).await;

    let (rig, mut worker, job, lease) = leased().await;
    worker.send_raw(padded(&lease, (1 << 20) + 1)).await;
    match worker.next().await {
        Some(Ok(Message::Close(Some(frame)))) => assert_eq!(u16::from(frame.code), 1009),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.job(&job).await["status"], "leased");
}

#[tokio::test]
async fn a_slot_that_is_connected_is_refused_with_409() {
    let rig = Rig::start().await;
    let mut first = rig.connect(0).await;
    let second = rig
        .try_connect("worker_id=worker-1&slot=0", WORKER, &[])
        .await;
    assert_eq!(second.err(), Some(axum::http::StatusCode::CONFLICT));
    let _other_slot = rig.connect(1).await;
    rig.submit_text("x").await;
    rig.submit_text("y").await;
    first.lease().await;
}

#[tokio::test]
async fn r57_a_wrong_name_slot_or_token_is_unauthorized() {
    let rig = Rig::start().await;
    for (query, token) in [
        ("worker_id=worker-1&slot=0", "wrong"),
        ("worker_id=worker-1&slot=0", crate::support::OWNER),
        ("worker_id=worker-1&slot=0", "other-token-canary"),
        ("worker_id=worker-3&slot=0", WORKER),
        ("worker_id=worker-1&slot=2", WORKER),
        ("worker_id=worker-1&slot=00", WORKER),
        ("worker_id=worker-1&slot=%2B0", WORKER),
        ("worker_id=worker-1&slot=", WORKER),
        ("worker_id=worker-1", WORKER),
        ("slot=0", WORKER),
        ("worker_id=worker-1&slot=0&slot=0", WORKER),
    ] {
        let refused = rig.try_connect(query, token, &[]).await;
        assert_eq!(
            refused.err(),
            Some(axum::http::StatusCode::UNAUTHORIZED),
            "{query}"
        );
    }
    let token_in_query = format!("worker_id=worker-1&slot=0&token={WORKER}");
    assert!(rig.try_connect(&token_in_query, "", &[]).await.is_err());
}

#[tokio::test]
async fn r57_a_foreign_origin_or_host_is_refused_with_403() {
    let rig = Rig::start().await;
    let own = format!("http://{}", rig.address);
    let query = "worker_id=worker-1&slot=0";
    for (header, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("host", "evil.example"),
    ] {
        let refused = rig.try_connect(query, WORKER, &[(header, value)]).await;
        assert_eq!(
            refused.err(),
            Some(axum::http::StatusCode::FORBIDDEN),
            "{header}: {value}"
        );
    }
    let mut peer = rig
        .try_connect(query, WORKER, &[("origin", &own)])
        .await
        .unwrap();
    peer.silent(Duration::from_millis(10)).await;
}

#[tokio::test]
async fn r13_a_repeated_result_after_a_lost_acknowledgement_is_not_a_second_one() {
    // The acknowledgement is lost with the connection; the attempt has ended once.
    let (rig, mut worker, job, lease) = leased().await;
    worker.send(candidate(&lease)).await;
    drop(worker);
    rig.until(&job, "succeeded").await;
    let before = trace(&rig, &job, &lease).await;
    let mut other = rig.connect(1).await;
    other.send(about(&lease, candidate(&lease))).await;
    other.refused().await;
    assert_eq!(trace(&rig, &job, &lease).await, before);
}

//! Connecting, and text jobs.

use std::time::Duration;

use serde_json::json;

use crate::bed::{Bed, TOKEN};
use crate::gate::{Gate, failed, heartbeat, message, result};

#[tokio::test]
async fn each_slot_connects_on_its_own_with_the_token() {
    let gate = Gate::new().await;
    let mut bed = Bed::new(&gate.url());
    bed.config["concurrency"] = json!(3);
    let _worker = bed.start();
    let mut targets = Vec::new();
    let mut slots = Vec::new();
    for _ in 0..3 {
        let slot = gate.accept().await;
        assert_eq!(slot.authorization, format!("Bearer {TOKEN}"));
        targets.push(slot.target.clone());
        slots.push(slot);
    }
    targets.sort();
    let expected = [0, 1, 2].map(|slot| {
        let offers = "activity_version=live_activity%2Fv1&control_version=job_control%2Fv1";
        format!("/v1/workers/connect?worker_id=worker-1&slot={slot}&{offers}")
    });
    assert_eq!(targets, expected);
    // One slot that loses its connection does not disturb the others.
    drop(slots.remove(0));
    slots.push(gate.accept().await);
    for slot in &mut slots {
        let (evidence, answer) = slot.run(bed.text_lease("hello")).await;
        assert!(evidence.is_empty());
        assert_eq!(answer, result("HELLO"));
    }
}

#[tokio::test]
async fn a_text_job_is_answered_byte_for_byte() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    slot.say(bed.text_lease("<a>&\u{2028}é\"\\")).await;
    let answer = slot.answer().await;
    assert_eq!(answer, result("\\u003cA\\u003e\\u0026\\u2028É\\\"\\\\"));
    slot.ack().await;
    // The next lease needs no new connection.
    assert_eq!(slot.run(bed.text_lease("again")).await.1, result("AGAIN"));
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
}

#[tokio::test]
async fn heartbeats_go_on_while_a_job_runs_and_pings_are_answered() {
    let change = |bed: &mut Bed| bed.config["heartbeat_interval"] = json!("50ms");
    let (bed, _gate, _worker, mut slot) = Bed::connected_with(change).await;
    slot.say(bed.coding_lease(
        "until test -e $0.go; do test -e go && exit; sleep 0.05; done",
        json!([]),
        |_| {},
    ))
    .await;
    for _ in 0..5 {
        assert_eq!(slot.text().await, heartbeat());
    }
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    slot.socket
        .send(Message::Ping(vec![1, 2, 3].into()))
        .await
        .unwrap();
    loop {
        let next = tokio::time::timeout(crate::gate::LONG, slot.socket.next())
            .await
            .unwrap();
        match next.unwrap().unwrap() {
            Message::Pong(payload) => {
                assert_eq!(payload.as_ref(), [1, 2, 3]);
                break;
            }
            Message::Text(text) => assert_eq!(text.as_str(), heartbeat()),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let worktrees = std::fs::read_dir(bed.root.join("worktrees")).unwrap();
    for entry in worktrees.flatten().filter(|entry| entry.path().is_dir()) {
        std::fs::write(entry.path().join("go"), "").unwrap();
    }
    let evidence_or_result = slot.answer().await;
    assert!(
        evidence_or_result.contains("candidate_sha"),
        "{evidence_or_result}"
    );
    // Heartbeats go on until the result is acknowledged.
    assert_eq!(slot.text().await, heartbeat());
    slot.ack().await;
}

#[tokio::test]
async fn a_text_that_no_plugin_can_take_is_an_invalid_task() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let (_, answer) = slot.run(bed.text_lease(&"x".repeat(65_537))).await;
    assert_eq!(answer, failed("invalid_task", "terminal"));
    let (_, answer) = slot.run(bed.text_lease(&"x".repeat(65_536))).await;
    assert_eq!(
        answer,
        message("result", &format!(",\"result\":\"{}\"", "X".repeat(65_536)))
    );
}

#[tokio::test]
async fn the_shipped_python_plugin_serves_a_text_job() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/forge-plugin-v1.py"
    );
    let change = |bed: &mut Bed| {
        bed.config["plugins"][0]["argv"] = json!(["/usr/bin/python3", example]);
    };
    let (bed, _gate, _worker, mut slot) = Bed::connected_with(change).await;
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}

#[tokio::test]
async fn a_gate_that_restarts_finds_its_worker_again() {
    let (bed, gate, _worker, slot) = Bed::connected().await;
    let port = gate.port();
    drop(slot);
    drop(gate);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let gate = Gate::on(port).await;
    let mut slot = gate.accept().await;
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}

#[tokio::test]
async fn a_refused_handshake_is_tried_again_and_said_once() {
    let gate = Gate::new().await;
    let bed = Bed::new(&gate.url());
    let worker = bed.start();
    gate.refuse(401).await;
    gate.refuse(401).await;
    gate.refuse(409).await;
    let mut slot = gate.accept().await;
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
    let log = worker.log();
    let warnings = |text: &str| {
        log.lines()
            .filter(|line| line.contains("trying again") && line.contains(text))
            .count()
    };
    assert_eq!(warnings("401"), 1, "{log}");
    assert_eq!(warnings("409"), 1, "{log}");
    assert!(!log.contains(TOKEN), "{log}");
}

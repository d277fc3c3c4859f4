//! The Worker link as a Worker sees it: every message in its place.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    BASE, CANDIDATE, Rig, WORKER, about, candidate, evidence, failure, heartbeat, text_result,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_text_job_goes_from_lease_to_output() {
    let rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    let job = rig.submit_text("hello <&>").await;

    let text = worker.receive_text().await;
    assert!(
        text.ends_with("}\n") && text.contains(r"hello \u003c\u0026\u003e"),
        "{text}"
    );
    let lease: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(lease["job_id"], job.as_str());
    assert_eq!(lease["input"], "hello <&>");
    assert_eq!(lease["policy"]["execution"]["plugin_id"], "reference");
    let mut keys: Vec<_> = lease.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(keys, ["attempt_id", "input", "job_id", "policy", "type"]);

    let seen = rig.until(&job, "leased").await;
    assert_eq!(seen["attempts"][0]["id"], lease["attempt_id"]);
    assert_eq!(seen["attempts"][0]["worker_id"], "worker-1");
    worker.send(heartbeat(&lease)).await;
    worker.send(text_result(&lease, "FORGE: HELLO")).await;
    worker.ack(&lease).await;

    assert_eq!(rig.job(&job).await["status"], "succeeded");
    let output = rig.get(&format!("/v1/jobs/{job}/output")).await;
    assert_eq!(output.body, "FORGE: HELLO");
    assert_eq!(output.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn a_coding_job_ends_with_its_candidate_report_and_evidence() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = rig.connect(1).await;
    let lease = worker.lease().await;
    assert_eq!(
        lease["task"],
        json!({
            "repository_id": "agent-forge",
            "base_sha": BASE,
            "instruction": "fix it",
            "tests": [["go", "test", "./..."]],
        })
    );
    assert_eq!(lease["policy"]["execution"]["default_branch"], "main");
    worker.send(heartbeat(&lease)).await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    assert_eq!(
        rig.job(&job).await["status"],
        "leased",
        "evidence ends nothing"
    );
    // The identical batch again is harmless.
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;

    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    assert_eq!(result["job"]["candidate_sha"], CANDIDATE);
    assert_eq!(result["attempts"][0]["worker_id"], "worker-1#1");
    assert_eq!(result["attempts"][0]["agent_report"]["summary"], "s");
    assert_eq!(
        result["attempts"][0]["evidence"][0]["reason"],
        "scoped_check_passed"
    );
    let types: Vec<_> = result["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].clone())
        .collect();
    assert_eq!(types, ["submitted", "leased", "succeeded"]);

    let attempt = lease["attempt_id"].as_str().unwrap();
    let records = rig
        .get(&format!("/v1/jobs/{job}/attempts/{attempt}/evidence"))
        .await
        .json();
    assert_eq!(records[0]["output"], "[REDACTED]");
    assert_eq!(
        records[0]["argv"],
        json!(["[REDACTED]", "[REDACTED]", "[REDACTED]"])
    );
}

#[tokio::test]
async fn heartbeats_extend_a_lease_and_silence_ends_it() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    for _ in 0..3 {
        rig.clock.advance(20 * SECOND);
        worker.send(heartbeat(&lease)).await;
        // The answer to a query comes after the heartbeat was stored.
        rig.until(&job, "leased").await;
        worker.silent(Duration::from_millis(40)).await;
    }
    rig.pass(31 * SECOND).await;
    let waiting = rig.until(&job, "retry_wait").await;
    assert_eq!(waiting["attempt_id"], lease["attempt_id"]);
    // The late heartbeat is refused, and the slot gets the second attempt when it is back.
    worker.send(heartbeat(&lease)).await;
    worker.refused().await;
    let mut worker = connect_again(&rig, 0).await;
    rig.pass(2 * SECOND).await;
    let second = worker.lease().await;
    assert_eq!(second["job_id"], lease["job_id"]);
    assert_ne!(second["attempt_id"], lease["attempt_id"]);
}

#[tokio::test]
async fn a_heartbeat_that_crossed_the_acknowledgement_is_tolerated() {
    let rig = Rig::start().await;
    rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(text_result(&lease, "")).await;
    worker.ack(&lease).await;
    worker.send(heartbeat(&lease)).await;
    rig.submit_text("y").await;
    let next = worker.lease().await;
    assert_eq!(next["input"], "y");
    worker.send(text_result(&next, "")).await;
    worker.ack(&next).await;
    // Of the attempts that ended, only the last one.
    worker.send(heartbeat(&lease)).await;
    worker.refused().await;
}

#[tokio::test]
async fn a_heartbeat_that_crossed_the_acknowledgement_costs_no_lease_that_followed_at_once() {
    let rig = Rig::start().await;
    let jobs = [rig.submit_text("x").await, rig.submit_text("y").await];
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(text_result(&lease, "first")).await;
    worker.send(heartbeat(&lease)).await;
    worker.ack(&lease).await;
    let next = worker.lease().await;
    assert_ne!(next["job_id"], lease["job_id"]);
    worker.send(heartbeat(&lease)).await;
    worker.send(text_result(&next, "second")).await;
    worker.ack(&next).await;
    for job in &jobs {
        assert_eq!(rig.job(job).await["status"], "succeeded");
    }
    // Its heartbeat passes and nothing else of it does.
    rig.submit_text("z").await;
    worker.lease().await;
    worker.send(heartbeat(&next)).await;
    worker.send(text_result(&next, "other")).await;
    worker.refused().await;
}

#[tokio::test]
async fn failures_follow_their_disposition() {
    let rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    for (code, disposition, status) in [
        ("invalid_task", "terminal", "failed"),
        ("scoped_test_failed", "terminal", "failed"),
        ("execution_failed", "retryable", "retry_wait"),
        ("execution_failed", "", "retry_wait"),
    ] {
        let job = rig.submit_text(code).await;
        let lease = worker.lease().await;
        worker.send(failure(&lease, code, disposition)).await;
        worker.ack(&lease).await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["status"], status, "{code}");
        if status == "failed" {
            assert_eq!(seen["failure_code"], code);
        } else {
            let cancelled = rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
            assert_eq!(cancelled.json()["status"], "cancelled");
        }
    }
}

#[tokio::test]
async fn r27_attempts_run_out() {
    let rig = Rig::start_with(|config| config["lifecycle"]["max_attempts"] = json!(2)).await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    for _ in 0..2 {
        let lease = worker.lease().await;
        worker
            .send(failure(&lease, "execution_failed", "retryable"))
            .await;
        worker.ack(&lease).await;
        rig.clock.advance(3 * SECOND);
    }
    let seen = rig.job(&job).await;
    assert_eq!(
        (&seen["status"], &seen["failure_code"]),
        (&json!("failed"), &json!("max_attempts_exceeded"))
    );
}

#[tokio::test]
async fn r12_a_disconnect_keeps_the_lease_and_a_reconnect_waits_for_its_end() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    drop(worker);
    let mut worker = connect_again(&rig, 0).await;
    assert_eq!(rig.job(&job).await["status"], "leased");
    worker.silent(Duration::from_millis(80)).await;
    rig.pass(31 * SECOND).await;
    rig.pass(2 * SECOND).await;
    assert_ne!(worker.lease().await["attempt_id"], lease["attempt_id"]);
}

#[tokio::test]
async fn r04_the_old_session_of_a_slot_has_no_say() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    drop(worker);
    let mut worker = connect_again(&rig, 0).await;
    worker.send(text_result(&lease, "late")).await;
    worker.refused().await;
    assert_eq!(rig.job(&job).await["status"], "leased");
}

#[tokio::test]
async fn a_restart_keeps_leases_and_evidence_and_fences_old_sessions() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    drop(worker);
    let rig = rig.restart().await;
    assert_eq!(rig.job(&job).await["status"], "leased");
    let attempt = lease["attempt_id"].as_str().unwrap();
    let records = rig
        .get(&format!("/v1/jobs/{job}/attempts/{attempt}/evidence"))
        .await
        .json();
    assert_eq!(records.as_array().unwrap().len(), 1);
    let mut worker = rig.connect(0).await;
    worker.send(candidate(&lease)).await;
    worker.refused().await;
    rig.pass(31 * SECOND).await;
    rig.until(&job, "retry_wait").await;
    rig.pass(2 * SECOND).await;
    let mut worker = connect_again(&rig, 0).await;
    let second = worker.lease().await;
    worker.send(candidate(&second)).await;
    worker.ack(&second).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn a_cancelled_lease_refuses_its_late_result() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    let cancelled = rig.post(&format!("/v1/jobs/{job}/cancel"), "{}").await;
    assert_eq!(cancelled.json()["status"], "cancelled");
    worker.send(text_result(&lease, "late")).await;
    worker.refused().await;
    assert_eq!(rig.job(&job).await["status"], "cancelled");
}

#[tokio::test]
async fn slots_take_the_jobs_of_their_pool_by_priority() {
    let rig = Rig::start().await;
    for (input, priority) in [("low", -5), ("high", 7), ("plain", 0)] {
        rig.post("/v1/jobs", json!({"input": input, "priority": priority}))
            .await;
    }
    let mut other = rig
        .try_connect("worker_id=worker-2&slot=0", "other-token-canary", &[])
        .await
        .unwrap();
    let mut worker = rig.connect(0).await;
    for expected in ["high", "plain", "low"] {
        let lease = worker.lease().await;
        assert_eq!(lease["input"], expected);
        assert!(lease.get("priority").is_none());
        worker.send(text_result(&lease, "ok")).await;
        worker.ack(&lease).await;
    }
    other.silent(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn an_offer_that_is_not_selected_changes_nothing() {
    let rig = Rig::start().await;
    rig.submit_coding().await;
    let offer = "worker_id=worker-1&slot=0&activity_version=live_activity%2Fv2&control_version=job_control%2Fv9&new=1";
    let mut worker = rig.try_connect(offer, WORKER, &[]).await.unwrap();
    let lease = worker.lease().await;
    assert!(lease.get("activity_version").is_none());
    worker
        .send(about(
            &lease,
            json!({
                "type": "activity",
                "activity_version": "live_activity/v1",
                "activity": {"sequence": 1, "stage": "analyzing"},
                "worker_id": "worker-1",
            }),
        ))
        .await;
    worker.refused().await;
}

#[tokio::test]
async fn pings_are_answered_and_white_space_passes() {
    let rig = Rig::start().await;
    rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker
        .send_raw(tokio_tungstenite::tungstenite::Message::Ping("p".into()))
        .await;
    let pong = worker.next().await.unwrap().unwrap();
    assert!(pong.is_pong(), "{pong:?}");
    let spaced = serde_json::to_string_pretty(&text_result(&lease, "ok")).unwrap();
    worker.send(format!("\n{spaced}\r\n")).await;
    worker.ack(&lease).await;
}

/// A Worker that drains: its last result and the Close frame leave in one write.
async fn leave_with(worker: &mut crate::support::Peer, messages: &[Value]) {
    use tokio_tungstenite::tungstenite::Message;
    for message in messages {
        worker.feed_raw(Message::text(message.to_string())).await;
    }
    worker.send_raw(Message::Close(None)).await;
}

async fn closed(worker: &mut crate::support::Peer) {
    match worker.next().await {
        Some(Ok(tokio_tungstenite::tungstenite::Message::Close(_))) => {}
        other => panic!("the Close frame is not answered, but {other:?}"),
    }
    assert!(worker.next().await.is_none());
}

#[tokio::test]
async fn a_worker_that_leaves_with_its_result_is_acknowledged_and_gets_no_lease() {
    for late in [false, true] {
        let rig = Rig::start().await;
        let jobs = [rig.submit_text("x").await, rig.submit_text("y").await];
        let mut worker = rig.connect(0).await;
        let lease = worker.lease().await;
        let (ended, waiting): (Vec<_>, Vec<_>) =
            jobs.iter().partition(|job| lease["job_id"] == job.as_str());
        let mut last = vec![text_result(&lease, "done")];
        if late {
            last.push(heartbeat(&lease));
        }
        leave_with(&mut worker, &last).await;
        worker.ack(&lease).await;
        closed(&mut worker).await;
        assert_eq!(rig.job(ended[0]).await["status"], "succeeded");
        // The slot is free at once, and the job that waits has lost nothing.
        let seen = rig.job(waiting[0]).await;
        assert_eq!(seen["status"], "pending");
        assert!(seen.get("attempts").is_none(), "{seen}");
        let next = connect_again(&rig, 0).await.lease().await;
        assert_eq!(next["job_id"], waiting[0].as_str());
    }
}

#[tokio::test]
async fn a_slot_that_has_left_gets_no_job_that_comes_later() {
    let rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    leave_with(&mut worker, &[]).await;
    closed(&mut worker).await;
    let job = rig.submit_text("x").await;
    let waiting = rig.job(&job).await;
    assert_eq!(waiting["status"], "pending");
    assert!(waiting.get("attempts").is_none(), "{waiting}");
}

#[tokio::test]
async fn a_stop_says_goodbye_to_idle_slots() {
    let mut rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    // The slot is idle once it is listed.
    rig.stop().await;
    match worker.next().await {
        Some(Ok(tokio_tungstenite::tungstenite::Message::Close(Some(frame)))) => {
            assert_eq!(u16::from(frame.code), 1001);
        }
        other => panic!("{other:?}"),
    }
}

/// Connects as soon as the Gate has noticed that the last session is gone.
async fn connect_again(rig: &Rig, slot: u16) -> crate::support::Peer {
    let query = format!("worker_id=worker-1&slot={slot}");
    let connect = async {
        loop {
            match rig.try_connect(&query, WORKER, &[]).await {
                Ok(peer) => return peer,
                Err(status) => assert_eq!(status, 409),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, connect)
        .await
        .unwrap()
}

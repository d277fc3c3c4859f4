//! Attempts that go on over a new connection, and after a restart of the Gate.

use std::time::Duration;

use serde_json::{Value, json};

use super::{QUIET, SECOND, accepts, attach, connect, greeted, journal, leased, pong};
use crate::support::{
    CANDIDATE, Peer, Rig, WORKER, about, candidate, evidence, failure, heartbeat, text_result,
};

async fn attached(worker: &mut Peer, lease: &Value) -> u64 {
    worker.send(attach(lease)).await;
    let answer = worker.receive().await;
    assert_eq!(answer["type"], "attached", "{answer}");
    let left = answer["deadline_ms"].as_u64().unwrap();
    let expected = about(lease, json!({"type": "attached", "deadline_ms": left}));
    assert_eq!(answer, expected);
    left
}

async fn lost(worker: &mut Peer, lease: &Value) {
    worker.send(attach(lease)).await;
    assert_eq!(
        worker.receive().await,
        about(lease, json!({"type": "lost"}))
    );
}

#[tokio::test]
async fn r12_an_attempt_goes_on_over_a_new_connection() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    rig.clock.advance(10 * SECOND);
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    assert_eq!(attached(&mut worker, &lease).await, 20_000);
    worker.send(pong(1)).await;
    worker.send(heartbeat(&lease)).await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    // The heartbeat has moved the deadline: a second cut later it is the whole time again.
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    assert_eq!(attached(&mut worker, &lease).await, 30_000);
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    let seen = rig.job(&job).await;
    assert_eq!(
        (&seen["status"], &seen["candidate_sha"]),
        (&json!("succeeded"), &json!(CANDIDATE))
    );
    let kinds = journal(&rig, &job).await;
    let again = "attempt_reattached";
    assert_eq!(kinds, ["submitted", "leased", again, again, "succeeded"]);
    // Still no lease before the pong of this connection.
    rig.submit_text("y").await;
    worker.silent(QUIET).await;
    worker.send(pong(1)).await;
    worker.lease().await;
}

#[tokio::test]
async fn stages_go_on_after_an_attach() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let offer = "worker_id=worker-1&slot=0&control_version=job_control%2Fv1&activity_version=live_activity%2Fv1";
    let mut worker = rig.try_connect(offer, WORKER, &[]).await.unwrap();
    worker.receive().await;
    worker.send(pong(1)).await;
    let lease = worker.lease().await;
    let activity = |sequence: u32, stage: &str| {
        let message = json!({
            "type": "activity", "activity_version": "live_activity/v1",
            "activity": {"sequence": sequence, "stage": stage}, "worker_id": "worker-1",
        });
        about(&lease, message)
    };
    worker.send(activity(1, "analyzing")).await;
    worker.send(activity(2, "editing")).await;
    drop(worker);
    let mut worker = loop {
        match rig.try_connect(offer, WORKER, &[]).await {
            Ok(peer) => break peer,
            Err(status) => assert_eq!(status, 409),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    worker.receive().await;
    attached(&mut worker, &lease).await;
    // What the last connection showed is gone with it; what comes is shown.
    assert_eq!(rig.job(&job).await["attempts"][0]["activity"], json!([]));
    worker.send(activity(3, "testing")).await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    let shown = rig.job(&job).await["attempts"][0]["activity"].clone();
    assert_eq!(shown[0]["stage"], "testing");
    assert_eq!(shown[0]["attempt_ordinal"], 1);
    worker.send(activity(4, "testing")).await;
    worker.refused().await;
}

#[tokio::test]
async fn r13_a_result_whose_acknowledgement_was_lost_is_delivered_once() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    let next = rig.submit_text("next").await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    worker.send(candidate(&lease)).await;
    // The acknowledgement comes, and nobody reads it.
    rig.until(&job, "succeeded").await;
    drop(worker);
    // However long that is ago: the lease of the next job, which came with it, has run out.
    rig.until(&next, "leased").await;
    rig.pass(600 * SECOND).await;
    rig.until(&next, "retry_wait").await;
    rig.pass(2 * SECOND).await;

    let before = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    let mut worker = connect(&rig, 0).await;
    assert_eq!(attached(&mut worker, &lease).await, 0);
    for _ in 0..2 {
        worker.send(evidence(&lease)).await;
        worker.ack(&lease).await;
    }
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    assert_eq!(
        rig.get(&format!("/v1/jobs/{job}/result")).await.json(),
        before
    );
    worker.send(pong(1)).await;
    assert_eq!(worker.lease().await["job_id"], next.as_str());
}

#[tokio::test]
async fn r13_after_a_result_everything_but_the_same_again_is_refused() {
    let cases: [fn(&Value) -> Value; 5] = [
        |lease| {
            let mut other = candidate(lease);
            other["candidate_sha"] = json!("3".repeat(40));
            other
        },
        |lease| failure(lease, "execution_failed", "retryable"),
        |lease| {
            let mut other = evidence(lease);
            other["evidence"][0]["duration_ms"] = json!(16);
            other
        },
        |lease| {
            let mut other = evidence(lease);
            other["evidence"][0]["evidence_id"] = json!("d".repeat(32));
            other
        },
        heartbeat,
    ];
    for case in cases {
        let rig = Rig::start().await;
        let job = rig.submit_coding().await;
        let mut worker = greeted(&rig, 0).await;
        let lease = worker.lease().await;
        worker.send(evidence(&lease)).await;
        worker.ack(&lease).await;
        worker.send(candidate(&lease)).await;
        worker.ack(&lease).await;
        drop(worker);
        let before = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
        let mut worker = connect(&rig, 0).await;
        assert_eq!(attached(&mut worker, &lease).await, 0);
        let message = case(&lease);
        worker.send(&message).await;
        worker.refused().await;
        let after = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
        assert_eq!(after, before, "{message}");
    }
}

#[tokio::test]
async fn a_failure_is_repeated_while_the_next_attempt_runs_elsewhere() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    let failed = failure(&lease, "execution_failed", "retryable");
    worker.send(&failed).await;
    rig.until(&job, "retry_wait").await;
    drop(worker);
    let mut other = greeted(&rig, 1).await;
    rig.pass(2 * SECOND).await;
    let second = other.lease().await;
    let mut worker = connect(&rig, 0).await;
    assert_eq!(attached(&mut worker, &lease).await, 0);
    worker.send(&failed).await;
    worker.ack(&lease).await;
    worker.send(pong(1)).await;
    other.send(text_result(&second, "done")).await;
    other.ack(&second).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn what_is_no_attempt_of_the_slot_is_lost() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let with = |field: &str, value: String| {
        let mut other = lease.clone();
        other[field] = json!(value);
        other
    };
    // Another slot of the same Worker, with the right token.
    let mut other = connect(&rig, 1).await;
    lost(&mut other, &lease).await;
    for wrong in [
        with("attach_token", "f".repeat(32)),
        with("attempt_id", "e".repeat(32)),
        with("job_id", "e".repeat(32)),
    ] {
        let mut worker = connect(&rig, 0).await;
        lost(&mut worker, &wrong).await;
        worker.send(pong(1)).await;
        // The slot still has its attempt, so there is none for it.
        worker.silent(Duration::from_millis(20)).await;
    }
    assert_eq!(rig.job(&job).await["attempt_id"], lease["attempt_id"]);
    assert_eq!(journal(&rig, &job).await, ["submitted", "leased"]);
    let mut worker = connect(&rig, 0).await;
    attached(&mut worker, &lease).await;
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn an_attempt_that_has_ended_without_its_worker_is_lost() {
    // Cancelled.
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    let next = rig.submit_text("next").await;
    let mut worker = connect(&rig, 0).await;
    lost(&mut worker, &lease).await;
    // The Worker stops its job now; only then it answers the ping.
    worker.silent(QUIET).await;
    assert_eq!(rig.job(&next).await["status"], "pending");
    worker.send(pong(1)).await;
    assert_eq!(worker.lease().await["job_id"], next.as_str());

    // Expired, and running again.
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let mut other = greeted(&rig, 1).await;
    rig.pass(31 * SECOND).await;
    rig.until(&job, "retry_wait").await;
    rig.pass(2 * SECOND).await;
    let second = other.lease().await;
    assert_eq!(second["job_id"], job.as_str());
    let mut worker = connect(&rig, 0).await;
    lost(&mut worker, &lease).await;
    worker.send(pong(1)).await;
    worker.silent(QUIET).await;
    assert_eq!(rig.job(&job).await["attempt_id"], second["attempt_id"]);

    // At its deadline, before anybody has ended it.
    let rig = Rig::start_with(|config| config["lease_poll_interval"] = json!("1m")).await;
    rig.submit_text("x").await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    drop(worker);
    rig.clock.advance(30 * SECOND);
    let mut worker = connect(&rig, 0).await;
    lost(&mut worker, &lease).await;
}

#[tokio::test]
async fn an_attach_is_the_first_message_and_the_only_one() {
    let say: [fn() -> Value; 2] = [|| pong(1), accepts];
    for first in say {
        let (rig, job, worker, lease) = leased().await;
        drop(worker);
        let mut worker = connect(&rig, 0).await;
        worker.send(first()).await;
        worker.send(attach(&lease)).await;
        worker.refused().await;
        assert_eq!(journal(&rig, &job).await, ["submitted", "leased"]);
    }
    for found in [true, false] {
        let (rig, job, worker, lease) = leased().await;
        drop(worker);
        let mut worker = connect(&rig, 0).await;
        if found {
            attached(&mut worker, &lease).await;
        } else {
            let mut other = lease.clone();
            other["attach_token"] = json!("f".repeat(32));
            lost(&mut worker, &other).await;
        }
        worker.send(attach(&lease)).await;
        worker.refused().await;
        assert_eq!(rig.job(&job).await["status"], "leased");
    }
}

#[tokio::test]
async fn r04_the_connection_before_an_attach_has_no_say_any_more() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    attached(&mut worker, &lease).await;
    // A second connection of the slot is refused as long as this one stands.
    let busy = rig.try_connect(&super::offer(0), WORKER, &[]).await;
    assert_eq!(busy.err().unwrap(), 409);
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn r01_a_restart_of_the_gate_costs_no_attempt_however_long_it_takes() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    drop(worker);
    let rig = rig.restart_after(3_600 * SECOND).await;
    assert_eq!(rig.job(&job).await["attempt_id"], lease["attempt_id"]);
    rig.clock.advance(10 * SECOND);
    let mut worker = connect(&rig, 0).await;
    assert_eq!(attached(&mut worker, &lease).await, 20_000);
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    assert_eq!(result["job"]["status"], "succeeded");
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "attempt_reattached", "succeeded"]
    );
}

#[tokio::test]
async fn r01_who_stays_away_after_a_restart_loses_the_attempt_at_the_end_of_the_grace() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let rig = rig.restart_after(3_600 * SECOND).await;
    rig.pass(29 * SECOND).await;
    assert_eq!(rig.job(&job).await["status"], "leased");
    rig.pass(2 * SECOND).await;
    rig.until(&job, "retry_wait").await;
    let mut worker = connect(&rig, 0).await;
    lost(&mut worker, &lease).await;
    worker.send(pong(1)).await;
    rig.pass(2 * SECOND).await;
    let second = worker.lease().await;
    worker.send(text_result(&second, "done")).await;
    worker.ack(&second).await;
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    let ends: Vec<_> = result["attempts"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&ends[0]["status"], &ends[1]["status"]),
        (&json!("expired"), &json!("succeeded"))
    );
}

#[tokio::test]
async fn r26_a_restart_with_many_leases_gives_none_of_them_again() {
    const SLOTS: u16 = 60;
    let rig = Rig::start_with(|config| config["workers"][0]["concurrency"] = json!(SLOTS)).await;
    let mut held = Vec::new();
    for slot in 0..SLOTS {
        let job = rig.submit_text("x").await;
        let mut worker = greeted(&rig, slot).await;
        held.push((slot, job, worker.lease().await));
    }
    let waiting = rig.submit_text("waits").await;
    let rig = rig.restart_after(3_600 * SECOND).await;
    for (slot, job, lease) in &held {
        let mut worker = connect(&rig, *slot).await;
        attached(&mut worker, lease).await;
        worker.send(pong(1)).await;
        worker.send(text_result(lease, "done")).await;
        worker.ack(lease).await;
        let seen = rig.job(job).await;
        assert_eq!(
            (&seen["status"], &seen["attempt_id"]),
            (&json!("succeeded"), &lease["attempt_id"])
        );
        assert_eq!(
            journal(&rig, job).await,
            ["submitted", "leased", "attempt_reattached", "succeeded"]
        );
    }
    // The one that waited got a slot as soon as one was free.
    let seen = rig.job(&waiting).await;
    assert_eq!(seen["attempts"][0]["ordinal"], 1, "{seen}");
}

//! Pings, and the end of a connection that does not answer.

use std::time::Duration;

use gate::Pace;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{QUIET, connect, greeted, leased, pong, refuses, told_to_stop, until_slot};
use crate::support::{PATIENCE, Peer, Rig, heartbeat, text_result};

/// A Gate that pings often. What nobody waits for here never comes.
async fn rig(pace: Pace) -> Rig {
    let rig = Rig::start().await;
    rig.state.set_pace(pace);
    rig
}

const NEVER: Duration = Duration::from_secs(3_600);

fn often() -> Pace {
    Pace {
        ping: Duration::from_millis(10),
        pong: NEVER,
        stop: NEVER,
    }
}

/// The next message that is no ping; pings are answered.
async fn past_pings(worker: &mut Peer) -> Value {
    loop {
        let message = worker.receive().await;
        if message["type"] != "ping" {
            return message;
        }
        let n = message["n"].as_u64().unwrap();
        worker.send(pong(n)).await;
    }
}

/// The connection ends without a word that is not a ping.
async fn dropped(worker: &mut Peer) {
    use tokio_tungstenite::tungstenite::Message;
    let end = async {
        while let Some(Ok(message)) = worker.next().await {
            match message {
                Message::Text(text) => assert!(text.contains("\"ping\""), "{text}"),
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, end).await.unwrap();
}

#[tokio::test]
async fn pings_are_numbered_and_come_whatever_the_slot_does() {
    let rig = rig(often()).await;
    let mut worker = greeted(&rig, 0).await;
    for n in 2..5 {
        let ping = worker.receive().await;
        assert_eq!(ping, json!({"type": "ping", "n": n}));
        // Two may be under way; the later one is answered.
        if n % 2 == 0 {
            worker.send(pong(n)).await;
        }
    }
    let job = rig.submit_text("x").await;
    let lease = past_pings(&mut worker).await;
    assert_eq!(lease["job_id"], job.as_str());
    assert_eq!(worker.receive().await["type"], "ping");
    worker.send(heartbeat(&lease)).await;
    rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    let cancel = past_pings(&mut worker).await;
    assert_eq!(cancel["type"], "cancel");
    assert_eq!(worker.receive().await["type"], "ping");
    worker.send(super::cancelled(&lease)).await;
    worker.send(refuses("paused")).await;
    until_slot(&rig, "worker-1", "state", json!("paused")).await;
    for _ in 0..20 {
        assert_eq!(worker.receive().await["type"], "ping");
    }
}

#[tokio::test]
async fn a_job_is_found_between_pings_and_missed_by_none() {
    let rig = rig(often()).await;
    let mut worker = greeted(&rig, 0).await;
    for _ in 0..60 {
        let job = rig.submit_text("x").await;
        let lease = past_pings(&mut worker).await;
        assert_eq!(lease["job_id"], job.as_str());
        worker.send(text_result(&lease, "done")).await;
        assert_eq!(past_pings(&mut worker).await["type"], "ack");
    }
}

#[tokio::test]
async fn there_is_no_second_ping_in_a_greeting() {
    let rig = rig(often()).await;
    let mut worker = connect(&rig, 0).await;
    worker.silent(QUIET).await;
    worker.send(pong(1)).await;
    assert_eq!(worker.receive().await, json!({"type": "ping", "n": 2}));
}

#[tokio::test]
async fn who_answers_no_ping_is_disconnected_and_its_attempt_waits_for_it() {
    let rig = rig(Pace {
        ping: Duration::from_millis(500),
        pong: Duration::from_secs(2),
        stop: NEVER,
    })
    .await;
    // In its greeting.
    let mut worker = connect(&rig, 0).await;
    dropped(&mut worker).await;
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    // While it refuses.
    let mut worker = greeted(&rig, 0).await;
    worker.send(refuses("paused")).await;
    dropped(&mut worker).await;
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    // Idle.
    let mut worker = greeted(&rig, 0).await;
    dropped(&mut worker).await;
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    // With a job, whose heartbeats do not count as an answer.
    let job = rig.submit_text("x").await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    worker.send(heartbeat(&lease)).await;
    dropped(&mut worker).await;
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    assert_eq!(rig.job(&job).await["attempt_id"], lease["attempt_id"]);
    rig.state.set_pace(often());
    let mut worker = connect(&rig, 0).await;
    worker.send(super::attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "attached");
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
}

#[tokio::test]
async fn who_does_not_stop_is_disconnected() {
    let rig = rig(Pace {
        ping: NEVER,
        pong: NEVER,
        stop: Duration::from_millis(100),
    })
    .await;
    let job = rig.submit_text("x").await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    told_to_stop(&mut worker, &lease, "operator").await;
    dropped(&mut worker).await;
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    // What it may still run is lost to it.
    let mut worker = connect(&rig, 0).await;
    worker.send(super::attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "lost");
}

/// The one that waits for the real times of the protocol.
#[tokio::test]
async fn a_slot_is_pinged_after_ten_seconds_and_dropped_after_thirty_without_a_pong() {
    let (rig, _job, mut worker, _lease) = leased().await;
    let start = Instant::now();
    let mut pings = Vec::new();
    let end = async {
        while let Some(Ok(message)) = worker.socket_next().await {
            assert!(message.to_text().unwrap().contains("\"ping\""), "{message}");
            pings.push(start.elapsed());
        }
    };
    tokio::time::timeout(Duration::from_secs(40), end)
        .await
        .unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(29), "{took:?}");
    assert!(
        pings.len() >= 2 && pings[0] >= Duration::from_secs(9),
        "{pings:?}"
    );
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
}

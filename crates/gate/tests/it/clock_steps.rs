//! R06 through a whole Gate: its machine's clock is set by an hour while no Gate runs. Within one
//! process time is steady, so this is where a step could be seen at all.

use std::time::Duration;

use axum::http::StatusCode;

use crate::support::{Rig, failure, text_result};

const HOUR: Duration = Duration::from_secs(3600);
/// The lease of these tests, and a little more.
const LEASE: Duration = Duration::from_secs(31);

#[tokio::test]
async fn r06_a_clock_set_back_by_an_hour_makes_no_lease_endless_and_no_job_unusable() {
    let rig = Rig::start().await;
    let mut peer = rig.connect(0).await;
    let done = rig.submit_text("done").await;
    let lease = peer.lease().await;
    peer.send(text_result(&lease, "a result")).await;
    peer.ack(&lease).await;
    let runs = rig.submit_text("runs").await;
    peer.lease().await;
    let cancelled = rig.submit_text("cancelled later").await;
    drop(peer);
    rig.clock.step_back(HOUR);
    let rig = rig.restart().await;

    // What was there is there, and goes on, although it was made in the future.
    assert_eq!(rig.job(&done).await["status"], "succeeded");
    let reply = rig.post(&format!("/v1/jobs/{cancelled}/cancel"), "").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    // Nobody prolongs the lease, so it ends within its time.
    assert_eq!(rig.job(&runs).await["status"], "leased");
    rig.pass(LEASE).await;
    rig.until(&runs, "retry_wait").await;
    let mut peer = rig.connect(0).await;
    rig.pass(Duration::from_secs(3)).await;
    let lease = peer.lease().await;
    assert_eq!(lease["job_id"], runs.as_str());
    peer.send(text_result(&lease, "a result")).await;
    peer.ack(&lease).await;
    rig.until(&runs, "succeeded").await;
    let fresh = rig.submit_text("made in the past of the others").await;
    assert_eq!(peer.lease().await["job_id"], fresh.as_str());
}

#[tokio::test]
async fn r06_a_clock_set_forward_by_an_hour_loses_no_job() {
    let rig = Rig::start().await;
    let mut peer = rig.connect(0).await;
    let runs = rig.submit_text("runs").await;
    peer.lease().await;
    let waits = rig.submit_text("waits").await;
    drop(peer);
    rig.clock.advance(HOUR);
    let rig = rig.restart().await;
    let mut peer = rig.connect(0).await;
    rig.pass(Duration::from_secs(3)).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let lease = peer.lease().await;
        peer.send(text_result(&lease, "a result")).await;
        peer.ack(&lease).await;
        seen.push(lease["job_id"].as_str().unwrap().to_owned());
    }
    seen.sort();
    let mut expected = vec![runs.clone(), waits.clone()];
    expected.sort();
    assert_eq!(seen, expected);
    for job in [runs, waits] {
        rig.until(&job, "succeeded").await;
    }
}

#[tokio::test]
async fn r06_a_clock_set_back_by_an_hour_delays_no_second_attempt_by_an_hour() {
    // One whose time had come, though nobody was there to take it, and one whose time was near.
    for had_come in [true, false] {
        let rig = Rig::start().await;
        let mut peer = rig.connect(0).await;
        let job = rig.submit_text("fails at first").await;
        let lease = peer.lease().await;
        peer.send(failure(&lease, "execution_failed", "retryable"))
            .await;
        peer.ack(&lease).await;
        drop(peer);
        if had_come {
            rig.pass(Duration::from_secs(2)).await;
        }
        rig.clock.step_back(HOUR);
        let rig = rig.restart().await;
        let other = rig.submit_text("stands behind it").await;
        let mut peer = rig.connect(0).await;
        rig.pass(Duration::from_secs(3)).await;
        for _ in 0..2 {
            let lease = peer.lease().await;
            peer.send(text_result(&lease, "a result")).await;
            peer.ack(&lease).await;
        }
        for id in [job, other] {
            rig.until(&id, "succeeded").await;
        }
    }
}

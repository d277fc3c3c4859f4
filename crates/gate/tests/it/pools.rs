//! Pausing and resuming a pool: no lease from a paused one, whatever brings the job.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Reply, Rig, failure, text_result};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than a lease takes that is given at all.
const MOMENT: Duration = Duration::from_millis(150);

async fn pause(rig: &Rig, body: impl ToString) -> Reply {
    rig.post("/v1/pools/coding/pause", body).await
}

async fn resume(rig: &Rig) -> Value {
    let reply = rig.post("/v1/pools/coding/resume", "").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    reply.json()
}

async fn pool(rig: &Rig, id: &str) -> Value {
    let pools = rig.get("/v1/pools").await.json();
    let mut items = pools["items"].as_array().unwrap().iter();
    items.find(|pool| pool["id"] == id).unwrap().clone()
}

#[tokio::test]
async fn a_paused_pool_gives_no_lease_and_a_resumed_one_wakes_all_slots() {
    let rig = Rig::start().await;
    let mut one = rig.connect(0).await;
    let mut two = rig.connect(1).await;
    // Both are idle when the pause comes.
    one.silent(MOMENT).await;
    assert_eq!(pause(&rig, "").await.status, StatusCode::OK);
    rig.submit_text("x").await;
    rig.submit_text("y").await;
    one.silent(MOMENT).await;
    two.silent(MOMENT).await;
    resume(&rig).await;
    let (first, second) = tokio::join!(one.lease(), two.lease());
    assert_ne!(first["job_id"], second["job_id"]);
}

#[tokio::test]
async fn a_slot_that_comes_back_with_a_result_gets_nothing_from_a_paused_pool() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    rig.submit_text("y").await;
    pause(&rig, "").await;
    // What runs goes on to its end.
    worker.send(crate::support::heartbeat(&lease)).await;
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    rig.until(&job, "succeeded").await;
    worker.silent(MOMENT).await;
    resume(&rig).await;
    worker.lease().await;
}

#[tokio::test]
async fn a_retry_that_becomes_due_waits_for_its_paused_pool() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    pause(&rig, "").await;
    let failed = failure(&lease, "execution_failed", "retryable");
    worker.send(failed).await;
    worker.ack(&lease).await;
    rig.until(&job, "retry_wait").await;
    rig.pass(5 * SECOND).await;
    worker.silent(MOMENT).await;
    // The owner's wish for an attempt now does not undo the pause either.
    assert_eq!(
        rig.post(&format!("/v1/jobs/{job}/retry"), "").await.status,
        StatusCode::OK
    );
    worker.silent(MOMENT).await;
    resume(&rig).await;
    assert_eq!(worker.lease().await["job_id"], job);
}

#[tokio::test]
async fn a_pause_says_since_when_and_why_and_outlives_the_gate() {
    let rig = Rig::start().await;
    let paused = pause(&rig, json!({"reason": "new disk"})).await.json();
    assert_eq!(paused["paused"], true);
    assert_eq!(paused["pause_reason"], "new disk");
    let since = paused["paused_since"].clone();
    rig.pass(5 * SECOND).await;
    let again = pause(&rig, "").await.json();
    assert_eq!(
        (&again["paused_since"], &again["pause_reason"]),
        (&since, &json!("new disk"))
    );
    let rig = rig.restart().await;
    let kept = pool(&rig, "coding").await;
    assert_eq!(
        (&kept["paused"], &kept["paused_since"]),
        (&json!(true), &since)
    );
    assert_eq!(pool(&rig, "other").await["paused"], false);
    let mut worker = rig.connect(0).await;
    rig.submit_text("x").await;
    worker.silent(MOMENT).await;
    let resumed = resume(&rig).await;
    assert_eq!(
        (&resumed["paused"], resumed.get("pause_reason")),
        (&json!(false), None)
    );
    assert_eq!(resume(&rig).await["paused"], false);
    worker.lease().await;
}

#[tokio::test]
async fn the_list_counts_slots_and_jobs() {
    let rig = Rig::start().await;
    rig.submit_text("x").await;
    rig.submit_text("y").await;
    let mut worker = rig.connect(0).await;
    worker.lease().await;
    let coding = pool(&rig, "coding").await;
    for (field, count) in [
        ("slots", 2),
        ("connected", 1),
        ("working", 1),
        ("refusing", 0),
        ("ready", 1),
        ("retrying", 0),
        ("leased", 1),
    ] {
        assert_eq!(coding[field], count, "{field}: {coding}");
    }
    assert_eq!(coding["oldest_ready_at"], "2026-01-01T00:00:00Z");
    let other = pool(&rig, "other").await;
    assert_eq!((&other["slots"], &other["ready"]), (&json!(1), &json!(0)));
    assert!(other.get("oldest_ready_at").is_none());
}

#[tokio::test]
async fn what_is_no_pool_or_no_reason_changes_nothing() {
    let rig = Rig::start().await;
    for path in [
        "/v1/pools/nobody/pause",
        "/v1/pools/nobody/resume",
        "/v1/pools/A%2Fb/pause",
    ] {
        let reply = rig.post(path, "").await;
        assert_eq!(
            (reply.status, reply.code()),
            (StatusCode::NOT_FOUND, "pool_not_found".into())
        );
    }
    let long = json!({"reason": "x".repeat(201)}).to_string();
    for body in [
        "[]",
        "{\"reason\":7}",
        "{\"reason\":null}",
        "{\"reason\":\"\"}",
        "{\"reason\":\"a\\nb\"}",
        "{\"reason\":\"a\",\"reason\":\"b\"}",
        "{\"until\":\"tomorrow\"}",
        "{\"reason\":\"a\"} x",
        &long,
    ] {
        let reply = pause(&rig, body).await;
        assert_eq!(
            reply.status,
            StatusCode::BAD_REQUEST,
            "{body}: {}",
            reply.body
        );
        assert_eq!(reply.code(), "invalid_request");
    }
    let reply = pause(&rig, "x".repeat(5000)).await;
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
    let reply = rig
        .post("/v1/pools/coding/resume", "{\"reason\":\"a\"}")
        .await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(pool(&rig, "coding").await["paused"], false);
    assert_eq!(pause(&rig, "{}").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_pool_that_left_the_configuration_can_still_be_resumed() {
    let rig = Rig::start().await;
    rig.post("/v1/pools/other/pause", "").await;
    let rig = rig
        .restart_with(|config| {
            config["workers"].as_array_mut().unwrap().pop();
        })
        .await;
    assert_eq!(pool(&rig, "other").await["slots"], 0);
    let resumed = rig.post("/v1/pools/other/resume", "").await;
    assert_eq!(resumed.status, StatusCode::OK);
    let gone = rig.post("/v1/pools/other/resume", "").await;
    assert_eq!(gone.code(), "pool_not_found");
}

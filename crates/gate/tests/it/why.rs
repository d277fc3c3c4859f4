//! Why a job has not started, for every reason of the list.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Rig, failure};

async fn waiting(rig: &Rig, job: &str) -> Value {
    rig.job(job).await["waiting"].clone()
}

/// The reason and the words of it.
async fn told(rig: &Rig, job: &str) -> (String, String) {
    let waiting = waiting(rig, job).await;
    let text = |field: &str| waiting[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

async fn is(rig: &Rig, job: &str, reason: &str, message: &str) {
    let told = told(rig, job).await;
    assert_eq!((told.0.as_str(), told.1.as_str()), (reason, message));
}

#[tokio::test]
async fn nobody_is_connected() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    is(
        &rig,
        &job,
        "no_worker_connected",
        "no Worker of pool `coding` is connected (2 slots configured)",
    )
    .await;
    let _other = rig
        .try_connect("worker_id=worker-2&slot=0", "other-token-canary", &[])
        .await
        .unwrap();
    assert_eq!(told(&rig, &job).await.0, "no_worker_connected");
}

#[tokio::test]
async fn nobody_is_configured() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let rig = rig
        .restart_with(|config| {
            config["default_pool"] = json!("other");
            config["repositories"] = json!([]);
            config["workers"].as_array_mut().unwrap().remove(0);
        })
        .await;
    is(
        &rig,
        &job,
        "no_worker_configured",
        "no Worker of the Gate's configuration is in pool `coding`",
    )
    .await;
}

#[tokio::test]
async fn all_slots_are_busy_and_others_come_first() {
    let rig = Rig::start().await;
    let mut worker = rig.connect(0).await;
    let running = rig.submit_text("x").await;
    worker.lease().await;
    let next = rig.submit_text("y").await;
    // Of two that are as old as each other the id decides.
    rig.clock.advance(Duration::from_secs(1));
    let after = rig.submit_text("z").await;
    let mut urgent = json!({"input": "u", "priority": 5});
    is(
        &rig,
        &next,
        "slots_busy",
        "the only connected slot of pool `coding` has a job; this job is next",
    )
    .await;
    rig.post("/v1/jobs", &urgent).await;
    let said = waiting(&rig, &after).await;
    assert_eq!(said["ahead"], 2, "{said}");
    is(
        &rig,
        &after,
        "slots_busy",
        "the only connected slot of pool `coding` has a job; 2 jobs come before this one",
    )
    .await;
    let mut second = rig.connect(1).await;
    second.lease().await;
    urgent["priority"] = json!(-5);
    let last = rig.post("/v1/jobs", &urgent).await.json();
    is(
        &rig,
        last["id"].as_str().unwrap(),
        "slots_busy",
        "all 2 connected slots of pool `coding` have a job; 2 jobs come before this one",
    )
    .await;
    assert_eq!(waiting(&rig, &running).await, Value::Null, "it runs");
}

#[tokio::test]
async fn the_pool_is_paused() {
    let rig = Rig::start().await;
    let _idle = rig.connect(0).await;
    let paused = json!({"reason": "the disk is swapped"});
    rig.post("/v1/pools/coding/pause", paused).await;
    let job = rig.submit_text("x").await;
    is(
        &rig,
        &job,
        "pool_paused",
        "pool `coding` is paused since 2026-01-01 00:00:00Z: the disk is swapped",
    )
    .await;
    let said = waiting(&rig, &job).await;
    assert_eq!(
        (&said["since"], &said["ahead"]),
        (&json!("2026-01-01T00:00:00Z"), &json!(0))
    );
}

#[tokio::test]
async fn the_next_attempt_is_not_due() {
    let rig = Rig::start_with(|config| config["lifecycle"]["retry_base"] = json!("1m")).await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "execution_failed", "retryable"))
        .await;
    worker.ack(&lease).await;
    is(
        &rig,
        &job,
        "next_attempt",
        "the next attempt is due at 2026-01-01 00:01:00Z; the last one ended as `execution_failed`",
    )
    .await;
    assert_eq!(waiting(&rig, &job).await["until"], "2026-01-01T00:01:00Z");
    rig.pass(Duration::from_secs(61)).await;
    worker.lease().await;
    drop(worker);
    rig.pass(Duration::from_secs(31)).await;
    rig.until(&job, "retry_wait").await;
    let (_, message) = told(&rig, &job).await;
    assert!(
        message.ends_with("; the last one lost its Worker"),
        "{message}"
    );
}

#[tokio::test]
async fn the_gate_stops() {
    let mut rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    rig.stop().await;
    is(&rig, &job, "gate_stopping", "the Gate is stopping").await;
}

#[tokio::test]
async fn a_job_that_has_ended_waits_for_nothing() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    assert_eq!(rig.job(&job).await.get("waiting"), None);
    let short = rig.get(&format!("/v1/jobs/{job}/status")).await.json();
    assert_eq!(short.get("waiting"), None);
}

/// A slot with job control, which can say that it takes no work.
async fn refusing(rig: &Rig, slot: u16, reason: &str) -> crate::support::Peer {
    let query = format!("worker_id=worker-1&slot={slot}&control_version=job_control%2Fv1");
    let mut peer = rig
        .try_connect(&query, crate::support::WORKER, &[])
        .await
        .unwrap();
    peer.send(json!({"type": "ready", "accepting": false, "reason": reason}))
        .await;
    peer
}

/// Asks until a job has a reason, or fails with the last one.
async fn until(rig: &Rig, job: &str, reason: &str) -> String {
    let deadline = cli_shell::clock::instant() + crate::support::PATIENCE;
    loop {
        let (found, message) = told(rig, job).await;
        if found == reason {
            return message;
        }
        assert!(cli_shell::clock::instant() < deadline, "{found}: {message}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn every_connected_slot_takes_no_work() {
    let rig = Rig::start().await;
    let one = refusing(&rig, 0, "disk_low").await;
    let two = refusing(&rig, 1, "draining").await;
    let refused = async |slot: &str, reason: &str| {
        let worker = rig.get(&format!("/v1/workers/{slot}")).await.json();
        worker["refuses"]["reason"] == reason && worker["state"] == reason
    };
    let both = async {
        while !(refused("worker-1", "disk_low").await && refused("worker-1%231", "draining").await)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, both)
        .await
        .unwrap();
    let job = rig.submit_text("x").await;
    let said = until(&rig, &job, "workers_refuse").await;
    assert_eq!(
        said,
        "every connected slot of pool `coding` takes no work: 1 low on disk space, 1 draining"
    );
    let pools = rig.get("/v1/pools").await.json();
    assert_eq!(pools["items"][0]["refusing"], 2, "{pools}");
    let metrics = rig.get("/metrics").await.body;
    let metrics = crate::openmetrics::check(&metrics).unwrap();
    for state in ["disk_low", "draining"] {
        let series = format!("forge_gate_slots{{pool=\"coding\",state=\"{state}\"}}");
        assert!((metrics.value(&series) - 1.0).abs() < 1e-9);
    }
    // The last word stays when both have left.
    drop((one, two));
    let said = until(&rig, &job, "no_worker_connected").await;
    assert!(
        said.contains("` left ") && said.ends_with(" at 2026-01-01 00:00:00Z"),
        "{said}"
    );
}

#[tokio::test]
async fn a_slot_that_takes_work_counts_beside_one_that_does_not() {
    let rig = Rig::start().await;
    let mut works = rig.connect(0).await;
    let _refuses = refusing(&rig, 1, "paused").await;
    rig.submit_text("x").await;
    works.lease().await;
    let job = rig.submit_text("y").await;
    let wanted = "the only slot of pool `coding` that takes work has a job; this job is next; \
                  others take none: 1 paused at the Worker";
    let deadline = cli_shell::clock::instant() + crate::support::PATIENCE;
    while until(&rig, &job, "slots_busy").await != wanted {
        assert!(
            cli_shell::clock::instant() < deadline,
            "{:?}",
            told(&rig, &job).await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A slot with job control that has not answered the first ping.
async fn greeting(rig: &Rig, slot: u16) -> crate::support::Peer {
    let query = format!("worker_id=worker-1&slot={slot}&control_version=job_control%2Fv1");
    let token = crate::support::WORKER;
    let mut peer = rig.try_connect(&query, token, &[]).await.unwrap();
    assert_eq!(peer.receive().await["type"], "ping");
    peer
}

/// The state of the first slot, as each of the answers has it.
async fn shown(rig: &Rig, state: &str) {
    let worker = rig.get("/v1/workers/worker-1").await.json();
    assert_eq!(worker["state"], state, "{worker}");
    let pools = rig.get("/v1/pools").await.json();
    let pool = &pools["items"][0];
    for one in ["stopping", "greeting"] {
        assert_eq!(pool[one], u8::from(one == state), "{pool}");
    }
    let metrics = rig.get("/metrics").await.body;
    let metrics = crate::openmetrics::check(&metrics).unwrap();
    for one in ["stopping", "greeting", "idle"] {
        let series = format!("forge_gate_slots{{pool=\"coding\",state=\"{one}\"}}");
        let wanted = f64::from(u8::from(one == state));
        assert!((metrics.value(&series) - wanted).abs() < 1e-9, "{one}");
    }
}

#[tokio::test]
async fn a_slot_in_its_greeting_or_that_stops_an_attempt_is_not_free() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = greeting(&rig, 0).await;
    shown(&rig, "greeting").await;
    is(
        &rig,
        &job,
        "slots_busy",
        "no slot of pool `coding` is free: 1 connected and still in its greeting; \
         this job is next",
    )
    .await;
    worker.send(json!({"type": "pong", "n": 1})).await;
    let lease = worker.lease().await;
    shown(&rig, "working").await;
    rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    assert_eq!(worker.receive().await["type"], "cancel");
    let next = rig.submit_text("y").await;
    shown(&rig, "stopping").await;
    is(
        &rig,
        &next,
        "slots_busy",
        "no slot of pool `coding` is free: 1 stopping an attempt that has ended; this job is next",
    )
    .await;
    let mut other = rig.connect(1).await;
    other.lease().await;
    let third = rig.submit_text("z").await;
    is(
        &rig,
        &third,
        "slots_busy",
        "no slot of pool `coding` is free: 1 with a job, 1 stopping an attempt that has ended; \
         this job is next",
    )
    .await;
    let gone =
        json!({"type": "cancelled", "job_id": lease["job_id"], "attempt_id": lease["attempt_id"]});
    worker.send(gone).await;
    let lease = worker.lease().await;
    assert_eq!(lease["job_id"], third.as_str());
    worker
        .send(crate::support::text_result(&lease, "done"))
        .await;
    worker.ack(&lease).await;
    shown(&rig, "idle").await;
}

//! Live activity as a Worker sends it and as the owner sees it.

use std::time::Duration;

use gate::{MAX_ATTEMPTS, Performer, Recorded};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::{Peer, Rig, WORKER, about, candidate, coding, evidence, failure, heartbeat};

const SECOND: Duration = Duration::from_secs(1);
const OFFER: &str = "activity_version=live_activity%2Fv1";

async fn offering(rig: &Rig, slot: u16) -> Peer {
    let query = format!("worker_id=worker-1&slot={slot}&{OFFER}");
    rig.try_connect(&query, WORKER, &[]).await.unwrap()
}

/// Connects as soon as the Gate has noticed that the last session is gone.
async fn reconnect(rig: &Rig, query: &str) -> Peer {
    let connect = async {
        loop {
            match rig.try_connect(query, WORKER, &[]).await {
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

/// A Gate, a job, and the Worker that has it under a lease that selected activity.
async fn leased() -> (Rig, String, Peer, Value) {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = offering(&rig, 1).await;
    let lease = worker.lease().await;
    assert_eq!(lease["activity_version"], "live_activity/v1");
    (rig, job, worker, lease)
}

fn activity(lease: &Value, sequence: u32, stage: &str) -> Value {
    about(
        lease,
        json!({
            "type": "activity",
            "activity_version": "live_activity/v1",
            "activity": {"sequence": sequence, "stage": stage},
            "worker_id": "worker-1",
        }),
    )
}

/// The stages that the job object shows.
async fn stages(rig: &Rig, job: &str) -> Vec<String> {
    let job = rig.job(job).await;
    let events = job["attempts"][0]["activity"].as_array();
    let stage = |event: &Value| event["stage"].as_str().unwrap().to_owned();
    events.into_iter().flatten().map(stage).collect()
}

/// Waits until the job object shows this many stages.
async fn until_stages(rig: &Rig, job: &str, count: usize) -> Vec<String> {
    let wait = async {
        loop {
            let stages = stages(rig, job).await;
            if stages.len() >= count {
                return stages;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, wait)
        .await
        .unwrap()
}

#[tokio::test]
async fn selected_activity_is_stamped_and_shown_on_the_running_attempt() {
    let (rig, job, mut worker, lease) = leased().await;
    let seen = rig.job(&job).await;
    assert_eq!(seen["attempts"][0]["activity"], json!([]));
    rig.clock.advance(SECOND);
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    rig.clock.advance(SECOND);
    // A stage may be skipped.
    worker.send(activity(&lease, 2, "testing")).await;
    until_stages(&rig, &job, 2).await;
    let seen = rig.job(&job).await;
    let event = |sequence: u64, stage: &str, at: &str| {
        json!({
            "run_id": job,
            "attempt_id": lease["attempt_id"],
            "attempt_ordinal": 1,
            "worker_id": "worker-1#1",
            "sequence": sequence,
            "stage": stage,
            "received_at": at,
        })
    };
    assert_eq!(
        seen["attempts"],
        json!([{
            "id": lease["attempt_id"],
            "ordinal": 1,
            "worker_id": "worker-1#1",
            "status": "leased",
            "activity": [
                event(1, "analyzing", "2026-01-01T00:00:01Z"),
                event(2, "testing", "2026-01-01T00:00:02Z"),
            ],
        }])
    );
    assert!(seen.get("subagent_telemetry").is_none());
    let listed = rig.get("/v1/jobs").await.json();
    assert_eq!(listed["items"][0]["attempts"], seen["attempts"]);
}

#[tokio::test]
async fn activity_is_selected_only_where_exactly_it_was_offered() {
    let rig = Rig::start().await;
    for offer in [
        "",
        "&activity_version=",
        "&activity_version=live_activity%2Fv2",
        "&activity_version=LIVE_ACTIVITY%2FV1",
        "&activity_version=live_activity%2Fv1%20",
        "&activity=live_activity%2Fv1",
        "&control_version=live_activity%2Fv1",
    ] {
        let job = rig.submit_coding().await;
        let query = format!("worker_id=worker-1&slot=0{offer}");
        let mut worker = reconnect(&rig, &query).await;
        let lease = worker.lease().await;
        assert!(lease.get("activity_version").is_none(), "{offer}: {lease}");
        worker.send(activity(&lease, 1, "analyzing")).await;
        worker.refused().await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["attempts"][0]["activity"], json!([]), "{offer}");
        rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    }
}

#[tokio::test]
async fn activity_out_of_order_or_of_another_attempt_is_refused_and_changes_nothing() {
    let other = "c".repeat(32);
    let strangers = [
        ("a gap", 3, "testing", None),
        ("the same number", 1, "testing", None),
        ("number 0", 0, "testing", None),
        ("number 5", 5, "testing", None),
        ("number 256", 256, "testing", None),
        ("the same stage", 2, "editing", None),
        ("an earlier stage", 2, "analyzing", None),
        ("a stage of the plugin", 2, "finalizing", None),
        (
            "another job",
            2,
            "testing",
            Some(("job_id", other.as_str())),
        ),
        (
            "another attempt",
            2,
            "testing",
            Some(("attempt_id", &other)),
        ),
        (
            "the slot's id",
            2,
            "testing",
            Some(("worker_id", "worker-1#1")),
        ),
        (
            "another Worker",
            2,
            "testing",
            Some(("worker_id", "worker-2")),
        ),
    ];
    let rig = Rig::start().await;
    for (what, sequence, stage, named) in strangers {
        let job = rig.submit_coding().await;
        let query = format!("worker_id=worker-1&slot=1&{OFFER}");
        let mut worker = reconnect(&rig, &query).await;
        let lease = worker.lease().await;
        worker.send(activity(&lease, 1, "editing")).await;
        let shown = until_stages(&rig, &job, 1).await;
        assert_eq!(shown, ["editing"], "{what}");
        let mut stranger = activity(&lease, sequence, stage);
        if let Some((field, value)) = named {
            stranger[field] = json!(value);
        }
        worker.send(stranger).await;
        worker.refused().await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["status"], "leased", "{what}");
        rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    }
}

#[tokio::test]
async fn a_fifth_event_and_one_after_the_acknowledgement_are_refused() {
    let (rig, job, mut worker, lease) = leased().await;
    let all = ["analyzing", "editing", "testing", "preparing_result"];
    for (sequence, stage) in (1..).zip(all) {
        worker.send(activity(&lease, sequence, stage)).await;
    }
    assert_eq!(until_stages(&rig, &job, 4).await, all);
    worker.send(activity(&lease, 5, "preparing_result")).await;
    worker.refused().await;

    let (rig, job, mut worker, lease) = leased().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    worker.send(failure(&lease, "execution_failed", "")).await;
    worker.ack(&lease).await;
    assert_eq!(rig.state.live_activity().attempts(), 0);
    worker.send(activity(&lease, 2, "editing")).await;
    worker.refused().await;
    assert!(stages(&rig, &job).await.is_empty());
    assert_eq!(rig.state.live_activity().attempts(), 0);
}

#[tokio::test]
async fn activity_ends_with_its_job_and_leaves_no_trace_in_result_events_or_database() {
    let (rig, job, mut worker, lease) = leased().await;
    for (sequence, stage) in (1..).zip(["analyzing", "editing", "testing", "preparing_result"]) {
        worker.send(activity(&lease, sequence, stage)).await;
    }
    until_stages(&rig, &job, 4).await;
    let attempt = lease["attempt_id"].as_str().unwrap().to_owned();
    let records = format!("/v1/jobs/{job}/attempts/{attempt}/evidence");
    assert_eq!(rig.get(&records).await.json(), json!([]));
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    // It runs on until the result.
    assert_eq!(stages(&rig, &job).await.len(), 4);
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
    assert_eq!(rig.state.live_activity().attempts(), 0);
    let id = &job;
    for path in ["", "/status", "/result", "/events"] {
        let answer = rig.get(&format!("/v1/jobs/{id}{path}")).await.body;
        for word in ["activity", "analyzing", "editing", "preparing_result"] {
            assert!(!answer.contains(word), "{path}: {answer}");
        }
    }
    assert_eq!(rig.get(&records).await.json().as_array().unwrap().len(), 1);
    for entry in std::fs::read_dir(rig.dir.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for word in ["live_activity", "analyzing", "editing", "preparing_result"] {
            let found = bytes.windows(word.len()).any(|at| at == word.as_bytes());
            assert!(!found, "`{}` holds {word}", path.display());
        }
    }
}

#[tokio::test]
async fn activity_is_gone_after_a_disconnect_while_the_lease_runs_on() {
    let (rig, job, mut worker, lease) = leased().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    drop(worker);
    reconnect(&rig, "worker_id=worker-1&slot=1").await;
    let seen = rig.job(&job).await;
    assert_eq!(seen["status"], "leased");
    assert_eq!(seen["attempts"][0]["activity"], json!([]));
    assert_eq!(rig.state.live_activity().attempts(), 0);
}

#[tokio::test]
async fn activity_is_gone_at_the_deadline_that_heartbeats_have_moved() {
    let (rig, job, mut worker, lease) = leased().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    rig.clock.advance(20 * SECOND);
    worker.send(heartbeat(&lease)).await;
    worker.send(activity(&lease, 2, "editing")).await;
    until_stages(&rig, &job, 2).await;
    // 45 s after the lease, which was for 30 s, and 25 s after the heartbeat.
    rig.clock.advance(25 * SECOND);
    assert_eq!(stages(&rig, &job).await, ["analyzing", "editing"]);
    worker.send(activity(&lease, 3, "testing")).await;
    until_stages(&rig, &job, 3).await;
    rig.pass(5 * SECOND).await;
    rig.until(&job, "retry_wait").await;
    assert!(stages(&rig, &job).await.is_empty());
    assert_eq!(rig.state.live_activity().attempts(), 0);
    worker.send(activity(&lease, 4, "preparing_result")).await;
    worker.refused().await;
    assert_eq!(rig.state.live_activity().attempts(), 0);
}

#[tokio::test]
async fn activity_past_the_deadline_is_not_shown_even_before_the_lease_is_swept() {
    let rig = Rig::start_with(|config| {
        config["recovery_interval"] = json!("30s");
        config["lease_poll_interval"] = json!("1m");
    })
    .await;
    let job = rig.submit_coding().await;
    let mut worker = offering(&rig, 0).await;
    let lease = worker.lease().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    // The timekeeper sleeps 30 real seconds and does not see this.
    rig.clock.advance(30 * SECOND);
    let seen = rig.job(&job).await;
    assert_eq!(seen["status"], "leased");
    assert_eq!(seen["attempts"][0]["activity"], json!([]));
    worker.send(activity(&lease, 2, "editing")).await;
    worker.refused().await;
    assert_eq!(rig.state.live_activity().attempts(), 0);
}

#[tokio::test]
async fn a_cancelled_job_shows_no_activity_and_takes_no_more() {
    let (rig, job, mut worker, lease) = leased().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    let cancelled = rig.post(&format!("/v1/jobs/{job}/cancel"), "").await.json();
    assert!(cancelled.get("attempts").is_none(), "{cancelled}");
    assert_eq!(rig.state.live_activity().attempts(), 0);
    // The Worker has not heard of it.
    worker.send(activity(&lease, 2, "editing")).await;
    worker.refused().await;
    assert!(stages(&rig, &job).await.is_empty());
    assert_eq!(rig.state.live_activity().attempts(), 0);
}

#[tokio::test]
async fn the_1025th_attempt_shows_nothing_and_keeps_its_connection() {
    let (rig, job, mut worker, lease) = leased().await;
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let deadline = now + SignedDuration::from_secs(3600);
    let event = forge_domain::Activity {
        sequence: 1,
        stage: forge_domain::Stage::Editing,
    };
    let foreign = |number: usize| Performer {
        job: format!("{number:032x}").parse().unwrap(),
        attempt: format!("{number:032x}").parse().unwrap(),
        ordinal: 1,
        slot: "worker-2".parse().unwrap(),
    };
    let live = rig.state.live_activity();
    for number in 0..MAX_ATTEMPTS {
        let recorded = live.record(&foreign(number), event, deadline, now);
        assert_eq!(recorded, Recorded::Shown);
    }
    worker.send(activity(&lease, 1, "analyzing")).await;
    worker.send(evidence(&lease)).await;
    worker.ack(&lease).await;
    assert_eq!((live.attempts(), live.dropped()), (MAX_ATTEMPTS, 1));
    assert!(stages(&rig, &job).await.is_empty());
    // Where there is place again, the attempt goes on where it is.
    live.forget(&foreign(7).attempt);
    worker.send(activity(&lease, 2, "testing")).await;
    assert_eq!(until_stages(&rig, &job, 1).await, ["testing"]);
    worker.send(candidate(&lease)).await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn a_second_attempt_starts_without_the_activity_of_the_first() {
    let (rig, job, mut worker, first) = leased().await;
    worker.send(activity(&first, 1, "testing")).await;
    until_stages(&rig, &job, 1).await;
    worker.send(failure(&first, "execution_failed", "")).await;
    worker.ack(&first).await;
    rig.pass(2 * SECOND).await;
    let second = worker.lease().await;
    assert_eq!(second["job_id"], first["job_id"]);
    let seen = rig.job(&job).await;
    assert_eq!(seen["attempts"][0]["activity"], json!([]));
    worker.send(activity(&second, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    let seen = rig.job(&job).await;
    let event = &seen["attempts"][0]["activity"][0];
    assert_eq!(event["attempt_id"], second["attempt_id"]);
    assert_eq!(event["attempt_ordinal"], 2);
}

#[tokio::test]
async fn a_restarted_gate_remembers_no_activity() {
    let (rig, job, mut worker, lease) = leased().await;
    worker.send(activity(&lease, 1, "analyzing")).await;
    until_stages(&rig, &job, 1).await;
    drop(worker);
    let rig = rig.restart().await;
    let seen = rig.job(&job).await;
    assert_eq!(seen["status"], "leased");
    assert_eq!(seen["attempts"][0]["activity"], json!([]));
    let again = rig.post("/v1/jobs", coding()).await;
    assert_eq!(again.status, 201);
}

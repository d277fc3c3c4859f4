//! What a Gate must survive, named after the rows of docs/conformance/scenarios.md.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    PATIENCE, Peer, Rig, WORKER, about, candidate, config_in, evidence, failure, heartbeat,
    text_result,
};

/// Four Workers with fifty slots each.
async fn two_hundred_slots() -> (Rig, JoinSet<Peer>) {
    let names: Vec<String> = (1..=4).map(|number| format!("many-{number}")).collect();
    let rig = Rig::start_with(|config| {
        let folder = config["owner_token_file"].as_str().unwrap();
        let folder = std::path::Path::new(folder).parent().unwrap().to_owned();
        let workers = names.iter().map(|name| {
            let token = folder.join(name);
            std::fs::write(&token, format!("token-of-{name}")).unwrap();
            json!({"id": name, "pool": "coding", "token_file": token, "concurrency": 50})
        });
        config["workers"] = workers.collect();
    })
    .await;
    let slots = connect_all(&rig).await;
    (rig, slots)
}

async fn connect_all(rig: &Rig) -> JoinSet<Peer> {
    let mut slots = JoinSet::new();
    for number in 1..=4 {
        let name = format!("many-{number}");
        for slot in 0..50 {
            let query = format!("worker_id={name}&slot={slot}");
            let token = format!("token-of-{name}");
            let peer = rig.try_connect(&query, &token, &[]).await.unwrap();
            slots.spawn(async { peer });
        }
    }
    slots
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r11_two_hundred_connected_slots_and_each_job_has_one_of_them() {
    let (rig, mut connected) = two_hundred_slots().await;
    let mut waiting: JoinSet<(Value, Peer)> = JoinSet::new();
    while let Some(peer) = connected.join_next().await {
        let mut peer = peer.unwrap();
        waiting.spawn(async move { (peer.receive().await, peer) });
    }
    // One job wakes one slot, however many wait.
    let first = rig.submit_text("first").await;
    let (lease, holder) = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(lease["job_id"], first.as_str());
    let another = tokio::time::timeout(Duration::from_millis(200), waiting.join_next()).await;
    assert!(another.is_err(), "a second lease for one job");

    let mut expected = BTreeSet::new();
    for _ in 0..199 {
        expected.insert(rig.submit_text("more").await);
    }
    let mut leased = BTreeSet::new();
    let mut attempts = BTreeSet::from([lease["attempt_id"].to_string()]);
    let mut peers = vec![holder];
    while let Some(answer) = waiting.join_next().await {
        let (lease, peer) = answer.unwrap();
        assert!(leased.insert(lease["job_id"].as_str().unwrap().to_owned()));
        assert!(attempts.insert(lease["attempt_id"].to_string()));
        peers.push(peer);
    }
    assert_eq!(leased, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r26_slots_that_come_back_after_a_restart_get_no_job_that_is_still_leased() {
    let (rig, mut connected) = two_hundred_slots().await;
    for _ in 0..200 {
        rig.submit_text("x").await;
    }
    let mut leased = BTreeSet::new();
    while let Some(peer) = connected.join_next().await {
        let lease = peer.unwrap().lease().await;
        leased.insert(lease["attempt_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(leased.len(), 200);

    let rig = rig.restart().await;
    let mut again = connect_all(&rig).await;
    let mut waiting: JoinSet<Peer> = JoinSet::new();
    while let Some(peer) = again.join_next().await {
        let mut peer = peer.unwrap();
        waiting.spawn(async move {
            peer.silent(Duration::from_millis(300)).await;
            peer
        });
    }
    while let Some(silent) = waiting.join_next().await {
        drop(silent.unwrap());
    }
    let mut still = BTreeSet::new();
    let mut path = "/v1/jobs?status=leased&limit=100".to_owned();
    loop {
        let page = rig.get(&path).await.json();
        let jobs = page["items"].as_array().unwrap();
        still.extend(
            jobs.iter()
                .map(|job| job["attempt_id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/jobs?status=leased&limit=100&cursor={cursor}");
    }
    assert_eq!(still, leased);
}

#[tokio::test]
async fn r12_a_lease_that_never_arrived_is_no_second_attempt() {
    let rig = Rig::start().await;
    let worker = rig.connect(0).await;
    let job = rig.submit_text("x").await;
    // The store has given it out; the Worker is cut off without having read a byte of it.
    let leased = rig.until(&job, "leased").await;
    drop(worker);
    let mut other = rig.connect(1).await;
    let mut again = reconnect(&rig).await;
    other.silent(Duration::from_millis(50)).await;
    again.silent(Duration::from_millis(50)).await;
    let seen = rig.job(&job).await;
    assert_eq!(seen["attempt_id"], leased["attempt_id"]);
    assert_eq!(seen["attempts"].as_array().unwrap().len(), 1, "{seen}");

    rig.pass(Duration::from_secs(31)).await;
    rig.pass(Duration::from_secs(2)).await;
    let lease = tokio::select! {
        lease = other.lease() => lease,
        lease = again.lease() => lease,
    };
    assert_ne!(lease["attempt_id"], leased["attempt_id"]);
    assert_eq!(rig.job(&job).await["attempts"][0]["ordinal"], 2);
}

/// Connects the first slot as soon as the Gate has noticed that its last session is gone.
async fn reconnect(rig: &Rig) -> Peer {
    let query = "worker_id=worker-1&slot=0";
    let connect = async {
        loop {
            match rig.try_connect(query, WORKER, &[]).await {
                Ok(peer) => return peer,
                Err(status) => assert_eq!(status, StatusCode::CONFLICT),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connect).await.unwrap()
}

#[tokio::test]
async fn r17_jobs_of_a_worker_repository_and_plugin_that_are_gone_are_still_shown() {
    let rig = Rig::start().await;
    let mut first = rig.connect(0).await;
    let done = rig.submit_coding().await;
    let lease = first.lease().await;
    let attempt = lease["attempt_id"].as_str().unwrap().to_owned();
    first.send(evidence(&lease)).await;
    first.ack(&lease).await;
    first.send(candidate(&lease)).await;
    first.ack(&lease).await;
    let failed = rig.submit_text("bad").await;
    let lease = first.lease().await;
    first
        .send(failure(&lease, "invalid_task", "terminal"))
        .await;
    first.ack(&lease).await;
    let text = rig.submit_text("good").await;
    let lease = first.lease().await;
    first.send(text_result(&lease, "output")).await;
    first.ack(&lease).await;
    let running = rig.submit_coding().await;
    first.lease().await;
    let pending = rig.submit_coding().await;
    drop(first);

    let rig = rig
        .restart_with(|config| {
            let workers = config["workers"].as_array_mut().unwrap();
            workers.retain(|worker| worker["id"] == "worker-2");
            config["repositories"] = json!([]);
            config["default_pool"] = json!("other");
            config["default_execution"]["plugin_id"] = json!("another");
        })
        .await;
    let mut paths: Vec<String> = [
        "/v1/jobs",
        "/v1/jobs?pool=coding",
        "/v1/jobs?repository_id=agent-forge",
        "/v1/jobs?status=leased",
        "/v1/workers",
        "/v1/workers/worker-1",
        "/v1/pools",
        "/metrics",
        "/readyz",
    ]
    .map(str::to_owned)
    .to_vec();
    for job in [&done, &failed, &text, &running, &pending] {
        for part in ["", "/status", "/events"] {
            paths.push(format!("/v1/jobs/{job}{part}"));
        }
    }
    for job in [&done, &failed, &text] {
        paths.push(format!("/v1/jobs/{job}/result"));
    }
    paths.push(format!("/v1/jobs/{text}/output"));
    paths.push(format!("/v1/jobs/{done}/attempts/{attempt}/evidence"));
    for path in &paths {
        let reply = rig.get(path).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.body);
    }
    let listed = rig.get("/v1/jobs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 5);
    let slots = rig.get("/v1/workers").await.json();
    assert!(slots["items"].as_array().unwrap().len() >= 2, "{slots}");

    // What the owner can do with a job needs nothing of it either.
    for (path, status) in [
        (format!("/v1/jobs/{running}/cancel"), StatusCode::OK),
        (format!("/v1/jobs/{pending}/cancel"), StatusCode::OK),
        (format!("/v1/jobs/{failed}/retry"), StatusCode::CREATED),
    ] {
        let reply = rig.post(&path, "").await;
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
    }
    // The next start checks every active row; the repeated job of the pool that is gone is one.
    let rig = rig.restart().await;
    assert_eq!(rig.get("/v1/jobs").await.status, StatusCode::OK);
}

#[tokio::test]
async fn r07_no_time_of_a_worker_counts() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(0).await;
    let text = worker.receive_text().await;
    let lease: Value = serde_json::from_str(&text).unwrap();
    // A lease names durations only: there is nothing that a clock could be compared with.
    for number in 2020..2040 {
        assert!(!text.contains(&format!("{number}-")), "{text}");
    }
    let granted = rig.job(&job).await["updated_at"].clone();
    assert!(granted.as_str().unwrap().starts_with("2026-01-01T00:00:00"));
    rig.clock.advance(Duration::from_secs(20));
    worker.send(heartbeat(&lease)).await;
    rig.clock.advance(Duration::from_secs(5));
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    let attempt = &result["attempts"][0];
    for (field, time) in [("leased_at", "00:00:00"), ("completed_at", "00:00:25")] {
        let seen = attempt[field].as_str().unwrap();
        assert!(
            seen.starts_with(&format!("2026-01-01T{time}")),
            "{field}: {seen}"
        );
    }
}

#[tokio::test]
async fn r07_a_worker_that_sends_a_time_is_refused() {
    for field in [
        "at",
        "time",
        "now",
        "deadline_at",
        "completed_at",
        "sent_at",
    ] {
        let rig = Rig::start().await;
        let job = rig.submit_text("x").await;
        let mut worker = rig.connect(0).await;
        let lease = worker.lease().await;
        let mut message = about(&lease, heartbeat(&lease));
        message[field] = json!("2036-01-01T00:00:00Z");
        worker.send(message).await;
        worker.refused().await;
        assert_eq!(rig.job(&job).await["status"], "leased", "{field}");
    }
}

#[tokio::test]
async fn r60_every_route_that_takes_a_body_refuses_unknown_and_duplicate_keys() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let cancel = format!("/v1/jobs/{job}/cancel");
    let retry = format!("/v1/jobs/{job}/retry");
    let pause = "/v1/pools/coding/pause";
    for (path, body) in [
        ("/v1/jobs", r#"{"input":"x","surprise":1}"#.to_owned()),
        ("/v1/jobs", r#"{"input":"x","input":"y"}"#.to_owned()),
        ("/v1/jobs", r#"{"input":"x","\u0069nput":"y"}"#.to_owned()),
        ("/v1/jobs", r#"{"input":"x","Input":"y"}"#.to_owned()),
        ("/v1/jobs", r#"{"input":"x","source_ref":null}"#.to_owned()),
        (
            "/v1/jobs",
            format!("{}\"x\"{}", "[".repeat(100_000), "]".repeat(100_000)),
        ),
        (&cancel, r#"{"reason":"x"}"#.to_owned()),
        (&cancel, r#"{"a":1,"a":1}"#.to_owned()),
        (&cancel, " ".repeat(10_000_000)),
        (&retry, r#"{"surprise":{}}"#.to_owned()),
        (&retry, "[]".to_owned()),
        (pause, r#"{"reason":"x","until":"tomorrow"}"#.to_owned()),
        (pause, r#"{"reason":"x","re\u0061son":"y"}"#.to_owned()),
        (
            pause,
            format!("{{\"reason\":\"{}\"}}", "x".repeat(10_000_000)),
        ),
        ("/v1/pools/coding/resume", r#"{"reason":"x"}"#.to_owned()),
    ] {
        let shown: String = body.chars().take(40).collect();
        let reply = rig.post(path, body).await;
        assert!(
            reply.status.is_client_error(),
            "{path} {shown}: {} {}",
            reply.status,
            reply.body
        );
        assert!(
            reply.body.len() < 1_000,
            "{path} {shown}: the answer echoes the request"
        );
    }
    assert_eq!(rig.job(&job).await["status"], "pending");
    let pools = rig.get("/v1/pools").await.body;
    assert!(!pools.contains("\"paused\":true"), "{pools}");
    let listed = rig.get("/v1/jobs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

fn program(args: &[&str]) -> ExitCode {
    gate::main_from(["forge-gate"].iter().chain(args).map(OsString::from))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r24_the_program_copies_the_database_of_a_running_gate() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let file = rig.dir.path().join("gate.json");
    std::fs::write(&file, config_in(&rig.dir).to_string()).unwrap();
    let copy = rig.dir.path().join("copy.db");
    let args = [
        "--config",
        file.to_str().unwrap(),
        "--backup-to",
        copy.to_str().unwrap(),
    ];
    let code = |number| format!("{:?}", ExitCode::from(number));
    assert_eq!(format!("{:?}", program(&args)), code(0));
    assert_eq!(
        format!("{:?}", program(&args)),
        code(2),
        "a copy is never replaced"
    );
    assert_eq!(rig.job(&job).await["status"], "pending");

    // The Gate that starts on the copy has the job.
    let state = rig.dir.path().join("restored");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::rename(&copy, state.join("gate.db")).unwrap();
    let rig = rig
        .restart_with(|config| config["database"] = json!(state.join("gate.db")))
        .await;
    assert_eq!(rig.job(&job).await["status"], "pending");
}

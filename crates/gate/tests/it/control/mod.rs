//! Job control as a Worker sees it: greeting, readiness, and what is refused.

mod attach;
mod cancel;
mod pulse;

use std::time::Duration;

use gate::Pace;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{PATIENCE, Peer, Rig, WORKER, about, heartbeat, text_result};

const SECOND: Duration = Duration::from_secs(1);
/// Long enough to see that nothing comes.
const QUIET: Duration = Duration::from_millis(80);

fn offer(slot: u16) -> String {
    format!("worker_id=worker-1&slot={slot}&control_version=job_control%2Fv1")
}

/// Connects with the offer, as soon as the Gate has noticed that the last session is gone, and
/// hears the first ping.
async fn connect(rig: &Rig, slot: u16) -> Peer {
    let connect = async {
        loop {
            match rig.try_connect(&offer(slot), WORKER, &[]).await {
                Ok(peer) => return peer,
                Err(status) => assert_eq!(status, 409),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut worker = tokio::time::timeout(PATIENCE, connect).await.unwrap();
    let ping = worker.receive_text().await;
    assert_eq!(ping, "{\"type\":\"ping\",\"n\":1}\n");
    worker
}

/// Connects and answers the greeting.
async fn greeted(rig: &Rig, slot: u16) -> Peer {
    let mut worker = connect(rig, slot).await;
    worker.send(pong(1)).await;
    worker
}

/// A Gate, a text job, and the greeted Worker that has it.
async fn leased() -> (Rig, String, Peer, Value) {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    (rig, job, worker, lease)
}

fn pong(n: u64) -> Value {
    json!({"type": "pong", "n": n})
}

fn refuses(reason: &str) -> Value {
    json!({"type": "ready", "accepting": false, "reason": reason})
}

fn accepts() -> Value {
    json!({"type": "ready", "accepting": true})
}

fn attach(lease: &Value) -> Value {
    let token = lease["attach_token"].clone();
    about(lease, json!({"type": "attach", "attach_token": token}))
}

fn cancelled(lease: &Value) -> Value {
    about(lease, json!({"type": "cancelled"}))
}

fn decline(lease: &Value, reason: &str) -> Value {
    about(lease, json!({"type": "decline", "reason": reason}))
}

/// Expects the order to stop the attempt of a lease.
async fn told_to_stop(worker: &mut Peer, lease: &Value, reason: &str) {
    let expected = about(lease, json!({"type": "cancel", "reason": reason}));
    assert_eq!(worker.receive().await, expected);
}

/// The kinds of the entries of a job's journal.
async fn journal(rig: &Rig, job: &str) -> Vec<String> {
    let events = rig.get(&format!("/v1/jobs/{job}/events")).await.json();
    let kind = |entry: &Value| entry["kind"].as_str().unwrap().to_owned();
    events.as_array().unwrap().iter().map(kind).collect()
}

/// Waits until the journal of a job ends with an entry of this kind.
async fn until_journal(rig: &Rig, job: &str, last: &str) -> Vec<String> {
    let wait = async {
        loop {
            let kinds = journal(rig, job).await;
            if kinds.last().is_some_and(|kind| kind == last) {
                return kinds;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap()
}

/// Waits until the Gate shows a slot as having this state.
async fn until_slot(rig: &Rig, id: &str, field: &str, value: Value) {
    let wait = async {
        loop {
            let seen = rig.get(&format!("/v1/workers/{id}")).await.json();
            if seen[field] == value {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
}

#[tokio::test]
async fn the_gate_pings_first_and_no_lease_comes_before_the_pong() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = connect(&rig, 0).await;
    worker.silent(QUIET).await;
    assert_eq!(rig.job(&job).await["status"], "pending");
    worker.send(pong(1)).await;
    let lease = worker.lease().await;
    assert_eq!(lease["control_version"], "job_control/v1");
    let mut keys: Vec<_> = lease.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    let expected = [
        "attach_token",
        "attempt_id",
        "control_version",
        "input",
        "job_id",
        "policy",
        "type",
    ];
    assert_eq!(keys, expected);
    worker.send(heartbeat(&lease)).await;
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn every_lease_has_a_token_of_its_own_which_is_kept_nowhere() {
    let rig = Rig::start().await;
    let mut worker = greeted(&rig, 0).await;
    let mut tokens = std::collections::BTreeSet::new();
    for round in 0..6 {
        // Found waiting, claimed in the slot's name, and with the result before.
        rig.submit_text("x").await;
        let lease = worker.lease().await;
        tokens.insert(lease["attach_token"].as_str().unwrap().to_owned());
        if round % 2 == 0 {
            rig.submit_text("y").await;
        }
        worker.send(text_result(&lease, "done")).await;
        worker.ack(&lease).await;
        if round % 2 == 0 {
            let next = worker.lease().await;
            tokens.insert(next["attach_token"].as_str().unwrap().to_owned());
            worker.send(text_result(&next, "done")).await;
            worker.ack(&next).await;
        }
    }
    assert_eq!(tokens.len(), 9);
    for name in ["gate.db", "gate.db-wal"] {
        let bytes = std::fs::read(rig.dir.path().join("state").join(name)).unwrap();
        for token in &tokens {
            let found = bytes.windows(32).any(|window| window == token.as_bytes());
            assert!(!found, "a token is in {name}");
        }
    }
}

#[tokio::test]
async fn an_original_worker_hears_nothing_of_it() {
    let rig = Rig::start().await;
    rig.state.set_pace(Pace {
        ping: Duration::from_millis(5),
        pong: Duration::from_millis(10),
        stop: Duration::from_millis(10),
    });
    for query in [
        "worker_id=worker-1&slot=0",
        "worker_id=worker-1&slot=1&control_version=job_control%2Fv2",
    ] {
        let mut worker = rig.try_connect(query, WORKER, &[]).await.unwrap();
        worker.silent(QUIET).await;
        let job = rig.submit_text("x").await;
        let lease = worker.lease().await;
        assert!(lease.get("attach_token").is_none() && lease.get("control_version").is_none());
        worker.silent(QUIET).await;
        let stopped = rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
        assert_eq!(stopped.json()["status"], "cancelled");
        worker.silent(QUIET).await;
        // It learns of it as ever.
        worker.send(heartbeat(&lease)).await;
        worker.refused().await;
    }
}

#[tokio::test]
async fn an_original_worker_is_refused_what_it_did_not_offer() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut lease = Value::Null;
    for (round, message) in [
        pong(1),
        accepts(),
        refuses("draining"),
        json!({"type": "attach"}),
        json!({"type": "cancelled"}),
        json!({"type": "decline", "reason": "paused"}),
    ]
    .into_iter()
    .enumerate()
    {
        let query = format!("worker_id=worker-1&slot={}", u16::from(round > 0));
        let connected = async {
            loop {
                match rig.try_connect(&query, WORKER, &[]).await {
                    Ok(peer) => return peer,
                    Err(status) => assert_eq!(status, 409),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let mut worker = tokio::time::timeout(PATIENCE, connected).await.unwrap();
        if round == 0 {
            lease = worker.lease().await;
            lease["attach_token"] = json!("0".repeat(32));
        }
        let message = match message["type"].as_str().unwrap() {
            "attach" => attach(&lease),
            "cancelled" => cancelled(&lease),
            "decline" => decline(&lease, "paused"),
            _ => message,
        };
        worker.send(&message).await;
        worker.refused().await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["status"], "leased", "{message}");
        assert_eq!(seen["attempt_id"], lease["attempt_id"], "{message}");
    }
}

#[tokio::test]
async fn a_slot_that_refuses_gets_nothing_and_another_one_does() {
    let rig = Rig::start().await;
    let mut low = greeted(&rig, 0).await;
    for reason in ["disk_low", "paused", "draining"] {
        low.send(refuses(reason)).await;
        until_slot(&rig, "worker-1", "state", json!(reason)).await;
        let job = rig.submit_text(reason).await;
        low.silent(QUIET).await;
        assert_eq!(rig.job(&job).await["status"], "pending");
        rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    }
    let mut other = greeted(&rig, 1).await;
    let job = rig.submit_text("x").await;
    let lease = other.lease().await;
    assert_eq!(lease["job_id"], job.as_str());
    // A job that has waited is there at once when the slot takes work again.
    let second = rig.submit_text("y").await;
    low.silent(QUIET).await;
    low.send(accepts()).await;
    assert_eq!(low.lease().await["job_id"], second.as_str());
    until_slot(&rig, "worker-1", "state", json!("working")).await;
}

#[tokio::test]
async fn a_reason_that_was_said_before_the_pong_counts_too() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let mut worker = connect(&rig, 0).await;
    worker.send(refuses("draining")).await;
    worker.send(pong(1)).await;
    worker.silent(QUIET).await;
    assert_eq!(rig.job(&job).await["status"], "pending");
    // It is still told after the slot has left, until the slot comes again.
    drop(worker);
    until_slot(&rig, "worker-1", "connected", json!(false)).await;
    let seen = rig.get("/v1/workers/worker-1").await.json();
    assert_eq!(seen["refuses"]["reason"], "draining", "{seen}");
    let mut worker = greeted(&rig, 0).await;
    assert_eq!(worker.lease().await["job_id"], job.as_str());
}

#[tokio::test]
async fn a_lease_that_crossed_is_given_back_and_another_slot_has_it_at_once() {
    let rig = Rig::start().await;
    let mut drains = greeted(&rig, 0).await;
    let job = rig.submit_text("x").await;
    rig.until(&job, "leased").await;
    let mut other = greeted(&rig, 1).await;
    // What the Worker says now, it says before it reads the lease.
    drains.send(refuses("draining")).await;
    let lease = drains.lease().await;
    drains.send(decline(&lease, "draining")).await;
    let second = other.lease().await;
    assert_eq!(second["job_id"], job.as_str());
    assert_ne!(second["attempt_id"], lease["attempt_id"]);
    assert_ne!(second["attach_token"], lease["attach_token"]);
    let seen = rig.job(&job).await;
    assert_eq!(seen["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(seen["attempts"][0]["ordinal"], 1, "no attempt is spent");
    assert_eq!(seen["worker_id"], "worker-1#1");
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "attempt_withdrawn", "leased"]
    );
    // It goes on as it was before.
    drains.send(accepts()).await;
    let next = rig.submit_text("y").await;
    assert_eq!(drains.lease().await["job_id"], next.as_str());
}

#[tokio::test]
async fn whatever_a_refusal_crosses_no_attempt_is_spent() {
    let rig = Rig::start().await;
    let mut worker = greeted(&rig, 0).await;
    for _ in 0..20 {
        // The job and the refusal meet anywhere: before, in, or behind the claim.
        let say = async {
            worker.send(refuses("paused")).await;
            worker.send_raw(Message::Ping("read".into())).await;
        };
        let (job, ()) = tokio::join!(rig.submit_text("x"), say);
        // What was sent before the refusal was read comes before this pong.
        loop {
            match worker.next().await.unwrap().unwrap() {
                Message::Pong(_) => break,
                Message::Text(text) => {
                    let lease: Value = serde_json::from_str(&text).unwrap();
                    worker.send(decline(&lease, "paused")).await;
                }
                other => panic!("{other:?}"),
            }
        }
        let waits = rig.until(&job, "pending").await;
        assert!(waits.get("attempts").is_none(), "{waits}");
        worker.silent(Duration::from_millis(5)).await;
        worker.send(accepts()).await;
        let lease = worker.lease().await;
        assert_eq!(lease["job_id"], job.as_str());
        assert_eq!(rig.job(&job).await["attempts"][0]["ordinal"], 1);
        worker.send(text_result(&lease, "done")).await;
        worker.ack(&lease).await;
    }
}

#[tokio::test]
async fn who_breaks_a_rule_is_dropped_and_nothing_has_changed() {
    let other = json!({"job_id": "c".repeat(32), "attempt_id": "d".repeat(32)});
    let cases: [fn(&Value, &Value) -> Value; 9] = [
        |_, _| pong(2),
        |_, _| pong(1),
        |lease, _| attach(lease),
        |lease, _| cancelled(lease),
        |lease, _| decline(lease, "draining"),
        |_, other| cancelled(other),
        |_, other| decline(other, "draining"),
        |_, other| text_result(other, "x"),
        |lease, _| about(lease, json!({"type": "cancel", "reason": "operator"})),
    ];
    for case in cases {
        let (rig, job, mut worker, lease) = leased().await;
        let message = case(&lease, &other);
        worker.send(&message).await;
        worker.refused().await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["status"], "leased", "{message}");
        assert_eq!(seen["attempt_id"], lease["attempt_id"], "{message}");
        assert_eq!(journal(&rig, &job).await, ["submitted", "leased"]);
    }
    // Once it has begun, the slot is not idle.
    for message in [refuses("draining"), accepts()] {
        let (rig, job, mut worker, lease) = leased().await;
        worker.send(heartbeat(&lease)).await;
        worker.send(&message).await;
        worker.refused().await;
        assert_eq!(rig.job(&job).await["status"], "leased");
    }
    // Nothing about an attempt has a place in a greeting.
    for case in [
        |lease: &Value| heartbeat(lease),
        |lease: &Value| text_result(lease, "x"),
        |lease: &Value| cancelled(lease),
        |lease: &Value| decline(lease, "draining"),
    ] {
        let (rig, job, worker, lease) = leased().await;
        drop(worker);
        let mut worker = connect(&rig, 0).await;
        worker.send(case(&lease)).await;
        worker.refused().await;
        let seen = rig.job(&job).await;
        assert_eq!(seen["attempt_id"], lease["attempt_id"]);
        assert_eq!(journal(&rig, &job).await, ["submitted", "leased"]);
    }
}

#[tokio::test]
async fn a_stop_says_goodbye_to_slots_without_an_attempt() {
    let mut rig = Rig::start().await;
    let mut greeting = connect(&rig, 0).await;
    let mut refusing = greeted(&rig, 1).await;
    refusing.send(refuses("paused")).await;
    until_slot(&rig, "worker-1%231", "state", json!("paused")).await;
    rig.stop().await;
    for worker in [&mut greeting, &mut refusing] {
        goodbye(worker).await;
    }
}

async fn goodbye(worker: &mut Peer) {
    match worker.next().await {
        Some(Ok(Message::Close(Some(frame)))) => assert_eq!(u16::from(frame.code), 1001),
        other => panic!("{other:?}"),
    }
}

/// After its time of grace a Gate drops what still runs, without a word.
#[tokio::test]
async fn a_stop_does_not_wait_for_an_attempt_that_can_be_gone_on_with() {
    let (rig, job, mut worker, lease) = leased().await;
    let rig = rig.restart().await;
    goodbye(&mut worker).await;
    assert_eq!(rig.job(&job).await["attempt_id"], lease["attempt_id"]);
    let mut worker = connect(&rig, 0).await;
    worker.send(attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "attached");
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
}

//! What ended without its Worker is stopped there, and the slot waits for it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    QUIET, SECOND, cancelled, connect, decline, greeted, journal, leased, pong, refuses,
    told_to_stop, until_journal, until_slot,
};
use crate::support::{Rig, candidate, evidence, heartbeat, text_result};

/// Waits until the journal of a job has an entry of this kind.
async fn until_entry(rig: &Rig, job: &str, kind: &str) {
    let wait = async {
        while !journal(rig, job).await.iter().any(|one| one == kind) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, wait)
        .await
        .unwrap();
}

async fn cancel(rig: &Rig, job: &str) -> Value {
    let reply = rig.post(&format!("/v1/jobs/{job}/cancel"), "").await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[tokio::test]
async fn a_cancel_stops_the_attempt_and_the_next_lease_follows_its_word() {
    let (rig, job, mut worker, lease) = leased().await;
    let next = rig.submit_text("next").await;
    assert_eq!(cancel(&rig, &job).await["status"], "cancelled");
    told_to_stop(&mut worker, &lease, "operator").await;
    // The slot is not free before the tree is gone.
    worker.silent(QUIET).await;
    assert_eq!(rig.job(&next).await["status"], "pending");
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "cancelled"]
    );
    worker.send(cancelled(&lease)).await;
    let second = worker.lease().await;
    assert_eq!(second["job_id"], next.as_str());
    assert_eq!(
        until_journal(&rig, &job, "attempt_stopped").await,
        ["submitted", "leased", "cancelled", "attempt_stopped"]
    );
    worker.send(text_result(&second, "done")).await;
    worker.ack(&second).await;
}

#[tokio::test]
async fn what_crosses_a_cancel_is_dropped_and_the_connection_stays() {
    let rig = Rig::start().await;
    let job = rig.submit_coding().await;
    let mut worker = greeted(&rig, 0).await;
    let lease = worker.lease().await;
    cancel(&rig, &job).await;
    // All of it before the Worker has read the cancel.
    worker.send(heartbeat(&lease)).await;
    worker.send(evidence(&lease)).await;
    told_to_stop(&mut worker, &lease, "operator").await;
    worker.silent(QUIET).await;
    worker.send(cancelled(&lease)).await;
    until_journal(&rig, &job, "attempt_stopped").await;
    let attempt = lease["attempt_id"].as_str().unwrap();
    let stored = rig
        .get(&format!("/v1/jobs/{job}/attempts/{attempt}/evidence"))
        .await;
    assert_eq!(stored.json(), json!([]));
}

#[tokio::test]
async fn a_result_and_a_cancel_have_one_winner_and_cost_no_connection() {
    let rig = Rig::start().await;
    let mut worker = greeted(&rig, 0).await;
    let (mut won, mut lost) = (0, 0);
    for round in 0..40 {
        let job = rig.submit_text("x").await;
        let lease = worker.lease().await;
        let result = text_result(&lease, "done");
        let owner = async { rig.post(&format!("/v1/jobs/{job}/cancel"), "").await };
        let (reply, answer) = match round {
            // The owner first: the store has the cancel before the result is sent.
            0 => {
                let reply = owner.await;
                worker.send(result).await;
                (reply, worker.receive().await)
            }
            // The Worker first: its result is acknowledged before the owner asks.
            1 => {
                worker.send(result).await;
                let answer = worker.receive().await;
                (owner.await, answer)
            }
            // They meet anywhere.
            _ => {
                let (reply, ()) = tokio::join!(owner, worker.send(result));
                (reply, worker.receive().await)
            }
        };
        if answer["type"] == "ack" {
            assert_eq!(
                (reply.status.as_u16(), reply.code().as_str()),
                (409, "job_terminal")
            );
            assert_eq!(rig.job(&job).await["status"], "succeeded");
            won += 1;
        } else {
            assert_eq!(answer["type"], "cancel", "{answer}");
            assert_eq!(rig.job(&job).await["status"], "cancelled");
            worker.send(cancelled(&lease)).await;
            until_journal(&rig, &job, "attempt_stopped").await;
            lost += 1;
        }
    }
    assert!(won > 0 && lost > 0, "{won} results, {lost} cancels");
}

#[tokio::test]
async fn a_cancel_before_the_lease_was_read_comes_right_behind_it() {
    let rig = Rig::start().await;
    let mut worker = greeted(&rig, 0).await;
    for round in 0..20 {
        let job = rig.submit_text("x").await;
        if round == 0 {
            // The store has the claim, and the Worker has read nothing.
            until_entry(&rig, &job, "leased").await;
        }
        // Wherever the claim is by now, the job is cancelled.
        cancel(&rig, &job).await;
        let leased = journal(&rig, &job).await.contains(&"leased".to_owned());
        assert!(leased || round > 0);
        if leased {
            let lease = worker.lease().await;
            told_to_stop(&mut worker, &lease, "operator").await;
            worker.send(cancelled(&lease)).await;
            until_journal(&rig, &job, "attempt_stopped").await;
        }
    }
    // A job that is cancelled before anybody has claimed it brings no lease and no order.
    rig.post("/v1/pools/coding/pause", "").await;
    let job = rig.submit_text("y").await;
    cancel(&rig, &job).await;
    rig.post("/v1/pools/coding/resume", "").await;
    assert_eq!(journal(&rig, &job).await, ["submitted", "cancelled"]);
    worker.silent(QUIET).await;
    let job = rig.submit_text("last").await;
    assert_eq!(worker.lease().await["job_id"], job.as_str());
}

#[tokio::test]
async fn a_cancel_that_crosses_a_decline_needs_no_other_word() {
    let (rig, job, mut worker, lease) = leased().await;
    // All of it before the Worker reads its lease.
    cancel(&rig, &job).await;
    worker.send(refuses("draining")).await;
    worker.send(decline(&lease, "draining")).await;
    told_to_stop(&mut worker, &lease, "operator").await;
    until_journal(&rig, &job, "attempt_stopped").await;
    assert_eq!(rig.job(&job).await["status"], "cancelled");
    worker.send(super::accepts()).await;
    let next = rig.submit_text("next").await;
    assert_eq!(worker.lease().await["job_id"], next.as_str());
}

#[tokio::test]
async fn a_cancel_is_said_once() {
    let (rig, job, mut worker, lease) = leased().await;
    let first = cancel(&rig, &job).await;
    assert_eq!(cancel(&rig, &job).await, first);
    told_to_stop(&mut worker, &lease, "operator").await;
    assert_eq!(cancel(&rig, &job).await, first);
    worker.silent(QUIET).await;
    worker.send(cancelled(&lease)).await;
    until_journal(&rig, &job, "attempt_stopped").await;
    // Neither is the word that it has stopped.
    worker.send(cancelled(&lease)).await;
    worker.refused().await;
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "cancelled", "attempt_stopped"]
    );
}

#[tokio::test]
async fn a_cancel_reaches_no_other_attempt() {
    let (rig, job, mut worker, lease) = leased().await;
    let mut other = greeted(&rig, 1).await;
    let second = rig.submit_text("y").await;
    let kept = other.lease().await;
    cancel(&rig, &job).await;
    told_to_stop(&mut worker, &lease, "operator").await;
    other.silent(QUIET).await;
    other.send(text_result(&kept, "done")).await;
    other.ack(&kept).await;
    assert_eq!(rig.job(&second).await["status"], "succeeded");
    other.send(refuses("paused")).await;
    until_slot(&rig, "worker-1%231", "state", json!("paused")).await;
    // A job that waits has nobody to tell.
    worker.send(cancelled(&lease)).await;
    let failed = rig.submit_text("z").await;
    let lease = worker.lease().await;
    worker
        .send(crate::support::failure(&lease, "execution_failed", ""))
        .await;
    worker.ack(&lease).await;
    cancel(&rig, &failed).await;
    worker.silent(QUIET).await;
}

#[tokio::test]
async fn an_attempt_whose_worker_is_away_is_told_of_its_end_when_it_comes_back() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    cancel(&rig, &job).await;
    worker.send(super::attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "lost");
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "cancelled"]
    );
    // The pong says that nothing of it runs.
    worker.send(pong(1)).await;
    until_journal(&rig, &job, "attempt_stopped").await;
    // Once is enough, whatever a Worker claims again.
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    worker.send(super::attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "lost");
    worker.send(pong(1)).await;
    let ended = job;
    // An attempt that was attached is stopped as any other.
    let job = rig.submit_text("y").await;
    let lease = worker.lease().await;
    drop(worker);
    let mut worker = connect(&rig, 0).await;
    worker.send(super::attach(&lease)).await;
    assert_eq!(worker.receive().await["type"], "attached");
    cancel(&rig, &job).await;
    told_to_stop(&mut worker, &lease, "operator").await;
    worker.send(cancelled(&lease)).await;
    until_journal(&rig, &job, "attempt_stopped").await;
    assert_eq!(
        journal(&rig, &ended).await,
        ["submitted", "leased", "cancelled", "attempt_stopped"]
    );
}

#[tokio::test]
async fn r04_an_attempt_that_expired_while_its_worker_was_away_is_noted_as_stopped() {
    // Whether the timekeeper has ended it, or the Worker comes first.
    for swept in [true, false] {
        let rig = Rig::start_with(|config| {
            if !swept {
                config["lease_poll_interval"] = json!("1m");
                config["recovery_interval"] = json!("30s");
            }
        })
        .await;
        let job = rig.submit_text("x").await;
        let mut worker = greeted(&rig, 0).await;
        let lease = worker.lease().await;
        drop(worker);
        if swept {
            rig.pass(31 * SECOND).await;
            rig.until(&job, "retry_wait").await;
        } else {
            rig.clock.advance(30 * SECOND);
        }
        let mut worker = connect(&rig, 0).await;
        worker.send(super::attach(&lease)).await;
        assert_eq!(worker.receive().await["type"], "lost");
        assert!(
            !journal(&rig, &job)
                .await
                .contains(&"attempt_stopped".to_owned())
        );
        worker.send(pong(1)).await;
        until_entry(&rig, &job, "attempt_stopped").await;
    }
}

#[tokio::test]
async fn what_was_never_the_slots_is_not_noted_as_stopped() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let mut other = connect(&rig, 1).await;
    cancel(&rig, &job).await;
    // Another slot with the right token, and the right slot with a wrong one.
    other.send(super::attach(&lease)).await;
    assert_eq!(other.receive().await["type"], "lost");
    other.send(pong(1)).await;
    let mut worker = connect(&rig, 0).await;
    let mut wrong = super::attach(&lease);
    wrong["attach_token"] = json!("0".repeat(32));
    worker.send(wrong).await;
    assert_eq!(worker.receive().await["type"], "lost");
    worker.send(pong(1)).await;
    // Both have been heard.
    rig.submit_text("next").await;
    rig.submit_text("next").await;
    other.lease().await;
    worker.lease().await;
    assert_eq!(
        journal(&rig, &job).await,
        ["submitted", "leased", "cancelled"]
    );
}

#[tokio::test]
async fn r04_a_worker_that_slept_past_its_lease_is_told_and_the_connection_stays() {
    let (rig, job, mut worker, lease) = leased().await;
    rig.pass(31 * SECOND).await;
    told_to_stop(&mut worker, &lease, "lease_lost").await;
    // What it says late changes nothing.
    worker.send(heartbeat(&lease)).await;
    worker.send(text_result(&lease, "late")).await;
    assert_eq!(
        rig.until(&job, "retry_wait").await["attempt_id"],
        lease["attempt_id"]
    );
    worker.send(cancelled(&lease)).await;
    until_journal(&rig, &job, "attempt_stopped").await;
    rig.pass(2 * SECOND).await;
    let second = worker.lease().await;
    assert_eq!(second["job_id"], job.as_str());
    assert_ne!(second["attempt_id"], lease["attempt_id"]);
    worker.send(text_result(&second, "done")).await;
    worker.ack(&second).await;
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    assert_eq!(result["attempts"][0]["status"], "expired");
    assert_eq!(result["attempts"][1]["status"], "succeeded");
}

#[tokio::test]
async fn r04_what_comes_after_the_deadline_is_answered_though_nobody_has_ended_the_lease() {
    let say: [fn(&Value) -> Value; 3] = [heartbeat, evidence, candidate];
    for message in say {
        // The timekeeper does not look by itself.
        let rig = Rig::start_with(|config| {
            config["lease_poll_interval"] = json!("1m");
            config["recovery_interval"] = json!("30s");
        })
        .await;
        let job = rig.submit_coding().await;
        let mut worker = greeted(&rig, 0).await;
        let lease = worker.lease().await;
        rig.clock.advance(30 * SECOND);
        worker.send(message(&lease)).await;
        told_to_stop(&mut worker, &lease, "lease_lost").await;
        assert_eq!(rig.job(&job).await["status"], "retry_wait");
        worker.send(cancelled(&lease)).await;
        until_journal(&rig, &job, "attempt_stopped").await;
        // The slot goes on, and has forgotten nothing that waits.
        let next = rig.submit_text("next").await;
        assert_eq!(worker.lease().await["job_id"], next.as_str());
    }
}

#[tokio::test]
async fn r03_a_worker_that_is_gone_for_good_loses_its_attempt_at_the_deadline() {
    let (rig, job, worker, lease) = leased().await;
    drop(worker);
    let mut other = greeted(&rig, 1).await;
    rig.pass(29 * SECOND).await;
    other.silent(Duration::from_millis(20)).await;
    rig.pass(2 * SECOND).await;
    rig.until(&job, "retry_wait").await;
    rig.pass(2 * SECOND).await;
    let second = other.lease().await;
    assert_eq!(second["job_id"], job.as_str());
    let seen = rig.job(&job).await;
    assert_eq!(seen["status"], "leased", "it has attempts left");
    assert_eq!(seen["attempts"][0]["ordinal"], 2);
    assert_ne!(second["attempt_id"], lease["attempt_id"]);
}

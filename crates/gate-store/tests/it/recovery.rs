//! What a Gate finds and does when it starts on the database of one that is gone.

use std::path::{Path, PathBuf};

use digest_text::Sha256Text;
use forge_domain::JobStatus;
use gate_store::{
    Attachment, ClaimRequest, Lease, Location, Recovery, SqliteStore, Store, StoreError,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::{
    Lane, POOL, TTL, at, batch, coding_job, generation, passed, slot, submit, text_job, text_result,
};

fn open(path: &Path, now: i64) -> Result<(SqliteStore, Recovery), StoreError> {
    SqliteStore::open(&Location::File(path.to_owned()), at(now))
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    (folder, path)
}

#[tokio::test]
async fn a_live_lease_runs_on_and_its_worker_is_disconnected() {
    let (_folder, path) = place();
    let (store, recovery) = open(&path, 0).unwrap();
    assert_eq!(recovery, Recovery::default());
    let job = submit(&store, coding_job(), at(0)).await;
    let lane = Lane::connect(&store, "w", at(0)).await;
    let lease = lane.claim(&store, at(0)).await.unwrap();
    let records = batch(vec![passed(0, None)]);
    store
        .bind_evidence(job.id, lane.holder(&lease), records, at(1))
        .await
        .unwrap();
    drop(store);

    let (store, recovery) = open(&path, 10).unwrap();
    assert_eq!(
        (
            recovery.disconnected,
            recovery.live,
            recovery.clamped,
            recovery.expired.len()
        ),
        (1, 1, 0, 0)
    );
    assert_eq!(store.next_due(at(10)).await.unwrap().lease, Some(at(TTL)));
    assert_eq!(
        store
            .evidence(job.id, lease.attempt)
            .await
            .unwrap()
            .unwrap()
            .len(),
        1
    );
    assert!(
        !store
            .worker(lane.slot.clone())
            .await
            .unwrap()
            .unwrap()
            .connected
    );
    // The slot may connect at once and gets nothing while its attempt lives.
    let again = Lane::connect(&store, "w", at(11)).await;
    submit(&store, text_job(), at(11)).await;
    assert!(again.claim(&store, at(11)).await.is_none());
}

#[tokio::test]
async fn r01_leases_that_ran_out_are_ended_before_anybody_is_served() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 0).unwrap();
    // More than one sweep takes.
    let mut submitted = Vec::new();
    for _ in 0..260 {
        submitted.push(store.submit(text_job(), at(0)));
    }
    let mut lanes = Vec::new();
    for index in 0..260 {
        lanes.push(
            Lane::connect(
                &store,
                &format!("w{}#{}", index / 60, index % 60 + 1),
                at(0),
            )
            .await,
        );
    }
    for answer in submitted {
        answer.await.unwrap();
    }
    let claims: Vec<_> = lanes
        .iter()
        .map(|lane| store.claim(lane.request(), at(0)))
        .collect();
    for answer in claims {
        assert!(answer.await.unwrap().is_some());
    }
    drop(store);
    let (store, recovery) = open(&path, TTL).unwrap();
    assert_eq!(
        (recovery.expired.len(), recovery.live, recovery.disconnected),
        (260, 0, 260)
    );
    assert!(
        recovery.expired.iter().all(
            |ended| ended.status == JobStatus::RetryWait && ended.retry_at == Some(at(TTL + 1))
        )
    );
    assert_eq!(
        store.next_due(at(TTL)).await.unwrap().retry,
        Some(at(TTL + 1))
    );
}

/// Claims with a token for the first half of the slots, without one for the others.
async fn claim_half_with_tokens(store: &SqliteStore, count: usize) -> Vec<(Lane, Lease)> {
    let submitted: Vec<_> = (0..count)
        .map(|_| store.submit(text_job(), at(0)))
        .collect();
    let lanes: Vec<_> = (0..count)
        .map(|index| Lane {
            slot: slot(&format!("w{}#{}", index / 60, index % 60 + 1)),
            generation: generation(),
        })
        .collect();
    let connected: Vec<_> = lanes
        .iter()
        .map(|lane| {
            let pool = POOL.parse().unwrap();
            store.connect_slot(lane.slot.clone(), pool, lane.generation, at(0))
        })
        .collect();
    let claims: Vec<_> = (0..)
        .zip(&lanes)
        .map(|(index, lane)| {
            let attach = (index < count / 2).then(|| Sha256Text::of(lane.slot.to_string()));
            let request = ClaimRequest {
                attach,
                ..lane.request()
            };
            store.claim(request, at(0))
        })
        .collect();
    for answer in submitted {
        answer.await.unwrap();
    }
    for answer in connected {
        answer.await.unwrap();
    }
    let mut leases = Vec::new();
    for answer in claims {
        leases.push(answer.await.unwrap().unwrap());
    }
    lanes.into_iter().zip(leases).collect()
}

#[tokio::test]
async fn r26_after_an_outage_a_thousand_attempts_wait_for_their_workers_and_none_is_given_again() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 0).unwrap();
    let held = claim_half_with_tokens(&store, 2_000).await;
    drop(store);

    // Longer than any lease: time without a Gate counts for nobody who can come back.
    let start = 100 * TTL;
    let (store, recovery) = open(&path, start).unwrap();
    assert_eq!(
        (recovery.graced, recovery.live, recovery.expired.len()),
        (1_000, 1_000, 1_000)
    );
    assert_eq!(recovery.clamped, 0);
    let due = store.next_due(at(start)).await.unwrap();
    assert_eq!(due.lease, Some(at(start + TTL)));
    let mut answers = Vec::new();
    for (lane, lease) in held.into_iter().take(1_000) {
        let lane = Lane {
            generation: generation(),
            ..lane
        };
        let pool = POOL.parse().unwrap();
        let token = Sha256Text::of(lane.slot.to_string());
        answers.push((
            store.connect_slot(lane.slot.clone(), pool, lane.generation, at(start)),
            store.claim(lane.request(), at(start)),
            store.attach(lease.job, lane.holder(&lease), token, at(start + TTL - 1)),
        ));
    }
    for (connected, claimed, attached) in answers {
        connected.await.unwrap();
        assert!(claimed.await.unwrap().is_none(), "the slot has an attempt");
        let live = Attachment::Live {
            ordinal: 1,
            deadline: at(start + TTL),
        };
        assert_eq!(attached.await.unwrap(), live);
    }
    assert_eq!(store.expire_due(at(start + TTL - 1)).await.unwrap(), []);
}

#[tokio::test]
async fn r01_who_does_not_come_back_in_the_grace_has_lost_the_attempt() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 0).unwrap();
    let held = claim_half_with_tokens(&store, 2).await;
    drop(store);
    let (store, _) = open(&path, 10).unwrap();
    // One deadline was moved, one was not.
    let first = store.expire_due(at(TTL)).await.unwrap();
    assert_eq!((first.len(), first[0].attempt), (1, held[1].1.attempt));
    let second = store.expire_due(at(10 + TTL)).await.unwrap();
    assert_eq!((second.len(), second[0].attempt), (1, held[0].1.attempt));
    assert_eq!(second[0].status, JobStatus::RetryWait);
    drop(store);
    // A clock that was set back: as much as everybody else.
    let (store, recovery) = open(&path, -1_000).unwrap();
    assert_eq!((recovery.graced, recovery.live), (0, 0));
    drop(store);
}

#[tokio::test]
async fn r06_a_grace_is_no_longer_than_the_ttl_of_a_clock_that_was_set_back() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 0).unwrap();
    claim_half_with_tokens(&store, 2).await;
    drop(store);
    let (store, recovery) = open(&path, -50_000).unwrap();
    assert_eq!((recovery.clamped, recovery.live), (2, 2));
    let due = store.next_due(at(-50_000)).await.unwrap();
    assert_eq!(due.lease, Some(at(-50_000 + TTL)));
}

#[tokio::test]
async fn r06_a_clock_that_was_set_back_gives_no_lease_more_than_its_ttl() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 100_000).unwrap();
    submit(&store, text_job(), at(100_000)).await;
    let lane = Lane::connect(&store, "w", at(100_000)).await;
    let lease = lane.claim(&store, at(100_000)).await.unwrap();
    drop(store);
    let (store, recovery) = open(&path, 0).unwrap();
    assert_eq!((recovery.clamped, recovery.live), (1, 1));
    assert_eq!(store.next_due(at(0)).await.unwrap().lease, Some(at(TTL)));
    assert_eq!(
        store.expire_due(at(TTL)).await.unwrap()[0].attempt,
        lease.attempt
    );
    // The waiting job is leased again although all its times lie ahead.
    let again = Lane::connect(&store, "w", at(TTL)).await;
    let due = store.next_due(at(TTL)).await.unwrap().retry.unwrap();
    assert_eq!(again.claim(&store, due).await.unwrap().ordinal, 2);
}

#[tokio::test]
async fn active_rows_that_do_not_fit_together_block_the_start() {
    for (tampering, words) in [
        (
            "UPDATE policies SET canonical = replace(canonical, ':3', ': 3')",
            "white space",
        ),
        ("UPDATE policies SET canonical = '{}'", "policy"),
        ("UPDATE works SET body = '{}' WHERE kind = 'coding'", "work"),
        (
            "UPDATE works SET kind = 'legacy'",
            "its kind is not the one of its work",
        ),
        (
            "UPDATE jobs SET base_sha = replace(base_sha, '1', '9') WHERE kind = 'coding'",
            "its repository or base",
        ),
        (
            "UPDATE jobs SET pool = 'elsewhere'",
            "its pool is not the one of its policy",
        ),
        (
            "UPDATE jobs SET policy = 3 - policy",
            "its repository is not the one of its policy",
        ),
        (
            "UPDATE jobs SET attempts = 3 WHERE status = 'leased'",
            "do not fit together",
        ),
        (
            "UPDATE jobs SET status = 'retry_wait', retry_at = 0 WHERE status = 'leased'",
            "its state is not the one of its attempts",
        ),
        (
            "UPDATE jobs SET last_attempt = NULL WHERE status = 'leased'",
            "it is leased and has no attempt",
        ),
        (
            "UPDATE attempts SET job = 2, ordinal = 7 WHERE status = 'leased'",
            "attempt",
        ),
        ("DELETE FROM attempts WHERE ordinal = 1", "attempt"),
        (
            "UPDATE jobs SET id = 'zz' WHERE status = 'pending'",
            "column `id`",
        ),
        ("UPDATE evidence SET record = '{}'", "a record of evidence"),
    ] {
        let (_folder, path) = place();
        let (store, _) = open(&path, 0).unwrap();
        submit(&store, coding_job(), at(0)).await;
        submit(&store, text_job(), at(1)).await;
        let lane = Lane::connect(&store, "w", at(0)).await;
        for now in [0, 100] {
            let lease = lane.claim(&store, at(now)).await.unwrap();
            store
                .bind_evidence(
                    lease.job,
                    lane.holder(&lease),
                    batch(vec![passed(0, None)]),
                    at(now),
                )
                .await
                .unwrap();
            if now == 0 {
                store.expire_due(at(TTL)).await.unwrap();
            }
        }
        drop(store);

        let connection = Connection::open(&path).unwrap();
        let triggers: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for trigger in triggers {
            connection
                .execute_batch(&format!("DROP TRIGGER {trigger}"))
                .unwrap();
        }
        connection
            .execute_batch(&format!(
                "PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0; {tampering}"
            ))
            .unwrap();
        drop(connection);

        let error = open(&path, 101).expect_err(tampering);
        assert!(
            matches!(error, StoreError::Inconsistent { .. }),
            "{tampering}: {error:?}"
        );
        assert_eq!(error.startup_code().as_str(), "startup_failed");
        assert!(error.to_string().contains(words), "{tampering}: {error}");
        // Nothing is repaired or half done: it is refused again, for the same reason.
        assert_eq!(
            open(&path, 101).expect_err(tampering).to_string(),
            error.to_string()
        );
    }
}

#[tokio::test]
async fn terminal_history_is_not_judged_at_the_start() {
    let (_folder, path) = place();
    let (store, _) = open(&path, 0).unwrap();
    let job = submit(&store, text_job(), at(0)).await;
    let lane = Lane::connect(&store, "w", at(0)).await;
    let lease = lane.claim(&store, at(0)).await.unwrap();
    store
        .complete(job.id, lane.holder(&lease), text_result("x"), at(1))
        .await
        .unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("DROP TRIGGER policies_are_immutable; UPDATE policies SET canonical = '{}'")
        .unwrap();
    drop(connection);
    let (store, _) = open(&path, 2).unwrap();
    assert_eq!(
        store.job(job.id).await.unwrap().unwrap().status,
        JobStatus::Succeeded
    );
    // The policy that no longer is one fails loudly where it is needed.
    let error = store
        .complete(job.id, lane.holder(&lease), text_result("x"), at(3))
        .await
        .unwrap_err();
    assert!(!error.is_refusal());
}

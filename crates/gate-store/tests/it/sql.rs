//! The constraints behind the invariants, tried with plain SQL past all code above.

use gate_store::{Location, SqliteStore, Store};
use rusqlite::Connection;

use crate::fixture::{
    Lane, at, batch, candidate, coding_job, passed, submit, text_job, text_result,
};

/// A closed database with one job in each state and a live attempt, and the path of it.
async fn populated() -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    let (store, _) = SqliteStore::open(&Location::File(path.clone()), at(0)).unwrap();
    let store: &dyn Store = &store;
    for name in ["done", "failed", "live"] {
        submit(store, coding_job(), at(0)).await;
        let lane = Lane::connect(store, name, at(0)).await;
        let lease = lane.claim(store, at(0)).await.unwrap();
        store
            .bind_evidence(
                lease.job,
                lane.holder(&lease),
                batch(vec![passed(0, Some(crate::fixture::CANDIDATE))]),
                at(1),
            )
            .await
            .unwrap();
        let holder = lane.holder(&lease);
        match name {
            "done" => drop(
                store
                    .complete(lease.job, holder, candidate(None), at(2))
                    .await
                    .unwrap(),
            ),
            "failed" => {
                let failure =
                    forge_domain::Completion::Failed(forge_domain::WorkerFailure::InvalidTask);
                drop(
                    store
                        .complete(lease.job, holder, failure, at(2))
                        .await
                        .unwrap(),
                );
            }
            _ => {}
        }
    }
    submit(store, text_job(), at(3)).await;
    let cancelled = submit(store, text_job(), at(3)).await;
    store.cancel(cancelled.id, at(4)).await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    (folder, connection)
}

#[tokio::test]
async fn r11_illegal_rows_cannot_be_written_at_all() {
    let (_folder, connection) = populated().await;
    let key = "INSERT INTO idempotency_keys (key, body, job) VALUES ('k', 'b', 1)";
    connection.execute(key, []).unwrap();
    for (sql, reason) in [
        (
            "UPDATE jobs SET status = 'pending', candidate_sha = NULL WHERE status = 'succeeded'",
            "a job cannot take this edge",
        ),
        (
            "UPDATE jobs SET status = 'failed' WHERE status = 'cancelled'",
            "a job cannot take this edge",
        ),
        (
            "UPDATE jobs SET updated_at = 0 WHERE status = 'failed'",
            "a terminal job is immutable",
        ),
        (
            "UPDATE jobs SET failure_code = 'invalid_task' WHERE status = 'cancelled'",
            "a terminal job is immutable",
        ),
        (
            "UPDATE jobs SET status = 'succeeded', ready = 0 WHERE status = 'pending'",
            "a job cannot take this edge",
        ),
        (
            "UPDATE jobs SET status = 'pending' WHERE status = 'leased'",
            "a job cannot take this edge",
        ),
        (
            "UPDATE jobs SET priority = 5 WHERE status = 'pending'",
            "what a job was submitted with is immutable",
        ),
        (
            "UPDATE jobs SET policy = 1, work = 2 WHERE status = 'pending'",
            "what a job was submitted with is immutable",
        ),
        (
            "UPDATE jobs SET status = 'retry_wait' WHERE status = 'leased'",
            "CHECK",
        ),
        (
            "UPDATE jobs SET status = 'failed' WHERE status = 'leased'",
            "CHECK",
        ),
        (
            "UPDATE jobs SET status = 'succeeded' WHERE status = 'leased'",
            "CHECK",
        ),
        ("UPDATE jobs SET ready = 1 WHERE status = 'leased'", "CHECK"),
        (
            "UPDATE jobs SET ready = 0 WHERE status = 'pending'",
            "CHECK",
        ),
        (
            "UPDATE jobs SET status = 'delivering' WHERE status = 'leased'",
            "a job cannot take this edge",
        ),
        (
            "UPDATE attempts SET status = 'leased', completed_at = NULL WHERE status = 'succeeded'",
            "a terminal attempt is immutable",
        ),
        (
            "UPDATE attempts SET deadline_at = 0 WHERE status = 'terminal_failed'",
            "a terminal attempt is immutable",
        ),
        (
            "UPDATE attempts SET ordinal = 2 WHERE status = 'leased'",
            "what an attempt was granted with is immutable",
        ),
        (
            "UPDATE attempts SET status = 'succeeded', completed_at = 1 WHERE status = 'leased'",
            "CHECK",
        ),
        (
            "UPDATE attempts SET status = 'expired' WHERE status = 'leased'",
            "CHECK",
        ),
        ("UPDATE evidence SET record = '{}'", "evidence is immutable"),
        ("UPDATE events SET detail = ''", "the journal is immutable"),
        (
            "UPDATE policies SET canonical = '{}'",
            "a policy is immutable",
        ),
        (
            "UPDATE works SET body = ''",
            "the work of a job is immutable",
        ),
        (
            "DELETE FROM jobs WHERE status = 'succeeded'",
            "a job is never deleted",
        ),
        (
            "DELETE FROM attempts WHERE status = 'terminal_failed'",
            "an attempt that has begun is never deleted",
        ),
        (
            "DELETE FROM attempts WHERE status = 'leased'",
            "an attempt that has begun is never deleted",
        ),
        (
            "UPDATE attempts SET attach_digest = NULL WHERE status = 'leased'",
            "what an attempt was granted with is immutable",
        ),
        (
            "UPDATE jobs SET status = 'pending', ready = 1, attempts = 0, last_attempt = NULL WHERE status = 'succeeded'",
            "a job cannot take this edge",
        ),
        ("DELETE FROM evidence", "evidence is never deleted"),
        ("DELETE FROM events", "the journal is never cut"),
        (
            "UPDATE idempotency_keys SET body = ''",
            "an idempotency key stands for its job for good",
        ),
        (
            "INSERT INTO evidence (attempt, evidence_id, record, bound_at) SELECT attempt, evidence_id, '{}', 0 FROM evidence",
            "UNIQUE",
        ),
        (
            "INSERT INTO evidence (attempt, evidence_id, record, bound_at) VALUES (99, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '{}', 0)",
            "FOREIGN KEY",
        ),
        // A second live attempt of a job, with the ordinal that would be next.
        (
            "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at) \
             SELECT id, job, 2, (SELECT seq FROM slots WHERE worker = 'done'), generation, 'leased', 0, 0 FROM attempts WHERE status = 'leased'",
            "attempts.job",
        ),
        // A second live attempt of a slot, for the pending job.
        (
            "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at) \
             SELECT id, (SELECT seq FROM jobs WHERE status = 'pending'), 1, slot, generation, 'leased', 0, 0 FROM attempts WHERE status = 'leased'",
            "attempts.slot",
        ),
        (
            "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at) \
             SELECT id, (SELECT seq FROM jobs WHERE status = 'pending'), 2, slot, generation, 'leased', 0, 0 FROM attempts WHERE status = 'succeeded'",
            "with the next ordinal",
        ),
        (
            "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at, completed_at) \
             SELECT id, (SELECT seq FROM jobs WHERE status = 'pending'), 1, slot, generation, 'expired', 0, 0, 0 FROM attempts WHERE status = 'succeeded'",
            "an attempt starts as leased",
        ),
    ] {
        let error = connection.execute(sql, []).expect_err(sql).to_string();
        assert!(error.contains(reason), "{sql}: {error}");
    }
}

#[tokio::test]
async fn r25_claims_deadlines_and_retries_are_found_through_indexes() {
    let (_folder, connection) = populated().await;
    for (sql, index) in [
        (
            "SELECT seq FROM jobs WHERE ready = 1 AND pool = ?1 ORDER BY priority DESC, created_at, id LIMIT 1",
            "jobs_claimable",
        ),
        (
            "UPDATE jobs INDEXED BY jobs_waiting SET ready = 1 WHERE status = 'retry_wait' AND ready = 0 AND retry_at <= ?1",
            "jobs_waiting",
        ),
        (
            "SELECT min(deadline_at) FROM attempts INDEXED BY one_live_attempt_per_slot WHERE status = 'leased'",
            "one_live_attempt_per_slot",
        ),
        (
            "SELECT 1 FROM attempts WHERE slot = ?1 AND status = 'leased'",
            "one_live_attempt_per_slot",
        ),
        (
            "SELECT seq FROM jobs WHERE id = ?1",
            "sqlite_autoindex_jobs_1",
        ),
        (
            "SELECT seq FROM events WHERE job = ?1 ORDER BY seq",
            "events_of_job",
        ),
        (
            "SELECT seq FROM jobs WHERE status = ?1 AND seq < 9 ORDER BY seq DESC",
            "jobs_by_status",
        ),
        // What is counted of a queue is counted in the index alone.
        (
            "SELECT pool, count(*), min(created_at) FROM jobs INDEXED BY jobs_claimable WHERE ready = 1 GROUP BY pool",
            "USING COVERING INDEX jobs_claimable",
        ),
        (
            "SELECT pool, count(*) FROM jobs INDEXED BY jobs_waiting_by_pool WHERE status = 'retry_wait' AND ready = 0 GROUP BY pool",
            "USING COVERING INDEX jobs_waiting_by_pool",
        ),
        (
            "SELECT 1 FROM jobs INDEXED BY jobs_claimable WHERE ready = 1 AND pool = ?1 AND priority = 0 AND created_at < 9",
            "USING COVERING INDEX jobs_claimable (pool=? AND priority=? AND created_at<?)",
        ),
    ] {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let parameters: &[&str] = if sql.contains("?1") { &["1"] } else { &[] };
        let plan: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let plan = plan.join("; ");
        assert!(
            plan.contains(index) && !plan.contains("TEMP B-TREE"),
            "{sql}: {plan}"
        );
    }
}

#[tokio::test]
async fn a_policy_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    let (store, _) = SqliteStore::open(&Location::File(path.clone()), at(0)).unwrap();
    for _ in 0..5 {
        submit(&store, text_job(), at(0)).await;
        submit(&store, coding_job(), at(0)).await;
    }
    let count: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM policies", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 2);
}

#[tokio::test]
async fn r21_the_log_is_bounded_under_load_with_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    let (store, _) = SqliteStore::open(&Location::File(path.clone()), at(0)).unwrap();
    // An operator's backup runs while the Gate works.
    let reader = Connection::open(&path).unwrap();
    let lanes: Vec<Lane> = {
        let mut lanes = Vec::new();
        for index in 0..32 {
            lanes.push(Lane::connect(&store, &format!("w#{}", index + 1), at(0)).await);
        }
        lanes
    };
    for round in 0..60 {
        let submitted: Vec<_> = (0..32)
            .map(|_| store.submit(text_job(), at(round)))
            .collect();
        for answer in submitted {
            answer.await.unwrap();
        }
        let claimed: Vec<_> = lanes
            .iter()
            .map(|lane| store.claim(lane.request(), at(round)))
            .collect();
        let mut done = Vec::new();
        for (lane, answer) in lanes.iter().zip(claimed) {
            let lease = answer.await.unwrap().unwrap();
            done.push(store.complete(
                lease.job,
                lane.holder(&lease),
                text_result(&"x".repeat(2_000)),
                at(round),
            ));
        }
        for answer in done {
            answer.await.unwrap();
        }
        let seen: i64 = reader
            .query_row(
                "SELECT count(*) FROM jobs WHERE status = 'succeeded'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(seen, 32 * (round + 1));
    }
    let copy = folder.path().join("copy.db");
    reader
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    let copied = Connection::open(&copy).unwrap();
    let check: String = copied
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    let jobs: i64 = copied
        .query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))
        .unwrap();
    assert_eq!((check.as_str(), jobs), ("ok", 60 * 32));
    let log = std::fs::metadata(folder.path().join("state/gate.db-wal"))
        .unwrap()
        .len();
    assert!(log <= 80 << 20, "{log}");
    drop(reader);
    drop(store);
    // Closed in order, the log is gone.
    assert!(!folder.path().join("state/gate.db-wal").exists());
}

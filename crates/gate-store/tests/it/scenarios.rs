//! What a store must survive, named after the rows of docs/conformance/scenarios.md.

use std::collections::BTreeSet;
use std::path::PathBuf;

use forge_domain::{JobId, JobStatus, Priority};
use gate_store::{JobFilter, Location, MAX_PAGE, NewJob, Page, SqliteStore, Store};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::{
    Lane, POOL, TTL, at, batch, coding_job, job_id, passed, policy, submit, text_job, text_result,
};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    (folder, path)
}

fn open(path: &std::path::Path, now: i64) -> SqliteStore {
    SqliteStore::open(&Location::File(path.to_owned()), at(now))
        .unwrap()
        .0
}

#[tokio::test]
async fn r10_only_a_heartbeat_moves_a_deadline() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let job = submit(&store, coding_job(), at(0)).await;
    let lane = Lane::connect(&store, "w", at(0)).await;
    let lease = lane.claim(&store, at(0)).await.unwrap();
    let deadline = async || store.next_due(at(20)).await.unwrap().lease;

    let records = batch(vec![passed(0, None)]);
    let bound = store.bind_evidence(job.id, lane.holder(&lease), records, at(5));
    bound.await.unwrap();
    let refused = store.retry(job.id, job_id(), at(10)).await;
    assert!(refused.unwrap_err().is_refusal());
    // A text is no result of a coding job.
    let refused = store.complete(job.id, lane.holder(&lease), text_result("x"), at(15));
    assert!(refused.await.unwrap_err().is_refusal());
    assert_eq!(
        deadline().await,
        Some(at(TTL)),
        "none of that is a sign of life"
    );

    // A cancellation changes the job's row and ends the lease: it does not prolong it.
    let cancelled = store.cancel(job.id, at(20)).await.unwrap();
    assert_eq!(cancelled.job.updated_at, at(20));
    assert_eq!(deadline().await, None);
    let attempts = store.attempts(job.id).await.unwrap().unwrap();
    assert_eq!(
        (attempts[0].deadline_at, attempts[0].completed_at),
        (at(TTL), Some(at(20)))
    );
    let again = store.cancel(job.id, at(25)).await.unwrap();
    assert_eq!((again.repeated, again.job.updated_at), (true, at(20)));
}

#[tokio::test]
async fn r21_a_reader_that_stays_holds_nobody_up_and_the_log_shrinks_behind_it() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let mut lanes = Vec::new();
    for index in 0..16 {
        lanes.push(Lane::connect(&store, &format!("w#{}", index + 1), at(0)).await);
    }
    let round = async |now: i64| {
        let submitted: Vec<_> = lanes
            .iter()
            .map(|_| store.submit(text_job(), at(now)))
            .collect();
        for answer in submitted {
            answer.await.unwrap();
        }
        for lane in &lanes {
            let lease = lane.claim(&store, at(now)).await.unwrap();
            let result = text_result(&"x".repeat(60_000));
            let answer = store.complete(lease.job, lane.holder(&lease), result, at(now));
            answer.await.unwrap();
        }
    };
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen = |reader: &Connection| -> i64 {
        reader
            .query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(seen(&reader), 0);
    // More than the 16 MiB at which the log begins anew when nobody stands in the way.
    for now in 0..12 {
        round(now).await;
    }
    assert_eq!(seen(&reader), 0, "it still sees its own moment");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(seen(&reader), 12 * 16);

    let log = path.with_file_name("gate.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let grown = length();
    assert!(grown > 16 << 20, "{grown}");
    // The reader is gone, so the log begins anew: what is written now fits into what is there.
    for now in 12..36 {
        round(now).await;
        // A copy of the log is made about once a second; the load must not outrun this test.
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    assert!(
        length() <= grown + (24 << 20),
        "{grown} became {}",
        length()
    );
}

#[tokio::test]
async fn r25_no_page_is_longer_than_a_hundred_jobs() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let submitted: Vec<_> = (0..250).map(|_| store.submit(text_job(), at(0))).collect();
    for answer in submitted {
        answer.await.unwrap();
    }
    for (asked, got) in [(0, 1), (1, 1), (100, 100), (101, 100), (u16::MAX, 100)] {
        let page = Page {
            limit: asked,
            cursor: None,
        };
        let page = store.list_jobs(JobFilter::default(), page).await.unwrap();
        assert_eq!(page.items.len(), got, "{asked}");
        assert!(page.next_cursor.is_some());
    }
    assert_eq!(MAX_PAGE, 100);
}

/// The statements as the store writes them, and the index that answers each without a sort.
#[tokio::test]
async fn r25_claims_and_lists_cost_the_same_in_a_long_queue() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    submit(&store, text_job(), at(0)).await;
    drop(store);
    let connection = Connection::open(&path).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let lines = statement.query_map([], |row| row.get(3)).unwrap();
        lines
            .collect::<Result<Vec<String>, _>>()
            .unwrap()
            .join("; ")
    };
    const JOINED: &str = "SELECT j.id FROM jobs j LEFT JOIN attempts a ON a.seq = j.last_attempt \
        LEFT JOIN slots s ON s.seq = a.slot";
    for (rest, index) in [
        (
            "WHERE j.ready = 1 AND j.pool = 'p' ORDER BY j.priority DESC, j.created_at, j.id LIMIT 1",
            "USING INDEX jobs_claimable",
        ),
        (
            "WHERE j.seq < 9 ORDER BY j.seq DESC LIMIT 101",
            "USING INTEGER PRIMARY KEY",
        ),
        (
            "WHERE j.seq < 9 AND j.status = 'failed' ORDER BY j.seq DESC LIMIT 101",
            "USING INDEX jobs_by_status",
        ),
        (
            "WHERE j.seq < 9 AND j.repository_id = 'r' ORDER BY j.seq DESC LIMIT 101",
            "USING INDEX jobs_by_repository",
        ),
    ] {
        let plan = plan(&format!("{JOINED} {rest}"));
        assert!(plan.contains(index), "{rest}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{rest}: {plan}");
        assert!(!plan.contains("SCAN"), "{rest}: {plan}");
    }
}

#[tokio::test]
async fn r26_a_thousand_live_leases_survive_a_restart_and_none_is_given_out_again() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let submitted: Vec<_> = (0..1_000)
        .map(|_| store.submit(text_job(), at(0)))
        .collect();
    let mut lanes = Vec::new();
    for index in 0..1_000 {
        let name = format!("w{}#{}", index / 50, index % 50 + 1);
        lanes.push(Lane::connect(&store, &name, at(0)).await);
    }
    for answer in submitted {
        answer.await.unwrap();
    }
    let claims: Vec<_> = lanes
        .iter()
        .map(|lane| store.claim(lane.request(), at(1)))
        .collect();
    let mut leased = BTreeSet::new();
    for answer in claims {
        leased.insert(answer.await.unwrap().unwrap().attempt);
    }
    assert_eq!(leased.len(), 1_000);
    drop(store);

    let (store, recovery) = SqliteStore::open(&Location::File(path), at(2)).unwrap();
    assert_eq!((recovery.live, recovery.expired.len()), (1_000, 0));
    // All of them come back at once and ask; a job that comes now is all that there is to have.
    let mut again = Vec::new();
    for lane in &lanes {
        again.push(Lane::connect(&store, &lane.slot.to_string(), at(3)).await);
    }
    let fresh = submit(&store, text_job(), at(3)).await;
    let free = Lane::connect(&store, "free", at(3)).await;
    let claims: Vec<_> = again
        .iter()
        .map(|lane| store.claim(lane.request(), at(3)))
        .collect();
    for answer in claims {
        assert!(answer.await.unwrap().is_none(), "its attempt is alive");
    }
    assert_eq!(free.claim(&store, at(3)).await.unwrap().job, fresh.id);
    let page = Page {
        limit: 100,
        cursor: None,
    };
    let pending = JobFilter {
        status: Some(JobStatus::RetryWait),
        ..JobFilter::default()
    };
    assert!(
        store
            .list_jobs(pending, page)
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn r27_a_job_that_kills_its_workers_ends_and_the_others_go_on() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let poison = submit(&store, text_job(), at(0)).await;
    let good = submit(&store, text_job(), at(1)).await;
    let lane = Lane::connect(&store, "w", at(1)).await;
    let mut now = 1;
    let mut attempts = 0;
    let mut done = None;
    while done.is_none() || store.job(poison.id).await.unwrap().unwrap().status != JobStatus::Failed
    {
        assert!(now < 1_000, "it never ends");
        match lane.claim(&store, at(now)).await {
            Some(lease) if lease.job == poison.id => {
                attempts += 1;
                now += TTL;
                store.expire_due(at(now)).await.unwrap();
            }
            Some(lease) => {
                let result =
                    store.complete(lease.job, lane.holder(&lease), text_result("x"), at(now));
                done = Some((result.await.unwrap().job.id, attempts));
            }
            None => now += 1,
        }
    }
    // While the job waits to be tried again, the other one has the slot.
    assert_eq!((attempts, done), (3, Some((good.id, 1))));
    assert!(lane.claim(&store, at(now + 10_000)).await.is_none());
}

/// Priorities are the owner's own words and are kept to the letter; among equals nobody overtakes.
#[tokio::test]
async fn r28_among_equals_the_oldest_runs_first_however_many_come_later() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let lane = Lane::connect(&store, "w", at(0)).await;
    let old = submit(&store, text_job(), at(0)).await;
    // A retry that has come due is older, so it does not starve either.
    let lease = lane.claim(&store, at(0)).await.unwrap();
    assert_eq!(lease.job, old.id);
    store.expire_due(at(TTL)).await.unwrap();
    let mut order = Vec::new();
    for now in 0..20 {
        submit(&store, text_job(), at(TTL + 2 + now)).await;
        let lease = lane.claim(&store, at(TTL + 2 + now)).await.unwrap();
        order.push(lease.job);
        let result = store.complete(
            lease.job,
            lane.holder(&lease),
            text_result("x"),
            at(TTL + 3 + now),
        );
        result.await.unwrap();
    }
    assert_eq!(order[0], old.id);
}

#[tokio::test]
async fn r28_a_low_priority_runs_as_soon_as_nothing_more_urgent_waits() {
    let (_folder, path) = place();
    let store = open(&path, 0);
    let lane = Lane::connect(&store, "w", at(0)).await;
    let with = |priority| NewJob {
        priority: Priority::new(priority).unwrap(),
        // One attempt: what waits for its next one must not hold the rest up.
        policy: policy(POOL, false, 2),
        ..text_job()
    };
    let low: JobId = submit(&store, with(-100), at(0)).await.id;
    for number in 0..5 {
        submit(&store, with(100), at(number)).await;
    }
    let mut now = 10;
    let mut runs = 0;
    loop {
        let lease = lane.claim(&store, at(now)).await.unwrap();
        if lease.job == low {
            break;
        }
        runs += 1;
        // Every urgent job is lost once and is then waiting to be tried again, for a second.
        now += TTL;
        store.expire_due(at(now)).await.unwrap();
    }
    // While the last of them waits for its time, the slot is not kept free for it.
    assert!(runs >= 5, "{runs}");
}

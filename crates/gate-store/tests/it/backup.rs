//! Copies that are made while a Gate works, and Gates that start from them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forge_domain::JobStatus;
use gate_store::{JobFilter, JobPage, Location, Page, SqliteStore, Store, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::{Lane, TTL, at, submit, text_job, text_result};

fn place() -> (TempDir, Location) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    (folder, Location::File(path))
}

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// All jobs, newest first.
async fn all(store: &dyn Store) -> Vec<gate_store::JobView> {
    let mut jobs = Vec::new();
    let mut cursor = None;
    loop {
        let page = Page { limit: 100, cursor };
        let JobPage { items, next_cursor } =
            store.list_jobs(JobFilter::default(), page).await.unwrap();
        jobs.extend(items);
        cursor = next_cursor;
        if cursor.is_none() {
            return jobs;
        }
    }
}

/// Jobs that are submitted and done until it is told to stop; answers how many.
async fn work(store: &dyn Store, lanes: &[Lane], stop: &AtomicBool) -> i64 {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let submitted: Vec<_> = lanes
            .iter()
            .map(|_| store.submit(text_job(), at(1)))
            .collect();
        for answer in submitted {
            answer.await.unwrap();
        }
        for lane in lanes {
            let lease = lane.claim(store, at(2)).await.unwrap();
            let result = text_result(&"x".repeat(500));
            let answer = store.complete(lease.job, lane.holder(&lease), result, at(3));
            answer.await.unwrap();
            done += 1;
        }
    }
    done
}

/// What must hold in any moment of the database.
fn is_consistent(path: &Path) {
    let copy = Connection::open(path).unwrap();
    let verdict: String = copy
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    let broken = copy
        .prepare("PRAGMA foreign_key_check")
        .unwrap()
        .exists([])
        .unwrap();
    assert!(!broken);
    // One transaction each, so one moment has both or neither.
    let succeeded = count(
        &copy,
        "SELECT count(*) FROM jobs WHERE status = 'succeeded'",
    );
    for other in [
        "SELECT count(*) FROM attempts WHERE status = 'succeeded'",
        "SELECT count(*) FROM events WHERE kind = 'succeeded'",
    ] {
        assert_eq!(count(&copy, other), succeeded, "{other}");
    }
    assert_eq!(
        count(&copy, "SELECT count(*) FROM jobs"),
        count(
            &copy,
            "SELECT count(*) FROM events WHERE kind = 'submitted'"
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r21_r24_copies_under_load_are_consistent_and_nobody_is_told_busy() {
    let (folder, location) = place();
    let (store, _) = SqliteStore::open(&location, at(0)).unwrap();
    let store = Arc::new(store);
    let mut lanes = Vec::new();
    for index in 0..8 {
        lanes.push(Lane::connect(&*store, &format!("w#{}", index + 1), at(0)).await);
    }
    // Somebody looks at one moment of the database for all of the time.
    let reader = Connection::open(folder.path().join("state/gate.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen = count(&reader, "SELECT count(*) FROM jobs");

    let stop = Arc::new(AtomicBool::new(false));
    let mut working = tokio::task::JoinSet::new();
    working.spawn({
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        async move { work(&*store, &lanes, &stop).await }
    });
    let mut counts = Vec::new();
    for number in 0..6 {
        let copy = folder.path().join(format!("copy-{number}.db"));
        let (from, to) = (location.clone(), copy.clone());
        let jobs = tokio::task::spawn_blocking(move || SqliteStore::back_up(&from, &to));
        counts.push(jobs.await.unwrap().unwrap());
        is_consistent(&copy);
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o600);
    }
    stop.store(true, Ordering::Relaxed);
    let done = working.join_next().await.unwrap().unwrap();
    assert!(done > 0);
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(count(&reader, "SELECT count(*) FROM jobs"), seen);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&reader, "SELECT count(*) FROM jobs"), done);
}

#[tokio::test]
async fn r24_a_gate_starts_from_a_copy_and_goes_on() {
    let (folder, location) = place();
    let (store, _) = SqliteStore::open(&location, at(0)).unwrap();
    let lane = Lane::connect(&store, "w", at(0)).await;
    submit(&store, text_job(), at(0)).await;
    let first = lane.claim(&store, at(0)).await.unwrap();
    let done = store.complete(first.job, lane.holder(&first), text_result("x"), at(1));
    done.await.unwrap();
    submit(&store, text_job(), at(1)).await;
    let running = lane.claim(&store, at(2)).await.unwrap();
    submit(&store, text_job(), at(3)).await;
    let before = all(&store).await;

    let restored = folder.path().join("restored");
    fs::create_dir(&restored).unwrap();
    fs::set_permissions(
        &restored,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    let copy = restored.join("gate.db");
    assert_eq!(SqliteStore::back_up(&location, &copy).unwrap(), 3);
    // What comes later is not in it.
    submit(&store, text_job(), at(4)).await;

    let (second, recovery) = SqliteStore::open(&Location::File(copy), at(5)).unwrap();
    assert_eq!((recovery.live, recovery.expired.len()), (1, 0));
    assert_eq!(all(&second).await, before);
    assert_eq!(second.expire_due(at(2 + TTL)).await.unwrap().len(), 1);
    let again = Lane::connect(&second, "w", at(40)).await;
    let lease = again.claim(&second, at(40)).await.unwrap();
    assert_eq!((lease.job, lease.ordinal), (running.job, 2));
    // The two have nothing to do with each other.
    let status = store.job(running.job).await.unwrap().unwrap().status;
    assert_eq!(status, JobStatus::Leased);
}

#[test]
fn r24_a_place_that_cannot_be_used_leaves_no_copy() {
    let (folder, location) = place();
    let copy = folder.path().join("copy.db");
    let refused = |from: &Location, to: &Path| {
        let error = SqliteStore::back_up(from, to).unwrap_err();
        assert!(!error.is_refusal());
        error.to_string()
    };
    let missing = refused(&location, &copy);
    assert!(missing.contains("there is no such file"), "{missing}");
    assert!(!folder.path().join("state").exists(), "nothing is made");
    drop(SqliteStore::open(&location, at(0)).unwrap());

    fs::write(&copy, "what is there").unwrap();
    let exists = refused(&location, &copy);
    assert!(exists.contains("exists already"), "{exists}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "what is there");
    let nowhere = folder.path().join("no/such/copy.db");
    let nowhere = refused(&location, &nowhere);
    assert!(nowhere.contains("there is no such file"), "{nowhere}");
    let memory = refused(&Location::Memory, &folder.path().join("other"));
    assert!(memory.contains("in memory"), "{memory}");

    let foreign = folder.path().join("state/foreign.db");
    fs::write(&foreign, "").unwrap();
    fs::set_permissions(
        &foreign,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let other = folder.path().join("other");
    let error = SqliteStore::back_up(&Location::File(foreign), &other).unwrap_err();
    assert!(
        matches!(error, StoreError::ForeignDatabase { .. }),
        "{error}"
    );
    assert!(!other.exists());
}

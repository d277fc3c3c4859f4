//! A database that an earlier release has written is taken over as it is.

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use forge_domain::{JobStatus, NotAccepting};
use gate_store::{Attachment, ClaimRequest, Location, SqliteStore, Store};
use rusqlite::{Connection, params};

use crate::fixture::{Lane, POOL, TTL, at, coding_work, policy, text_result};

const SCHEMA_1: &str = include_str!("../../src/sqlite/schema_1.sql");

/// Writes what schema 1 held: a text job that is leased, one that waits for its second attempt,
/// one that has ended and one that is new, with nothing that came later.
fn write_schema_1(path: &Path) {
    let folder = path.parent().unwrap();
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(folder)
        .unwrap();
    let mut private = std::fs::OpenOptions::new();
    private.write(true).create_new(true).mode(0o600);
    drop(private.open(path).unwrap());
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA_1).unwrap();
    connection
        .pragma_update(None, "application_id", 0x4146_4731)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    for coding in [false, true] {
        let policy = policy(POOL, coding, 3);
        connection
            .execute(
                "INSERT INTO policies (digest, canonical) VALUES (?1, ?2)",
                [policy.digest().to_string(), policy.canonical()],
            )
            .unwrap();
    }
    let task = coding_work().coding().unwrap().canonical();
    for (kind, body) in [("legacy", "hello"), ("coding", &task)] {
        connection
            .execute(
                "INSERT INTO works (kind, body) VALUES (?1, ?2)",
                [kind, body],
            )
            .unwrap();
    }
    let time = |seconds| i64::try_from(at(seconds).as_nanosecond()).unwrap();
    for slot in 0..3 {
        connection
            .execute(
                "INSERT INTO slots (worker, slot, pool, generation, connected, last_seen) VALUES ('w', ?1, ?2, ?3, 1, ?4)",
                params![slot, POOL, format!("{slot:032x}"), time(0)],
            )
            .unwrap();
    }
    for job in 1..=4 {
        let id = format!("{job:032x}");
        connection
            .execute(
                "INSERT INTO jobs (id, kind, status, ready, pool, priority, policy, work, attempts, created_at, updated_at) \
                 VALUES (?1, 'legacy', 'pending', 1, ?2, 0, 1, 1, 0, ?3, ?3)",
                params![id, POOL, time(job)],
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO events (job, kind, detail, at) VALUES (?1, 'submitted', 'job accepted', ?2)",
                params![job, time(job)],
            )
            .unwrap();
    }
    for job in 1..=3 {
        connection
            .execute(
                "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at) \
                 VALUES (?1, ?2, 1, ?2, ?3, 'leased', ?4, ?5)",
                params![format!("{:032x}", 100 + job), job, format!("{:032x}", job - 1), time(5), time(5 + TTL)],
            )
            .unwrap();
        connection
            .execute(
                "UPDATE jobs SET status = 'leased', ready = 0, attempts = 1, last_attempt = ?1 WHERE seq = ?1",
                [job],
            )
            .unwrap();
    }
    let ended = [
        format!(
            "UPDATE attempts SET status = 'expired', completed_at = {} WHERE seq = 2",
            time(35)
        ),
        format!(
            "UPDATE jobs SET status = 'retry_wait', retry_at = {} WHERE seq = 2",
            time(36)
        ),
        format!(
            "UPDATE attempts SET status = 'succeeded', completed_at = {}, result = 'HELLO' WHERE seq = 3",
            time(6)
        ),
        "UPDATE jobs SET status = 'succeeded' WHERE seq = 3".to_owned(),
    ];
    connection.execute_batch(&ended.join(";")).unwrap();
}

#[tokio::test]
async fn r23_what_schema_1_held_goes_on_under_the_schema_of_today() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    write_schema_1(&path);
    let (store, recovery) = SqliteStore::open(&Location::File(path.clone()), at(20)).unwrap();
    // No Worker of that time has a token, so the lease is as it was.
    assert_eq!(
        (recovery.live, recovery.graced, recovery.disconnected),
        (1, 0, 3)
    );
    assert_eq!(
        store.next_due(at(20)).await.unwrap().lease,
        Some(at(5 + TTL))
    );
    assert!(path.with_file_name("gate.db.schema-1.bak").exists());
    let id = |job: u32| format!("{job:032x}").parse().unwrap();
    let output = store.output(id(3)).await.unwrap().unwrap();
    assert_eq!(output.text.as_deref(), Some("HELLO"));
    assert_eq!(store.events(id(4)).await.unwrap().len(), 1);

    // What is new holds for what is old: a lease that is given back, and one that is gone on with.
    let mut lane = Lane::connect(&store, "w#1", at(20)).await;
    let claim = |lane: &Lane| {
        store.claim(
            ClaimRequest {
                attach: Some(digest_text::Sha256Text::of("t")),
                ..lane.request()
            },
            at(20),
        )
    };
    let lease = claim(&lane).await.unwrap().unwrap();
    assert_eq!(lease.job, id(4));
    let waits = store.withdraw(
        lease.job,
        lane.holder(&lease),
        NotAccepting::Draining,
        at(20),
    );
    assert_eq!(waits.await.unwrap().status, JobStatus::Pending);
    let lease = claim(&lane).await.unwrap().unwrap();
    store
        .disconnect_slot(lane.slot.clone(), lane.generation, at(20))
        .await
        .unwrap();
    lane = Lane::connect(&store, "w#1", at(21)).await;
    let token = digest_text::Sha256Text::of("t");
    let attached = store.attach(lease.job, lane.holder(&lease), token, at(21));
    assert!(matches!(attached.await.unwrap(), Attachment::Live { .. }));
    let done = store.complete(lease.job, lane.holder(&lease), text_result("x"), at(22));
    assert_eq!(done.await.unwrap().job.status, JobStatus::Succeeded);
    // The old attempt ends as it would have, and cannot be gone on with.
    assert_eq!(store.expire_due(at(5 + TTL)).await.unwrap()[0].job, id(1));
    drop(store);
    let (_, recovery) = SqliteStore::open(&Location::File(path), at(40)).unwrap();
    assert_eq!(recovery.live, 0);
}

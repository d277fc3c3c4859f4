//! What the store carries, and how long a claim takes in a long queue.
//!
//! - Throughput: submit → claim → complete, every step durable, at 16 and 200 slots, against a bare
//!   loop on the same schema with one commit per claim and one per result. Bar: 1.5 times the loop.
//! - Latency: claims at 1 000 offered jobs a second with 100 000 waiting and 1 000 000 finished.
//!   Bar: 99 of 100 under 10 ms.
//!
//! Disks vary from minute to minute, so the rounds of both sides alternate and their ratio counts.
//! `cargo bench -p gate-store -- throughput` or `-- latency` runs one of the two.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reads the clock, prints, and stops at the first surprise"
)]

#[path = "../tests/it/fixture.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod fixture;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate_store::{Location, SqliteStore, Store};
use rusqlite::{Connection, params};
use tokio::task::JoinSet;

use crate::fixture::{Lane, POOL, at, text_job, text_result};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);
const PENDING: i64 = 100_000;
const FINISHED: i64 = 1_000_000;
const OFFERED_PER_SECOND: u32 = 1_000;
const OFFERED: u32 = 10_000;

fn main() {
    // Test runners start bench targets too; only `cargo bench` says `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let runs = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    if runs("throughput") {
        runtime.block_on(throughput());
    }
    if runs("latency") {
        runtime.block_on(latency());
    }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

async fn throughput() {
    for slots in [16, 200] {
        let mut ratios = Vec::new();
        for round in 1..=ROUNDS {
            let bare = bare_loop();
            let ours = store_round(slots).await;
            ratios.push(ours / bare);
            println!(
                "{slots:>3} slots, round {round}: store {ours:>6.0} jobs/s, bare loop {bare:>6.0} jobs/s, ratio {:.2}",
                ours / bare
            );
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{slots:>3} slots: median ratio {:.2} (bar 1.5)",
            ratios[ROUNDS / 2]
        );
    }
}

async fn connect(store: &Arc<SqliteStore>, slots: usize) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for index in 0..slots {
        lanes.push(
            Lane::connect(
                &**store,
                &format!("w{}#{}", index / 50, index % 50 + 1),
                at(0),
            )
            .await,
        );
    }
    lanes
}

/// Every slot submits, claims and completes one job after the other.
async fn store_round(slots: usize) -> f64 {
    let folder = place();
    let location = Location::File(folder.path().join("state/gate.db"));
    let store = Arc::new(SqliteStore::open(&location, at(0)).unwrap().0);
    let lanes = connect(&store, slots).await;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for lane in lanes {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut done = 0u32;
            while start.elapsed() < ROUND {
                store.submit(text_job(), at(1)).await.unwrap();
                let lease = lane.claim(&*store, at(1)).await.unwrap();
                store
                    .complete(
                        lease.job,
                        lane.holder(&lease),
                        text_result("FORGE: HELLO"),
                        at(2),
                    )
                    .await
                    .unwrap();
                done += 1;
            }
            done
        });
    }
    let done: u32 = tasks.join_all().await.into_iter().sum();
    f64::from(done) / start.elapsed().as_secs_f64()
}

/// One connection, jobs that wait already, one commit per claim and one per result.
fn bare_loop() -> f64 {
    let folder = place();
    let path = folder.path().join("state/gate.db");
    drop(SqliteStore::open(&Location::File(path.clone()), at(0)).unwrap());
    let connection = plain(&path);
    connection
        .execute_batch(
            "INSERT INTO policies (digest, canonical) VALUES ('x', '{}');
             INSERT INTO works (kind, body) VALUES ('legacy', 'hello');
             INSERT INTO slots (worker, slot, pool, generation, connected, last_seen)
             VALUES ('w', 0, 'coding', lower(hex(randomblob(16))), 1, 0);",
        )
        .unwrap();
    insert_pending(&connection, 50_000);
    let mut done = 0u32;
    let start = Instant::now();
    while start.elapsed() < ROUND {
        let run = |sql: &str| connection.prepare_cached(sql).unwrap().execute([]).unwrap();
        run("BEGIN IMMEDIATE");
        let job: i64 = connection
            .prepare_cached("SELECT seq FROM jobs WHERE ready = 1 AND pool = ?1 ORDER BY priority DESC, created_at, id LIMIT 1")
            .unwrap()
            .query_row([POOL], |row| row.get(0))
            .unwrap();
        let attempt = connection
            .prepare_cached(
                "INSERT INTO attempts (id, job, ordinal, slot, generation, status, leased_at, deadline_at) \
                 VALUES (lower(hex(randomblob(16))), ?1, 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'leased', 1, 2)",
            )
            .unwrap()
            .insert([job])
            .unwrap();
        connection
            .prepare_cached("UPDATE jobs SET status = 'leased', ready = 0, attempts = 1, last_attempt = ?2, updated_at = 1 WHERE seq = ?1")
            .unwrap()
            .execute([job, attempt])
            .unwrap();
        event(&connection, job, "leased");
        run("COMMIT");
        run("BEGIN IMMEDIATE");
        connection
            .prepare_cached("UPDATE attempts SET status = 'succeeded', completed_at = 2, result = 'FORGE: HELLO' WHERE seq = ?1")
            .unwrap()
            .execute([attempt])
            .unwrap();
        connection
            .prepare_cached("UPDATE jobs SET status = 'succeeded', updated_at = 2 WHERE seq = ?1")
            .unwrap()
            .execute([job])
            .unwrap();
        event(&connection, job, "succeeded");
        run("COMMIT");
        done += 1;
    }
    f64::from(done) / start.elapsed().as_secs_f64()
}

fn event(connection: &Connection, job: i64, kind: &str) {
    connection
        .prepare_cached(
            "INSERT INTO events (job, kind, detail, at) VALUES (?1, ?2, 'result stored', 1)",
        )
        .unwrap()
        .execute(params![job, kind])
        .unwrap();
}

fn plain(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_update(None, "synchronous", "FULL")
        .unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    connection
        .pragma_update(None, "cache_size", -16 * 1024)
        .unwrap();
    connection
}

fn insert_pending(connection: &Connection, count: i64) {
    connection
        .execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO jobs (id, kind, status, ready, pool, priority, policy, work, attempts, created_at, updated_at)
             SELECT lower(hex(randomblob(16))), 'legacy', 'pending', 1, 'coding', i % 3, 1, 1, 0, i, i FROM n",
            [count],
        )
        .unwrap();
}

async fn latency() {
    let folder = place();
    let path = folder.path().join("state/gate.db");
    let location = Location::File(path.clone());
    let store = SqliteStore::open(&location, at(0)).unwrap().0;
    // The first job stores policy and work; the others are copies of it.
    store.submit(text_job(), at(0)).await.unwrap();
    connect(&Arc::new(store), 1).await;
    let start = Instant::now();
    populate(&path);
    println!(
        "{PENDING} waiting and {FINISHED} finished jobs written in {:.0?}",
        start.elapsed()
    );
    let start = Instant::now();
    let store = Arc::new(SqliteStore::open(&location, at(0)).unwrap().0);
    println!("opened and checked in {:.1?}", start.elapsed());

    let lanes = connect(&store, 250).await;
    let lanes = Arc::new(tokio::sync::Mutex::new(lanes));
    let disk = Disk::watch(folder.path());
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / OFFERED_PER_SECOND);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    for _ in 0..OFFERED {
        ticks.tick().await;
        let store = Arc::clone(&store);
        let lanes = Arc::clone(&lanes);
        tasks.spawn(async move {
            store.submit(text_job(), at(1)).await.unwrap();
            let lane = lanes.lock().await.pop()?;
            let asked = Instant::now();
            let lease = lane.claim(&*store, at(1)).await.unwrap();
            let waited = asked.elapsed();
            store
                .complete(
                    lease.job,
                    lane.holder(&lease),
                    text_result("FORGE: HELLO"),
                    at(2),
                )
                .await
                .unwrap();
            lanes.lock().await.push(lane);
            Some(waited)
        });
    }
    let answers = tasks.join_all().await;
    let rate = f64::from(OFFERED) / start.elapsed().as_secs_f64();
    let mut waits: Vec<Duration> = answers.into_iter().flatten().collect();
    waits.sort();
    let percent = |percent: usize| waits[(waits.len() - 1) * percent / 100];
    println!(
        "{rate:.0} jobs/s offered and done, {} claims: p50 {:.2?}, p90 {:.2?}, p99 {:.2?}, max {:.2?} (bar p99 < 10 ms)",
        waits.len(),
        percent(50),
        percent(90),
        percent(99),
        percent(100),
    );
    let writes = disk.stop();
    let percent = |percent: usize| writes[(writes.len() - 1) * percent / 100];
    println!(
        "beside it {} plain writes of 4 KiB took p50 {:.2?}, p90 {:.2?}, p99 {:.2?} to be durable",
        writes.len(),
        percent(50),
        percent(90),
        percent(99),
    );
    let log = std::fs::metadata(path.with_file_name("gate.db-wal"))
        .unwrap()
        .len();
    println!("write-ahead log afterwards: {} MiB", log >> 20);
}

/// What the disk itself takes while the store is measured: nobody can be faster than it.
struct Disk {
    going: Arc<std::sync::atomic::AtomicBool>,
    thread: std::thread::JoinHandle<Vec<Duration>>,
}

impl Disk {
    fn watch(folder: &Path) -> Self {
        use std::io::{Seek as _, Write as _};
        let mut file = fs_err::File::create(folder.join("plain")).unwrap();
        let going = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let goes_on = Arc::clone(&going);
        let thread = std::thread::spawn(move || {
            let mut times = Vec::new();
            while goes_on.load(std::sync::atomic::Ordering::Relaxed) {
                let start = Instant::now();
                file.rewind().unwrap();
                file.write_all(&[7; 4096]).unwrap();
                file.sync_data().unwrap();
                times.push(start.elapsed());
                std::thread::sleep(Duration::from_millis(20));
            }
            times.sort();
            times
        });
        Self { going, thread }
    }

    fn stop(self) -> Vec<Duration> {
        self.going
            .store(false, std::sync::atomic::Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Writes history past the store, with the triggers off and on again.
fn populate(path: &Path) {
    let connection = plain(path);
    let triggers: Vec<(String, String)> = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; BEGIN").unwrap();
    for (name, _) in &triggers {
        connection
            .execute_batch(&format!("DROP TRIGGER {name}"))
            .unwrap();
    }
    insert_pending(&connection, PENDING);
    let first: i64 = connection
        .query_row("SELECT max(seq) + 1 FROM jobs", [], |row| row.get(0))
        .unwrap();
    let series =
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) ";
    for sql in [
        "INSERT INTO jobs (seq, id, kind, status, ready, pool, priority, policy, work, attempts, last_attempt, created_at, updated_at) \
         SELECT ?2 + i, lower(hex(randomblob(16))), 'legacy', 'succeeded', 0, 'coding', 0, 1, 1, 1, 1 + i, i, i FROM n",
        "INSERT INTO attempts (seq, id, job, ordinal, slot, generation, status, leased_at, deadline_at, completed_at, result) \
         SELECT 1 + i, lower(hex(randomblob(16))), ?2 + i, 1, 1, lower(hex(randomblob(16))), 'succeeded', i, i, i, 'FORGE: HELLO' FROM n",
        "INSERT INTO events (job, kind, detail, at) SELECT ?2 + i, 'submitted', 'job accepted', i FROM n",
        "INSERT INTO events (job, kind, detail, at) SELECT ?2 + i, 'leased', \
         'attempt=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ordinal=1 lease_expires=2026-11-30T12:00:00.123456789Z', i FROM n",
        "INSERT INTO events (job, kind, detail, at) SELECT ?2 + i, 'succeeded', 'result stored', i FROM n",
    ] {
        connection
            .execute(&format!("{series}{sql}"), [FINISHED, first])
            .unwrap();
    }
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
    connection
        .execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    // A history has been on the disk for long: what was just written must not be made durable by
    // the first copy of the log that is measured.
    fs_err::File::open(path).unwrap().sync_all().unwrap();
}

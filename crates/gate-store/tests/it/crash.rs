//! A Gate that is killed while it writes: what was answered is there, and nothing is half there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use forge_domain::{AttemptStatus, JobId, JobStatus};
use gate_store::{JobFilter, Location, Page, SqliteStore, Store};

use crate::fixture::at;

/// A child that is killed when the test ends, however it ends.
struct Victim(Child);

impl Victim {
    #[expect(
        clippy::disallowed_methods,
        reason = "a plain child that dies by SIGKILL is all that is wanted"
    )]
    fn start(path: &Path) -> Self {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_gate-store-victim"))
            .arg(path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Reads what the victim says it has done, and kills it after `lines` of it.
    fn kill_after(mut self, lines: usize) -> Vec<JobId> {
        let mut answered = Vec::new();
        let mut output = BufReader::new(self.0.stdout.take().unwrap()).lines();
        while answered.len() < lines {
            let line = output.next().unwrap().unwrap();
            answered.extend(line.parse::<JobId>());
        }
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        answered.extend(
            output
                .map_while(Result::ok)
                .filter_map(|line| line.parse::<JobId>().ok()),
        );
        answered
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Processor time that a process has used, in clock ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

/// Stops a Gate between two writes of one result: a trigger before the second of them counts
/// without end, and there the process is killed.
#[tokio::test]
async fn r02_killed_between_the_attempts_end_and_the_jobs_end_leaves_neither() {
    // A result is written to the attempt, to the job and to the journal, in whatever order.
    for (table, event, condition) in [
        ("attempts", "UPDATE", "NEW.status = 'succeeded'"),
        ("jobs", "UPDATE", "NEW.status = 'succeeded'"),
        ("events", "INSERT", "NEW.kind = 'succeeded'"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/gate.db");
        let location = Location::File(path.clone());
        drop(SqliteStore::open(&location, at(0)).unwrap());
        let trap = format!(
            "CREATE TRIGGER trap BEFORE {event} ON {table} WHEN {condition} BEGIN \
             SELECT count(*) FROM (WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n); \
             END"
        );
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(&trap)
            .unwrap();
        let mut victim = Victim::start(&path);
        // It does a few milliseconds of work until it is in the trap, and nothing but counts there.
        while ticks(victim.0.id()) < 50 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(victim.0.try_wait().unwrap().is_none());
        }
        assert_eq!(victim.kill_after(0), [], "no result was answered");

        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("DROP TRIGGER trap").unwrap();
        drop(connection);
        let (store, recovery) = SqliteStore::open(&location, at(5)).unwrap();
        // Claims that were committed together with the result are undone with it.
        assert!((1..=8).contains(&recovery.live), "{table}: {recovery:?}");
        assert_eq!(recovery.expired.len(), 0);
        let page = Page {
            limit: 100,
            cursor: None,
        };
        let jobs = store
            .list_jobs(JobFilter::default(), page)
            .await
            .unwrap()
            .items;
        assert_eq!(jobs.len(), 16);
        for job in jobs {
            assert!(
                [JobStatus::Pending, JobStatus::Leased].contains(&job.status),
                "{table}: {job:?}"
            );
            let result = store.result(job.id).await.unwrap().unwrap();
            let live = result
                .attempts
                .iter()
                .all(|(attempt, _)| attempt.status == AttemptStatus::Leased);
            assert!(live, "{table}: {result:?}");
            assert!(
                result
                    .timeline
                    .iter()
                    .all(|entry| entry.event.kind() != "succeeded")
            );
        }
    }
}

#[tokio::test]
async fn r02_a_killed_gate_leaves_both_writes_or_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    let mut answered = Vec::new();
    for lines in [1, 20, 57] {
        answered.extend(Victim::start(&path).kill_after(lines));
        // The next start checks every active row; after its sweep nothing is left over.
        let (store, recovery) =
            SqliteStore::open(&Location::File(path.clone()), at(1_000)).unwrap();
        assert_eq!(recovery.live, 0);
        for job in &answered {
            let view = store
                .job(*job)
                .await
                .unwrap()
                .expect("what was answered is there");
            assert_eq!(view.status, JobStatus::Succeeded);
        }
        let mut cursor = None;
        loop {
            let page = store
                .list_jobs(JobFilter::default(), Page { limit: 100, cursor })
                .await
                .unwrap();
            for job in &page.items {
                let result = store.result(job.id).await.unwrap().unwrap();
                let terminal = result
                    .attempts
                    .iter()
                    .any(|(attempt, _)| attempt.status == AttemptStatus::Succeeded);
                assert_eq!(terminal, job.status == JobStatus::Succeeded, "{job:?}");
                let said = result
                    .timeline
                    .iter()
                    .any(|entry| entry.event.kind() == "succeeded");
                assert_eq!(terminal, said, "{job:?}");
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        // Jobs that wait must not be in the way of the next victim.
        let waiting = store
            .list_jobs(
                JobFilter {
                    status: Some(JobStatus::RetryWait),
                    ..JobFilter::default()
                },
                Page {
                    limit: 100,
                    cursor: None,
                },
            )
            .await
            .unwrap();
        for job in waiting.items {
            store.cancel(job.id, at(1_001)).await.unwrap();
        }
    }
    assert!(answered.len() >= 78);
}

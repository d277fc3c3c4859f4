//! A registry that is killed while it works: what was answered is there, and nothing is half there.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use digest_text::Sha256Text;
use registry_store::{ArtifactPlace, Store};

use crate::fixture::{all, at, page, resolve};
use crate::root::Root;

/// A child that is killed when the test ends, however it ends.
struct Victim(Child);

impl Victim {
    #[expect(
        clippy::disallowed_methods,
        reason = "a plain child that dies by SIGKILL is all that is wanted"
    )]
    fn start(root: &Path, number: u64) -> Self {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_registry-store-victim"))
            .arg(root)
            .arg(number.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Reads what the victim says it has done, and kills it after so many lines.
    fn kill_after(mut self, lines: usize) -> Vec<String> {
        let mut output = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while said.len() < lines {
            said.push(output.next().unwrap().unwrap());
        }
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        said.extend(output.map_while(Result::ok));
        // The last line may be cut.
        said.retain(|line| line.len() >= "sha256:".len() + 64);
        said
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

/// Every file below the folder of the artifacts, by name.
fn files(root: &Path) -> BTreeSet<String> {
    let shards = fs_err::read_dir(root.join("artifacts/sha256")).unwrap();
    let files = shards.flat_map(|shard| fs_err::read_dir(shard.unwrap().path()).unwrap());
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Checks that everything that is visible is whole, and gives the digests that are listed.
async fn whole(store: &Store) -> BTreeSet<Sha256Text> {
    for digest in store.digests(None, 1_000).await.unwrap() {
        store.verify(digest).await.unwrap();
    }
    let mut listed = BTreeSet::new();
    let mut cursor = None;
    loop {
        let entries = store.catalog(None, page(100, cursor)).await.unwrap();
        for entry in entries.data {
            let release = resolve(store, entry.plugin_id.as_str(), None)
                .await
                .unwrap();
            let digest = release.artifact_digest;
            let bytes = all(store.read(digest, 0..release.artifact_bytes).await).await;
            assert_eq!(Sha256Text::of(bytes.unwrap()), digest);
            let channel = entry.channels.values().next().unwrap();
            assert_eq!(channel.artifact_digest, digest);
            let found = store.catalog(Some(entry.plugin_id.to_string()), page(100, None));
            let found = found.await.unwrap().data;
            assert!(found.iter().any(|found| found.plugin_id == entry.plugin_id));
            listed.insert(digest);
        }
        cursor = entries.next_cursor;
        if cursor.is_none() {
            return listed;
        }
    }
}

#[tokio::test]
async fn what_was_answered_is_there_and_nothing_is_half_there() {
    let root = Root::new();
    let mut published = BTreeSet::new();
    for (round, lines) in [(0u64, 1), (1, 12), (2, 31)] {
        let said = Victim::start(&root.path(), round * 100_000).kill_after(lines);
        let store = root.open(ArtifactPlace::Disk);
        let temporary = |name: &String| name.len() != 64;
        assert_eq!(
            files(&root.path()).iter().find(|name| temporary(name)),
            None
        );
        let listed = whole(&store).await;
        for line in said {
            if let Some(digest) = line.strip_prefix("upload ") {
                let known = store.artifact(digest.parse().unwrap()).await.unwrap();
                assert!(known.is_some(), "{line}");
            } else {
                published.insert(line.parse::<Sha256Text>().unwrap());
            }
        }
        assert!(published.is_subset(&listed));
        // What nobody released is gone after its time, whatever state it was left in.
        store.collect(at(24)).await.unwrap();
        let names = listed
            .iter()
            .map(|digest| digest.to_string().replace("sha256:", ""));
        assert_eq!(files(&root.path()), names.collect());
        assert_eq!(whole(&store).await, listed);
    }
    assert!(published.len() >= 12, "{}", published.len());
}

/// Stops a registry between two writes of one publishing: a trigger before the second of them
/// counts without end, and there the process is killed.
#[tokio::test]
async fn killed_between_release_channel_and_catalog_leaves_none_of_them() {
    for table in ["releases", "channels", "catalog"] {
        let root = Root::new();
        drop(root.open(ArtifactPlace::Disk));
        let database = root.path().join("registry.sqlite");
        let trap = format!(
            "CREATE TRIGGER trap BEFORE INSERT ON {table} BEGIN SELECT count(*) FROM \
             (WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n); END"
        );
        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.execute_batch(&trap).unwrap();
        drop(connection);
        let mut victim = Victim::start(&root.path(), 0);
        // It does some hundred milliseconds of work until it is in the trap, and only counts there.
        while ticks(victim.0.id()) < 100 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(victim.0.try_wait().unwrap().is_none());
        }
        let said = victim.kill_after(0);
        assert!(
            said.iter().all(|line| line.starts_with("upload ")),
            "{said:?}"
        );

        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.execute_batch("DROP TRIGGER trap").unwrap();
        drop(connection);
        let store = root.open(ArtifactPlace::Disk);
        assert!(whole(&store).await.is_empty(), "{table}");
        let waiting = store.digests(None, 1_000).await.unwrap();
        assert!(!waiting.is_empty(), "{table}");
        for digest in waiting {
            assert!(!store.artifact(digest).await.unwrap().unwrap().released);
            // And it can be released now.
            let published = store.publish(digest, None, "later".to_owned(), at(1)).await;
            assert!(published.unwrap().created);
        }
    }
}

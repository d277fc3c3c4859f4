//! Locations, ownership, permissions and schemas of database files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use gate_store::{Location, SqliteStore, Store, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::{at, submit, text_job};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&Location::File(path.to_owned()), at(0)).map(|(store, _)| store)
}

fn code(path: &Path) -> &'static str {
    open(path).unwrap_err().startup_code().as_str()
}

/// A folder, and the path of a database that was opened and closed in it.
fn closed() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    drop(open(&path).unwrap());
    (folder, path)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_and_folder_are_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gate.db");
    let store = open(&path).unwrap();
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777,
        0o700
    );
    for name in ["gate.db", "gate.db-wal", "gate.db-shm", "gate.db.lock"] {
        let mode = fs::metadata(path.with_file_name(name)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
    drop(store);
}

#[test]
fn what_is_not_private_is_refused_and_left_as_it_is() {
    let (_folder, path) = closed();
    for mode in [0o644, 0o640, 0o606, 0o400, 0o700] {
        set_mode(&path, mode);
        assert_eq!(code(&path), "insecure_database", "{mode:o}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
    }
    set_mode(&path, 0o600);
    for mode in [0o750, 0o701, 0o777] {
        set_mode(path.parent().unwrap(), mode);
        assert_eq!(code(&path), "insecure_database", "{mode:o}");
    }
    set_mode(path.parent().unwrap(), 0o700);
    for name in ["gate.db-wal", "gate.db-shm", "gate.db-journal"] {
        let companion = path.with_file_name(name);
        fs::write(&companion, b"").unwrap();
        set_mode(&companion, 0o644);
        assert_eq!(code(&path), "insecure_database", "{name}");
        fs::remove_file(companion).unwrap();
    }
    open(&path).unwrap();
}

#[test]
fn links_are_refused_in_every_component() {
    let (folder, path) = closed();
    let link = path.with_file_name("link.db");
    symlink(&path, &link).unwrap();
    assert_eq!(code(&link), "insecure_database");
    let linked_folder = folder.path().join("link");
    symlink(path.parent().unwrap(), &linked_folder).unwrap();
    assert_eq!(code(&linked_folder.join("gate.db")), "insecure_database");
    let wal = path.with_file_name("gate.db-wal");
    symlink("/dev/null", &wal).unwrap();
    assert_eq!(code(&path), "insecure_database");
    fs::remove_file(wal).unwrap();
    fs::create_dir(path.with_file_name("folder.db")).unwrap();
    assert_eq!(code(&path.with_file_name("folder.db")), "insecure_database");
}

#[test]
fn a_second_gate_is_refused_and_the_first_goes_on() {
    let (_folder, path) = closed();
    let first = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreError::AlreadyOwned { .. }));
    assert_eq!(error.startup_code().as_str(), "already_owned");
    assert!(
        error.to_string().contains("another running Gate"),
        "{error}"
    );
    drop(first);
    open(&path).unwrap();
}

#[test]
fn another_programs_database_is_refused_in_clear_words_and_untouched() {
    for (sql, words) in [
        (
            "CREATE TABLE jobs (id TEXT PRIMARY KEY, input TEXT, task_json TEXT, status TEXT); PRAGMA user_version = 7",
            "original Agent Forge",
        ),
        ("CREATE TABLE bookmarks (url TEXT)", "another program"),
        ("PRAGMA application_id = 77", "another program"),
        ("PRAGMA user_version = 3", "another program"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        set_mode(folder.path(), 0o700);
        set_mode(&path, 0o600);
        let before = fs::read(&path).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.startup_code().as_str(), "unsupported_database");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o700);
    let path = folder.path().join("gate.db");
    fs::write(
        &path,
        "not a database, and long enough to have a header of one hundred bytes. ".repeat(40),
    )
    .unwrap();
    set_mode(&path, 0o600);
    let error = open(&path).unwrap_err();
    assert!(
        error.to_string().contains("is no SQLite database"),
        "{error}"
    );
}

#[test]
fn r23_a_newer_schema_is_refused() {
    let (_folder, path) = closed();
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    let error = open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::NewerSchema {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.startup_code().as_str(), "unsupported_database");
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let (_folder, path) = closed();
    let store = open(&path).unwrap();
    let job = submit(&store, text_job(), at(0)).await;
    drop(store);
    let store = open(&path).unwrap();
    let found = store.job(job.id).await.unwrap();
    assert_eq!(found, Some(job));
}

#[test]
fn a_path_may_be_relative_to_nothing_but_must_name_a_file() {
    for text in ["/", ".."] {
        let error = SqliteStore::open(&Location::File(text.into()), at(0)).expect_err(text);
        assert!(!error.is_refusal());
        assert!(
            ["invalid_database_location", "insecure_database"]
                .contains(&error.startup_code().as_str()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_pause_outlives_the_gate() {
    let (_folder, path) = closed();
    let pool: forge_domain::PoolId = crate::fixture::POOL.parse().unwrap();
    let store = open(&path).unwrap();
    let reason = Some("a new disk".parse().unwrap());
    let paused = store.pause_pool(pool.clone(), reason, at(1)).await.unwrap();
    drop(store);
    let store = open(&path).unwrap();
    let pools = store.pools().await.unwrap();
    assert_eq!(pools[0].pause, Some(paused.pause));
    submit(&store, text_job(), at(2)).await;
    let lane = crate::fixture::Lane::connect(&store, "w", at(2)).await;
    assert!(lane.claim(&store, at(2)).await.is_none());
    assert!(store.resume_pool(pool).await.unwrap());
    assert!(lane.claim(&store, at(2)).await.is_some());
}

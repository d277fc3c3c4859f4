//! Opening a database: location, ownership, permissions, schema, connections.
//!
//! Nothing that is found wrong is repaired. The order matters: the folder is judged before the
//! lock is taken, the lock before the file is looked at, the file before SQLite opens it, and its
//! companions again afterwards.

mod backup;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use safe_fs::{
    LockGuard, SafeFsError, check_private_file, create_private_file, lock_exclusive, private_dir,
};

use super::checkpoint::BUSY;
use super::migrate::{MIGRATIONS, examine, migrate};
use super::writer::Session;
use crate::{Location, StoreError};

/// Threads that read.
const READERS: usize = 2;
/// Prepared statements that a connection remembers: more than there are.
const STATEMENTS: usize = 128;
/// Pages that the writer keeps in memory, in KiB: the upper levels of the indexes of millions of jobs.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
const READER_CACHE_KIB: i64 = 2 * 1024;
/// The log file is cut to this size when the log starts anew.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// An open database.
pub(super) struct Opened {
    pub(super) writer: Session,
    pub(super) readers: Option<Vec<Connection>>,
    pub(super) checkpointer: Option<Connection>,
    pub(super) lock: Option<LockGuard>,
}

/// Opens or creates a database.
pub(super) fn open(location: &Location) -> Result<Opened, StoreError> {
    match location {
        Location::Memory => open_memory(),
        Location::File(path) => open_file(path, MIGRATIONS),
    }
    .map_err(|error| error.while_doing("open the database"))
}

fn open_memory() -> Result<Opened, StoreError> {
    let connection = Connection::open_in_memory()?;
    let path = Path::new(":memory:");
    migrate(
        &connection,
        path,
        examine(&connection, path)?,
        MIGRATIONS,
        |_| Ok(()),
    )?;
    configure(&connection, WRITER_CACHE_KIB)?;
    Ok(Opened {
        writer: Session::new(connection),
        readers: None,
        checkpointer: None,
        lock: None,
    })
}

fn open_file(path: &Path, migrations: &[&str]) -> Result<Opened, StoreError> {
    let path = &absolute(path)?;
    let lock = prepare(path)?;
    let connection = connect(path)?;
    migrate(
        &connection,
        path,
        examine(&connection, path)?,
        migrations,
        |schema| back_up(&connection, path, schema),
    )?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::ForeignDatabase {
            path: path.clone(),
            what: "is on a file system that cannot hold a write-ahead log",
        });
    }
    configure(&connection, WRITER_CACHE_KIB)?;
    // Makes SQLite create its companions now, so that they are judged before the Gate serves.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    check_files(path)?;
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        let reader = connect(path)?;
        configure(&reader, READER_CACHE_KIB)?;
        reader.pragma_update(None, "query_only", true)?;
        readers.push(reader);
    }
    let checkpointer = connect(path)?;
    configure(&checkpointer, READER_CACHE_KIB)?;
    Ok(Opened {
        writer: Session::new(connection),
        readers: Some(readers),
        checkpointer: Some(checkpointer),
        lock: Some(lock),
    })
}

/// Judges or makes the folder and the file, and takes the lock.
fn prepare(path: &Path) -> Result<LockGuard, StoreError> {
    let insecure = |source| StoreError::Insecure {
        path: path.to_owned(),
        source,
    };
    let unusable = |reason| StoreError::InvalidLocation {
        location: path.display().to_string(),
        reason,
    };
    let folder = path.parent().ok_or_else(|| unusable("it names no file"))?;
    private_dir(folder).map_err(insecure)?;
    let lock = lock_exclusive(&companion(path, ".lock")).map_err(|error| match error {
        SafeFsError::AlreadyOwned { .. } => StoreError::AlreadyOwned {
            path: path.to_owned(),
        },
        other => insecure(other),
    })?;
    match create_private_file(path) {
        Ok(_) | Err(SafeFsError::AlreadyExists { .. }) => {}
        Err(error) => return Err(insecure(error)),
    }
    check_files(path)?;
    Ok(lock)
}

fn check_files(path: &Path) -> Result<(), StoreError> {
    let insecure = |source| StoreError::Insecure {
        path: path.to_owned(),
        source,
    };
    check_private_file(path).map_err(insecure)?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let companion = companion(path, suffix);
        if companion.symlink_metadata().is_ok() {
            check_private_file(&companion).map_err(insecure)?;
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

fn configure(connection: &Connection, cache_kib: i64) -> Result<(), StoreError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    // Without it a statement that compares a parameter with an indexed column is compiled anew
    // whenever another value is bound: that was half of the writer's time.
    connection.set_db_config(
        rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG,
        true,
    )?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// Copies the database beside itself before its schema changes: `NAME.schema-N.bak`.
fn back_up(connection: &Connection, path: &Path, schema: i64) -> Result<(), StoreError> {
    let copy = companion(path, &format!(".schema-{schema}.bak"));
    match create_private_file(&copy) {
        Ok(_) => {}
        // An earlier migration of this schema made it and did not come to its end.
        Err(SafeFsError::AlreadyExists { .. }) => {
            fs_err::remove_file(&copy).map_err(|error| StoreError::NotCommitted {
                reason: error.to_string(),
            })?;
            return back_up(connection, path, schema);
        }
        Err(source) => return Err(StoreError::Insecure { path: copy, source }),
    }
    copy_into(connection, &copy)?;
    tracing::info!(
        path = %copy.display(),
        schema,
        "database backed up before its schema changes"
    );
    Ok(())
}

/// Writes a copy of one moment into an empty file, on the disk when it returns.
fn copy_into(connection: &Connection, copy: &Path) -> Result<(), StoreError> {
    let name = copy.to_str().ok_or_else(|| StoreError::InvalidLocation {
        location: copy.display().to_string(),
        reason: "it is not UTF-8",
    })?;
    connection.execute("VACUUM INTO ?1", [name])?;
    let sync = |path: &Path| fs_err::File::open(path).and_then(|file| file.sync_all());
    let folder = copy.parent().unwrap_or(copy);
    sync(copy)
        .and_then(|()| sync(folder))
        .map_err(|error| StoreError::NotCommitted {
            reason: error.to_string(),
        })
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|_| StoreError::InvalidLocation {
        location: path.display().to_string(),
        reason: "it names no file",
    })
}

fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn r23_a_migration_keeps_a_private_copy_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/gate.db");
        drop(open_file(&path, &MIGRATIONS[..1]).unwrap());
        let filled = Connection::open(&path).unwrap();
        filled
            .execute(
                "INSERT INTO policies (digest, canonical) VALUES ('d', '{}')",
                [],
            )
            .unwrap();
        drop(filled);
        let copy = companion(&path, ".schema-1.bak");
        // Left by a migration that did not come to its end; it must not be in the way.
        drop(create_private_file(&copy).unwrap());

        let newer = &[MIGRATIONS[0], "DELETE FROM policies"];
        drop(open_file(&path, newer).unwrap());
        let count = |path: &Path| -> i64 {
            let connection = Connection::open(path).unwrap();
            connection
                .query_row("SELECT count(*) FROM policies", [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!((count(&path), count(&copy)), (0, 1));
        assert_eq!(fs_err::metadata(&copy).unwrap().mode() & 0o777, 0o600);
        let refused = open_file(&path, &MIGRATIONS[..1]).err().unwrap();
        assert!(matches!(
            refused,
            StoreError::NewerSchema {
                found: 2,
                known: 1,
                ..
            }
        ));
    }

    #[test]
    fn durability_is_not_left_to_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/gate.db");
        let opened = open_file(&path, MIGRATIONS).unwrap();
        let pragma = |name| -> i64 {
            opened
                .writer
                .connection()
                .pragma_query_value(None, name, |row| row.get(0))
                .unwrap()
        };
        assert_eq!(
            (
                pragma("synchronous"),
                pragma("foreign_keys"),
                pragma("wal_autocheckpoint")
            ),
            (2, 1, 0)
        );
        assert_eq!(
            pragma("application_id"),
            super::super::migrate::APPLICATION_ID
        );
        for reader in opened.readers.unwrap() {
            assert!(reader.execute("DELETE FROM jobs", []).is_err());
        }
    }
}

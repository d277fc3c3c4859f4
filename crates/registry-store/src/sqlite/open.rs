//! Opening a registry's folder: ownership, permissions, lock, schema, connections.
//!
//! Nothing that is found wrong is repaired. The order matters: the folder is judged before the
//! lock is taken, the lock before the file is looked at, the file before SQLite opens it, and its
//! companions again afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use safe_fs::{
    LockGuard, SafeFsError, check_private_file, create_private_file, lock_exclusive, private_dir,
};

use super::migrate::{MIGRATIONS, migrate};
use crate::StoreError;

/// The database below the root.
pub(super) const DATABASE: &str = "registry.sqlite";
const LOCK: &str = "registry.lock";
/// Threads that read.
const READERS: usize = 2;
/// Prepared statements that a connection remembers: more than there are.
const STATEMENTS: usize = 64;
/// What a connection keeps of the file in memory; the walk over a large catalog wants it.
const CACHE_KIB: i64 = 16 * 1024;
/// The log file is cut to this size when the log starts anew.
const LOG_BYTES: i64 = 64 * 1024 * 1024;
/// How long a connection waits for another of this process.
const BUSY: Duration = Duration::from_secs(5);

/// An open database.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    pub(super) lock: LockGuard,
}

/// Opens or creates a registry's database.
pub(super) fn open(root: &Path) -> Result<Opened, StoreError> {
    let root = std::path::absolute(root).map_err(|_| StoreError::InvalidRoot {
        path: root.to_owned(),
        reason: "it names no folder",
    })?;
    open_with(&root, MIGRATIONS).map_err(|error| error.while_doing("open the database"))
}

fn open_with(root: &Path, migrations: &[&str]) -> Result<Opened, StoreError> {
    private_dir(root).map_err(|source| insecure(root, source))?;
    let lock = root.join(LOCK);
    let lock = lock_exclusive(&lock).map_err(|error| match error {
        SafeFsError::AlreadyOwned { .. } => StoreError::AlreadyOwned {
            path: root.to_owned(),
        },
        other => insecure(&lock, other),
    })?;
    let path = root.join(DATABASE);
    match create_private_file(&path) {
        Ok(_) | Err(SafeFsError::AlreadyExists { .. }) => {}
        Err(error) => return Err(insecure(&path, error)),
    }
    check_files(&path)?;
    let writer = connect(&path)?;
    migrate(&writer, &path, migrations, |schema| {
        back_up(&writer, &path, schema)
    })?;
    let mode: String =
        writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::InvalidRoot {
            path: root.to_owned(),
            reason: "its file system cannot hold a write-ahead log",
        });
    }
    configure(&writer)?;
    // Makes SQLite create its companions now, so that they are judged before anything is served.
    writer.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    check_files(&path)?;
    let readers = (0..READERS)
        .map(|_| {
            let reader = connect(&path)?;
            configure(&reader)?;
            reader.pragma_update(None, "query_only", true)?;
            Ok(reader)
        })
        .collect::<Result<_, StoreError>>()?;
    Ok(Opened {
        writer,
        readers,
        lock,
    })
}

fn insecure(path: &Path, source: SafeFsError) -> StoreError {
    StoreError::Insecure {
        path: path.to_owned(),
        source,
    }
}

fn check_files(path: &Path) -> Result<(), StoreError> {
    check_private_file(path).map_err(|source| insecure(path, source))?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let companion = companion(path, suffix);
        if companion.symlink_metadata().is_ok() {
            check_private_file(&companion).map_err(|source| insecure(&companion, source))?;
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

fn configure(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    // Otherwise a statement that compares a parameter with an indexed column is compiled anew
    // whenever another value is bound.
    connection.set_db_config(
        rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG,
        true,
    )?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// Copies the database beside itself before its schema changes: `registry.sqlite.schema-N.bak`.
fn back_up(connection: &Connection, path: &Path, schema: i64) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::NotCommitted {
        reason: error.to_string(),
    };
    let copy = companion(path, &format!(".schema-{schema}.bak"));
    match fs_err::remove_file(&copy) {
        // An earlier migration of this schema made it and did not come to its end.
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    drop(create_private_file(&copy).map_err(|source| insecure(&copy, source))?);
    let name = copy.to_str().ok_or_else(|| StoreError::InvalidRoot {
        path: copy.clone(),
        reason: "it is not UTF-8",
    })?;
    connection.execute("VACUUM INTO ?1", [name])?;
    let sync = |path: &Path| fs_err::File::open(path).and_then(|file| file.sync_all());
    sync(&copy).map_err(failed)?;
    sync(copy.parent().unwrap_or(&copy)).map_err(failed)
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
    fn a_migration_keeps_a_private_copy_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("registry");
        let opened = open_with(&root, &MIGRATIONS[..1]).unwrap();
        let sql = "INSERT INTO plugins (plugin_id, updated_at) VALUES ('a', 0)";
        opened.writer.execute(sql, []).unwrap();
        drop(opened);
        let copy = root.join("registry.sqlite.schema-1.bak");
        drop(create_private_file(&copy).unwrap());

        let steps = [MIGRATIONS[0], "DELETE FROM plugins"];
        drop(open_with(&root, &steps).unwrap());
        let count = |path: &Path| -> i64 {
            let sql = "SELECT count(*) FROM plugins";
            let connection = Connection::open(path).unwrap();
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count(&root.join(DATABASE)), count(&copy)), (0, 1));
        assert_eq!(fs_err::metadata(&copy).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn durability_is_not_left_to_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&folder.path().join("registry")).unwrap();
        let pragma = |name| -> i64 {
            let read = |row: &rusqlite::Row<'_>| row.get(0);
            opened.writer.pragma_query_value(None, name, read).unwrap()
        };
        assert_eq!((pragma("synchronous"), pragma("foreign_keys")), (2, 1));
        assert_eq!(
            pragma("application_id"),
            super::super::migrate::APPLICATION_ID
        );
        for reader in opened.readers {
            assert!(reader.execute("DELETE FROM plugins", []).is_err());
        }
    }
}

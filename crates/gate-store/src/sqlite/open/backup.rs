//! Copies of a database, also of one that a Gate has in use.

use std::path::Path;

use rusqlite::Connection;
use safe_fs::{SafeFsError, check_private_file, create_private_file};

use super::{absolute, check_files, connect};
use crate::sqlite::SqliteStore;
use crate::sqlite::migrate::{Found, MIGRATIONS, examine};
use crate::{Location, StoreError};

impl SqliteStore {
    /// Copies a database to a new private file, checks the copy and answers how many jobs are in
    /// it. A Gate may have the database in use: the copy is of one moment, and nobody waits for it.
    /// Blocks.
    ///
    /// # Errors
    /// The database or the place of the copy cannot be used; no copy is left behind then.
    pub fn back_up(database: &Location, copy: &Path) -> Result<u64, StoreError> {
        let doing = |error: StoreError| error.while_doing("copy the database");
        let path = match database {
            Location::File(path) => absolute(path)?,
            Location::Memory => {
                return Err(StoreError::InvalidLocation {
                    location: ":memory:".to_owned(),
                    reason: "a database in memory cannot be copied from outside",
                });
            }
        };
        let connection = of_ours(&path).map_err(doing)?;
        let copy = absolute(copy)?;
        drop(create_private_file(&copy).map_err(|source| unusable(&copy, source))?);
        write(&connection, &copy).map_err(|error| {
            // What is half written is no backup; the error says more than a failed removal would.
            drop(fs_err::remove_file(&copy));
            doing(error)
        })
    }
}

/// Opens a database without owning it, and without making one that is not there.
fn of_ours(path: &Path) -> Result<Connection, StoreError> {
    check_private_file(path).map_err(|source| unusable(path, source))?;
    check_files(path)?;
    let connection = connect(path)?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    match examine(&connection, path)? {
        Found::Ours(schema) if schema <= known => Ok(connection),
        Found::Ours(found) => Err(StoreError::NewerSchema {
            path: path.to_owned(),
            found,
            known,
        }),
        Found::Empty => Err(StoreError::ForeignDatabase {
            path: path.to_owned(),
            what: "is empty",
        }),
    }
}

fn write(connection: &Connection, copy: &Path) -> Result<u64, StoreError> {
    super::copy_into(connection, copy)?;
    let written = connect(copy)?;
    let verdict: String = written.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(StoreError::Inconsistent {
            what: "the copy".to_owned(),
            reason: verdict,
        });
    }
    let jobs: i64 = written.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
    Ok(jobs.unsigned_abs())
}

fn unusable(path: &Path, source: SafeFsError) -> StoreError {
    let reason = match &source {
        SafeFsError::AlreadyExists { .. } => "it exists already",
        other if other.is_not_found() => "there is no such file or folder",
        _ => {
            return StoreError::Insecure {
                path: path.to_owned(),
                source,
            };
        }
    };
    StoreError::InvalidLocation {
        location: path.display().to_string(),
        reason,
    }
}

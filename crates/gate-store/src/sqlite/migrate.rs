//! Schemas, in the order in which they follow each other; only ever appended to.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// "AFG1": marks a file as ours, so that no other program's database is ever written to.
pub(super) const APPLICATION_ID: i64 = 0x4146_4731;

/// What turns schema n into schema n + 1; the first one starts from nothing.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("schema_1.sql")];

/// What a file turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing is in it yet.
    Empty,
    /// A database of ours with this schema.
    Ours(i64),
}

/// Looks at a database without changing it.
pub(super) fn examine(connection: &Connection, path: &Path) -> Result<Found, StoreError> {
    let foreign = |what| StoreError::ForeignDatabase {
        path: path.to_owned(),
        what,
    };
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = match pragma("application_id") {
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.code == rusqlite::ErrorCode::NotADatabase =>
        {
            return Err(foreign("is no SQLite database"));
        }
        other => other?,
    };
    let version = pragma("user_version")?;
    if application == APPLICATION_ID {
        return Ok(Found::Ours(version));
    }
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if count("SELECT count(*) FROM pragma_table_info('jobs') WHERE name = 'task_json'")? > 0 {
        return Err(foreign(
            "was written by the original Agent Forge Gate, whose jobs cannot be taken over",
        ));
    }
    if application != 0 || version != 0 || count("SELECT count(*) FROM sqlite_schema")? > 0 {
        return Err(foreign("belongs to another program"));
    }
    Ok(Found::Empty)
}

/// Brings a database to the newest schema, each step in a transaction of its own.
///
/// `backup` is called once with the old schema, before anything changes.
pub(super) fn migrate(
    connection: &Connection,
    path: &Path,
    found: Found,
    migrations: &[&str],
    backup: impl FnOnce(i64) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let version = match found {
        Found::Empty => 0,
        Found::Ours(version) => version,
    };
    if version > known || version < 0 {
        return Err(StoreError::NewerSchema {
            path: path.to_owned(),
            found: version,
            known,
        });
    }
    if version == known {
        return Ok(());
    }
    if found != Found::Empty {
        backup(version)?;
    }
    for (next, sql) in (1i64..)
        .zip(migrations)
        .skip(usize::try_from(version).unwrap_or(usize::MAX))
    {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", next)?;
        transaction.commit()?;
        tracing::info!(schema = next, "database schema written");
    }
    Ok(())
}

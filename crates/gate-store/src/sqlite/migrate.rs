//! Schemas, in the order in which they follow each other; only ever appended to.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// "AFG1": marks a file as ours, so that no other program's database is ever written to.
pub(super) const APPLICATION_ID: i64 = 0x4146_4731;

/// What turns schema n into schema n + 1; the first one starts from nothing.
pub(super) const MIGRATIONS: &[&str] =
    &[include_str!("schema_1.sql"), include_str!("schema_2.sql")];

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

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[&str] = &[
        "CREATE TABLE a (x INTEGER)",
        "ALTER TABLE a ADD COLUMN y INTEGER; INSERT INTO a (x) VALUES (1)",
        "CREATE TABLE b (z INTEGER)",
    ];

    fn place() -> &'static Path {
        Path::new("gate.db")
    }

    fn version(connection: &Connection) -> i64 {
        connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn r23_each_step_runs_once_and_a_backup_comes_before_the_first() {
        let connection = Connection::open_in_memory().unwrap();
        let none = |_| panic!("an empty database needs no backup");
        let found = examine(&connection, place()).unwrap();
        migrate(&connection, place(), found, &STEPS[..1], none).unwrap();
        assert_eq!(examine(&connection, place()).unwrap(), Found::Ours(1));

        let mut backups = Vec::new();
        let back_up = |schema| {
            backups.push((schema, version(&connection)));
            Ok(())
        };
        migrate(&connection, place(), Found::Ours(1), STEPS, back_up).unwrap();
        assert_eq!((backups, version(&connection)), (vec![(1, 1)], 3));
        migrate(&connection, place(), Found::Ours(3), STEPS, none).unwrap();
        let rows: i64 = connection
            .query_row("SELECT count(*) FROM a", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
    }

    #[test]
    fn r23_a_step_that_fails_leaves_the_schema_before_it() {
        let connection = Connection::open_in_memory().unwrap();
        let steps = &[
            STEPS[0],
            "CREATE TABLE b (z INTEGER); CREATE TABLE a (again INTEGER)",
        ];
        let failed = migrate(&connection, place(), Found::Empty, steps, |_| Ok(()));
        assert!(matches!(failed, Err(StoreError::Database { .. })));
        assert_eq!(version(&connection), 1);
        assert!(
            connection
                .execute("INSERT INTO b (z) VALUES (1)", [])
                .is_err()
        );
    }

    #[test]
    fn r23_without_a_backup_nothing_changes() {
        let connection = Connection::open_in_memory().unwrap();
        migrate(&connection, place(), Found::Empty, &STEPS[..1], |_| Ok(())).unwrap();
        let failed = migrate(&connection, place(), Found::Ours(1), STEPS, |_| {
            Err(StoreError::Closed)
        });
        assert!(matches!(failed, Err(StoreError::Closed)));
        assert_eq!(version(&connection), 1);
    }

    #[test]
    fn a_schema_that_is_not_known_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        for version in [4, i64::MAX, -1] {
            let refused = migrate(
                &connection,
                place(),
                Found::Ours(version),
                STEPS,
                |_| Ok(()),
            );
            assert!(
                matches!(refused, Err(StoreError::NewerSchema { known: 3, .. })),
                "{version}"
            );
        }
    }
}

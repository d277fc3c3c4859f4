//! Schemas, in the order in which they follow each other; only ever appended to.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// "AFR1": marks a file as ours, so that no other program's database is ever written to.
pub(super) const APPLICATION_ID: i64 = 0x4146_5231;

/// What turns schema n into schema n + 1; the first one starts from nothing.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("schema_1.sql")];

/// What a file turns out to be: the schema of a database of ours, or nothing yet.
pub(super) fn examine(connection: &Connection, path: &Path) -> Result<Option<i64>, StoreError> {
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
        return Ok(Some(version));
    }
    let sql = "SELECT count(*) FROM sqlite_schema";
    let objects: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if application != 0 || version != 0 || objects > 0 {
        return Err(foreign("belongs to another program"));
    }
    Ok(None)
}

/// Brings a database to the newest schema, each step in a transaction of its own.
///
/// `backup` is called once with the old schema, before anything changes.
pub(super) fn migrate(
    connection: &Connection,
    path: &Path,
    migrations: &[&str],
    backup: impl FnOnce(i64) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let found = examine(connection, path)?;
    let version = found.unwrap_or(0);
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
    if found.is_some() {
        backup(version)?;
    }
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for (next, sql) in (1i64..).zip(migrations).skip(done) {
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
    ];

    fn place() -> &'static Path {
        Path::new("registry.sqlite")
    }

    #[test]
    fn each_step_runs_once_and_a_backup_comes_before_the_first() {
        let connection = Connection::open_in_memory().unwrap();
        let none = |_| panic!("an empty database needs no backup");
        migrate(&connection, place(), &STEPS[..1], none).unwrap();
        assert_eq!(examine(&connection, place()).unwrap(), Some(1));

        let stopped = migrate(&connection, place(), STEPS, |_| Err(StoreError::Closed));
        assert!(matches!(stopped, Err(StoreError::Closed)));
        assert_eq!(examine(&connection, place()).unwrap(), Some(1));

        let mut backups = Vec::new();
        let back_up = |schema| {
            backups.push(schema);
            Ok(())
        };
        migrate(&connection, place(), STEPS, back_up).unwrap();
        assert_eq!(backups, [1]);
        migrate(&connection, place(), STEPS, none).unwrap();
        let count = "SELECT count(*) FROM a";
        let rows: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }

    #[test]
    fn what_is_not_ours_or_too_new_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        migrate(&connection, place(), STEPS, |_| Ok(())).unwrap();
        let refused = migrate(&connection, place(), &STEPS[..1], |_| Ok(()));
        assert!(matches!(
            refused,
            Err(StoreError::NewerSchema {
                found: 2,
                known: 1,
                ..
            })
        ));

        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE x (y INTEGER)")
            .unwrap();
        let refused = migrate(&connection, place(), STEPS, |_| Ok(()));
        assert!(matches!(refused, Err(StoreError::ForeignDatabase { .. })));
    }
}

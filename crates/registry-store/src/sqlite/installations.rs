//! What hosts say of their installations.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::cursor;
use super::rows::{integer, micros, parsed, release_id, sha256, time};
use crate::{
    Installation, InstallationFilter, InstallationStatus, Limits, Listed, Page, PluginId, Report,
    StoreError,
};

const COLUMNS: &str = "SELECT installation_id, host, plugin_id, release_id, digest, status, error, \
     reported_at, reported_by FROM installations \
     JOIN releases ON releases.seq = installations.release \
     JOIN artifacts ON artifacts.seq = releases.artifact";

/// Remembers a report in place of the one before.
pub(crate) fn report(
    connection: &Connection,
    report: &Report,
    by: &str,
    now: Timestamp,
    limits: &Limits,
) -> Result<Installation, StoreError> {
    let (plugin, release) = reported_release(connection, report)?;
    let id = report.installation_id.as_str();
    let sql = "SELECT plugin FROM installations WHERE installation_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let before: Option<i64> = statement.query_row([id], |row| row.get(0)).optional()?;
    match before {
        Some(before) if before != plugin => return Err(StoreError::InstallationTaken),
        Some(_) => {}
        None => count_one_more(connection, limits)?,
    }
    let sql = "INSERT INTO installations (installation_id, host, plugin, release, status, error, reported_at, reported_by) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
               ON CONFLICT (installation_id) DO UPDATE SET host = excluded.host, release = excluded.release, \
               status = excluded.status, error = excluded.error, reported_at = excluded.reported_at, \
               reported_by = excluded.reported_by";
    connection.prepare_cached(sql)?.execute(params![
        id,
        report.host,
        plugin,
        release,
        report.status.as_str(),
        report.error,
        micros(now),
        by,
    ])?;
    let mut statement =
        connection.prepare_cached(&format!("{COLUMNS} WHERE installation_id = ?1"))?;
    let mut rows = statement.query([id])?;
    let row = rows.next()?.ok_or(StoreError::Inconsistent {
        what: "an installation is missing",
    })?;
    installation(row)
}

/// Finds the release that is reported of, whose plugin and bytes must be those of the report.
fn reported_release(connection: &Connection, report: &Report) -> Result<(i64, i64), StoreError> {
    let sql = "SELECT releases.plugin, releases.seq FROM releases \
               JOIN artifacts ON artifacts.seq = releases.artifact \
               WHERE release_id = ?1 AND plugin_id = ?2 AND digest = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let values = params![
        report.release_id.as_bytes(),
        report.plugin_id.as_str(),
        report.artifact_digest.as_bytes(),
    ];
    statement
        .query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or(StoreError::NotFound { what: "release" })
}

fn count_one_more(connection: &Connection, limits: &Limits) -> Result<(), StoreError> {
    let sql = "UPDATE counts SET n = n + 1 WHERE what = 'installations' AND n < ?1";
    let changed = connection
        .prepare_cached(sql)?
        .execute([integer(limits.installations)])?;
    if changed == 0 {
        return Err(StoreError::TooMany {
            what: "installations",
            limit: limits.installations,
        });
    }
    Ok(())
}

/// Lists installations by id.
pub(crate) fn list(
    connection: &Connection,
    filter: &InstallationFilter,
    page: &Page,
) -> Result<Listed<Installation>, StoreError> {
    let plugin = filter.plugin_id.as_ref().map_or("", PluginId::as_str);
    let host = filter.host.as_deref().unwrap_or_default();
    let name = ["installations", plugin, host];
    let after = match &page.cursor {
        None => String::new(),
        Some(cursor) => cursor::read(&name, cursor)?,
    };
    // An index of its own serves each kind; of one host there are so few that they are looked through.
    let condition = match (&filter.plugin_id, &filter.host) {
        (None, None) => "?2 = ?2 AND ?3 = ?3",
        (Some(_), None) => {
            "installations.plugin = (SELECT seq FROM plugins WHERE plugin_id = ?2) AND ?3 = ?3"
        }
        (None, Some(_)) => "?2 = ?2 AND host = ?3",
        (Some(_), Some(_)) => {
            "+installations.plugin = (SELECT seq FROM plugins WHERE plugin_id = ?2) AND host = ?3"
        }
    };
    let sql = format!(
        "{COLUMNS} WHERE {condition} AND installation_id > ?1 ORDER BY installation_id LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let values = params![after, plugin, host, i64::from(page.limit) + 1];
    let rows = statement.query_and_then(values, installation)?;
    let mut data = rows.collect::<Result<Vec<_>, _>>()?;
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let more = data.len() > limit;
    data.truncate(limit);
    let last = data.last().filter(|_| more);
    let next_cursor = last.map(|last| cursor::make(&name, last.installation_id.as_str()));
    Ok(Listed { data, next_cursor })
}

fn installation(row: &Row<'_>) -> Result<Installation, StoreError> {
    let status: String = row.get("status")?;
    Ok(Installation {
        installation_id: parsed(row, "installation_id")?,
        host: row.get("host")?,
        plugin_id: parsed(row, "plugin_id")?,
        release_id: release_id(row, "release_id")?,
        artifact_digest: sha256(row, "digest")?,
        status: InstallationStatus::from_name(&status).ok_or(StoreError::Inconsistent {
            what: "the status of an installation",
        })?,
        error: row.get("error")?,
        reported_at: time(row, "reported_at")?,
        reported_by: row.get("reported_by")?,
    })
}

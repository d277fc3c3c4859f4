//! Releases as they are read.

use rusqlite::{Connection, OptionalExtension, Row, params};
use strict_json::{Layout, Object, parse_object};

use super::cursor;
use super::rows::{count, parsed, release_id, sha256, time};
use crate::{
    ChannelName, Listed, MAX_LISTED_DESCRIPTION, Page, PluginId, Release, ReleaseId, ReleaseStatus,
    StoreError, Wanted,
};

/// Those under which manifests are loaded.
const MANIFEST: strict_json::Limits = strict_json::Limits {
    bytes: 1 << 20,
    depth: 128,
};

const COLUMNS: &str = "SELECT releases.seq, release_id, artifacts.plugin_id, version, description, digest, bytes, \
     unpacked_bytes, files, published_at, publisher, yanked_at, yanked_reason, manifest, \
     EXISTS (SELECT 1 FROM receipts WHERE receipts.artifact = releases.artifact) AS receipt \
     FROM releases JOIN artifacts ON artifacts.seq = releases.artifact";

/// Which parts of a release are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Listed,
}

/// A release and its row.
pub(super) struct Found {
    pub(super) seq: i64,
    pub(super) release: Release,
}

/// Finds one release by what is wanted.
pub(crate) fn resolve(connection: &Connection, wanted: &Wanted) -> Result<Release, StoreError> {
    let missing = StoreError::NotFound { what: "release" };
    if wanted.channel.is_some() && wanted.plugin_id.is_none() {
        return Err(StoreError::Invalid {
            what: "channel",
            rule: "needs a `plugin_id`",
        });
    }
    let Some(wanted_id) = wanted.release_id else {
        let Some(plugin) = &wanted.plugin_id else {
            return Err(StoreError::Invalid {
                what: "plugin_id",
                rule: "or `release_id` must be given",
            });
        };
        let stable = ChannelName::stable();
        let channel = wanted.channel.as_ref().unwrap_or(&stable);
        let seq = channel_target(connection, plugin, channel)?.ok_or(missing)?;
        let release = by_seq(connection, seq)?;
        return match release.status {
            ReleaseStatus::Published => Ok(release),
            ReleaseStatus::Yanked => Err(StoreError::Yanked {
                release_id: release.release_id,
                gone: true,
            }),
        };
    };
    let release = by_id(connection, wanted_id)?.ok_or(missing)?.release;
    let fits = wanted
        .plugin_id
        .as_ref()
        .is_none_or(|plugin| *plugin == release.plugin_id)
        && wanted
            .channel
            .as_ref()
            .is_none_or(|channel| release.channels.contains(channel));
    if !fits {
        return Err(StoreError::NotFound { what: "release" });
    }
    Ok(release)
}

/// Finds where a channel points.
fn channel_target(
    connection: &Connection,
    plugin: &PluginId,
    channel: &ChannelName,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT release FROM channels JOIN plugins ON plugins.seq = channels.plugin \
               WHERE plugin_id = ?1 AND channel = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![plugin.as_str(), channel.as_str()], |row| row.get(0));
    Ok(found.optional()?)
}

/// Finds a release by its id.
pub(super) fn by_id(connection: &Connection, id: ReleaseId) -> Result<Option<Found>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE release_id = ?1"))?;
    let mut rows = statement.query([id.as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    found(connection, row, Part::Whole).map(Some)
}

/// Reads a release that is there.
pub(super) fn by_seq(connection: &Connection, seq: i64) -> Result<Release, StoreError> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE releases.seq = ?1"))?;
    let mut rows = statement.query([seq])?;
    let row = rows.next()?.ok_or(StoreError::Inconsistent {
        what: "a release is missing",
    })?;
    Ok(found(connection, row, Part::Whole)?.release)
}

/// Lists the releases of a plugin, the newest first.
pub(crate) fn list(
    connection: &Connection,
    plugin: &PluginId,
    page: &Page,
) -> Result<Listed<Release>, StoreError> {
    let name = ["releases", plugin.as_str()];
    let before = match &page.cursor {
        None => i64::MAX,
        Some(cursor) => cursor::read(&name, cursor)?
            .parse()
            .map_err(|_| StoreError::InvalidCursor)?,
    };
    let sql = "SELECT seq FROM plugins WHERE plugin_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let owner: i64 = statement
        .query_row([plugin.as_str()], |row| row.get(0))
        .optional()?
        .ok_or(StoreError::NotFound { what: "plugin" })?;
    let sql = format!(
        "{COLUMNS} WHERE releases.plugin = ?1 AND releases.seq < ?2 ORDER BY releases.seq DESC LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement
        .query_and_then(params![owner, before, i64::from(page.limit) + 1], |row| {
            found(connection, row, Part::Listed)
        })?;
    let mut releases = rows.collect::<Result<Vec<_>, _>>()?;
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let more = releases.len() > limit;
    releases.truncate(limit);
    let next_cursor = releases
        .last()
        .filter(|_| more)
        .map(|last| cursor::make(&name, &last.seq.to_string()));
    Ok(Listed {
        data: releases.into_iter().map(|found| found.release).collect(),
        next_cursor,
    })
}

fn found(connection: &Connection, row: &Row<'_>, part: Part) -> Result<Found, StoreError> {
    let seq = row.get("seq")?;
    let plugin_id: PluginId = parsed(row, "plugin_id")?;
    let yanked_at: Option<i64> = row.get("yanked_at")?;
    let description: Option<String> = row.get("description")?;
    let release = Release {
        release_id: release_id(row, "release_id")?,
        name: plugin_id.to_string(),
        plugin_id,
        version: row.get("version")?,
        description: match part {
            Part::Whole => description,
            Part::Listed => description.map(|text| listed(&text)),
        },
        channels: channels(connection, seq)?,
        artifact_digest: sha256(row, "digest")?,
        artifact_bytes: count(row, "bytes")?,
        unpacked_bytes: count(row, "unpacked_bytes")?,
        files: count(row, "files")?,
        published_at: time(row, "published_at")?,
        publisher: row.get("publisher")?,
        status: match yanked_at {
            None => ReleaseStatus::Published,
            Some(_) => ReleaseStatus::Yanked,
        },
        yanked_reason: row.get("yanked_reason")?,
        receipt: row.get("receipt")?,
        manifest: match part {
            Part::Whole => Some(manifest(row)?),
            Part::Listed => None,
        },
    };
    Ok(Found { seq, release })
}

fn manifest(row: &Row<'_>) -> Result<Object, StoreError> {
    let bytes = row.get_ref("manifest")?;
    let bytes = bytes.as_blob().map_err(rusqlite::Error::from)?;
    parse_object(bytes, &MANIFEST, Layout::Spaced).map_err(|_| StoreError::Inconsistent {
        what: "a manifest that was loaded is none",
    })
}

fn channels(connection: &Connection, release: i64) -> Result<Vec<ChannelName>, StoreError> {
    let sql = "SELECT channel FROM channels WHERE release = ?1 ORDER BY channel";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then([release], |row| parsed(row, "channel"))?;
    rows.collect()
}

/// Cuts a description as lists show it.
pub(super) fn listed(text: &str) -> String {
    bounded::text::head(text, MAX_LISTED_DESCRIPTION).to_owned()
}

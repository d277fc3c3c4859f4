//! Changes of what a plugin offers: publishing, channels, yanking. Each writes the catalog with it.

use digest_text::Sha256Text;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::releases::{by_id, by_seq};
use super::rows::{micros, release_id};
use super::{catalog, uploads};
use crate::{
    ChannelName, Limits, PluginId, Published, Release, ReleaseId, ReleaseStatus, StoreError,
};

/// A channel that is to point somewhere else.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) plugin: PluginId,
    pub(crate) channel: ChannelName,
    pub(crate) release: ReleaseId,
    pub(crate) expected: Option<ReleaseId>,
}

/// Publishes an upload.
pub(crate) fn publish(
    connection: &Connection,
    artifact: Sha256Text,
    channel: Option<&ChannelName>,
    publisher: &str,
    now: Timestamp,
    limits: &Limits,
) -> Result<Published, StoreError> {
    let known = uploads::find(connection, artifact)?.filter(|known| known.kept);
    let known = known.ok_or(StoreError::NotFound { what: "upload" })?;
    let plugin_id = &known.artifact.plugin_id;
    let id = ReleaseId::of(plugin_id, &artifact);
    let before = by_id(connection, id)?;
    if let Some(before) = &before
        && before.release.status == ReleaseStatus::Yanked
    {
        return Err(StoreError::Yanked {
            release_id: id,
            gone: false,
        });
    }
    let plugin = plugin_seq(connection, plugin_id, now)?;
    let created = before.is_none();
    let seq = match before {
        Some(before) => before.seq,
        None => insert(connection, plugin, id, artifact, publisher, now)?,
    };
    let mut changed = created;
    if let Some(channel) = channel {
        let target = target(connection, plugin, channel)?;
        match target {
            Some((at, _)) if at == seq => {}
            // Going back to an older release is what promoting is for, with a scope of its own.
            Some((_, found)) if !created => {
                return Err(StoreError::ChannelTaken {
                    channel: channel.clone(),
                    found,
                });
            }
            _ => {
                point(connection, plugin, channel, seq, now, limits)?;
                changed = true;
            }
        }
    }
    if changed {
        touch(connection, plugin, now)?;
    }
    Ok(Published {
        release: by_seq(connection, seq)?,
        created,
    })
}

/// Lets a channel point at a release.
pub(crate) fn promote(
    connection: &Connection,
    wanted: &Move,
    now: Timestamp,
    limits: &Limits,
) -> Result<Release, StoreError> {
    let found = by_id(connection, wanted.release)?
        .filter(|found| found.release.plugin_id == wanted.plugin)
        .ok_or(StoreError::NotFound { what: "release" })?;
    if found.release.status == ReleaseStatus::Yanked {
        return Err(StoreError::Yanked {
            release_id: wanted.release,
            gone: false,
        });
    }
    let plugin = plugin_seq(connection, &wanted.plugin, now)?;
    let target = target(connection, plugin, &wanted.channel)?;
    let at = target.map(|(_, release)| release);
    if let Some(expected) = wanted.expected
        && at != Some(expected)
    {
        return Err(StoreError::ChannelMoved {
            channel: wanted.channel.clone(),
            found: at,
            expected,
        });
    }
    if at == Some(wanted.release) {
        return Ok(found.release);
    }
    point(connection, plugin, &wanted.channel, found.seq, now, limits)?;
    touch(connection, plugin, now)?;
    by_seq(connection, found.seq)
}

/// Takes a release out of use, or into use again.
pub(crate) fn set_yanked(
    connection: &Connection,
    release: ReleaseId,
    yanked: bool,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<Release, StoreError> {
    let found = by_id(connection, release)?.ok_or(StoreError::NotFound { what: "release" })?;
    let is_yanked = found.release.status == ReleaseStatus::Yanked;
    let says_more = reason.is_some() && reason != found.release.yanked_reason.as_deref();
    if is_yanked == yanked && !(yanked && says_more) {
        return Ok(found.release);
    }
    let sql = "UPDATE releases SET yanked_at = ?2, yanked_reason = ?3 WHERE seq = ?1";
    let at = yanked.then(|| micros(now));
    let reason = reason.filter(|_| yanked);
    connection
        .prepare_cached(sql)?
        .execute(params![found.seq, at, reason])?;
    let plugin = plugin_seq(connection, &found.release.plugin_id, now)?;
    touch(connection, plugin, now)?;
    by_seq(connection, found.seq)
}

fn plugin_seq(
    connection: &Connection,
    plugin: &PluginId,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = "SELECT seq FROM plugins WHERE plugin_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([plugin.as_str()], |row| row.get(0));
    if let Some(seq) = found.optional()? {
        return Ok(seq);
    }
    let sql = "INSERT INTO plugins (plugin_id, updated_at) VALUES (?1, ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.insert(params![plugin.as_str(), micros(now)])?)
}

fn insert(
    connection: &Connection,
    plugin: i64,
    id: ReleaseId,
    artifact: Sha256Text,
    publisher: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = "UPDATE artifacts SET state = 'released' WHERE digest = ?1";
    connection
        .prepare_cached(sql)?
        .execute([artifact.as_bytes()])?;
    let sql = "INSERT INTO releases (release_id, plugin, artifact, published_at, publisher) \
               SELECT ?1, ?2, seq, ?4, ?5 FROM artifacts WHERE digest = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.insert(params![
        id.as_bytes(),
        plugin,
        artifact.as_bytes(),
        micros(now),
        publisher,
    ])?)
}

/// Finds where a channel points: row and id.
fn target(
    connection: &Connection,
    plugin: i64,
    channel: &ChannelName,
) -> Result<Option<(i64, ReleaseId)>, StoreError> {
    let sql = "SELECT release, release_id FROM channels JOIN releases ON releases.seq = channels.release \
               WHERE channels.plugin = ?1 AND channel = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![plugin, channel.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some((row.get("release")?, release_id(row, "release_id")?)))
}

fn point(
    connection: &Connection,
    plugin: i64,
    channel: &ChannelName,
    release: i64,
    now: Timestamp,
    limits: &Limits,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO channels (plugin, channel, release, moved_at) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (plugin, channel) DO UPDATE SET release = excluded.release, moved_at = excluded.moved_at";
    connection.prepare_cached(sql)?.execute(params![
        plugin,
        channel.as_str(),
        release,
        micros(now)
    ])?;
    let sql = "SELECT count(*) FROM channels WHERE plugin = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let channels: i64 = statement.query_row([plugin], |row| row.get(0))?;
    if channels > i64::from(limits.channels) {
        return Err(StoreError::TooMany {
            what: "channels of a plugin",
            limit: u64::from(limits.channels),
        });
    }
    Ok(())
}

fn touch(connection: &Connection, plugin: i64, now: Timestamp) -> Result<(), StoreError> {
    let sql = "UPDATE plugins SET updated_at = ?2 WHERE seq = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![plugin, micros(now)])?;
    catalog::refresh(connection, plugin)
}

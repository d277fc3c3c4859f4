//! The catalog: one row a plugin, kept by whatever changes the plugin, and searched in two ways.
//!
//! What matches little is found by trigrams, and sorted. What matches much, or is too short for
//! trigrams, is found by walking the plugins in their order and looking into each; a walk ends
//! after so many rows, full page or not, so that no page costs more than another.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use rusqlite::{Connection, OptionalExtension, Row, params};
use strict_json::{Fields, Json, Layout, parse_object};

use super::cursor;
use super::releases::listed;
use super::rows::{parsed, release_id, sha256, time};
use crate::{
    CatalogChannel, CatalogEntry, ChannelName, Listed, MAX_QUERY, Page, PluginId, StoreError,
};

/// Matches that are fetched and sorted for one page.
const SORTED: usize = 1_000;
/// Rows that one page looks into.
const WALKED: usize = 10_000;
/// Bytes that one page looks into.
const WALKED_BYTES: usize = 4 * 1024 * 1024;
/// Shortest text that has a trigram.
const TRIGRAM: usize = 3;

/// More than any row of the catalog has for its channels.
const CHANNELS: strict_json::Limits = strict_json::Limits {
    bytes: 1 << 20,
    depth: 8,
};

/// What a catalog is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    /// As it was asked, for the cursor.
    text: String,
    folded: String,
}

impl Search {
    /// Checks what is searched for.
    pub(crate) fn new(text: String) -> Result<Self, StoreError> {
        let characters = text.chars().count();
        if characters == 0 || characters > MAX_QUERY || text.contains(char::is_control) {
            return Err(StoreError::Invalid {
                what: "q",
                rule: "must be 1 to 200 characters, none of them a control character",
            });
        }
        let folded = text.to_ascii_lowercase();
        Ok(Self { text, folded })
    }

    /// The phrase of trigrams, if the text is long enough for one.
    fn phrase(&self) -> Option<String> {
        (self.folded.chars().count() >= TRIGRAM)
            .then(|| format!("\"{}\"", self.folded.replace('"', "\"\"")))
    }
}

/// Reads one page.
pub(crate) fn page(
    connection: &Connection,
    search: Option<&Search>,
    page: &Page,
) -> Result<Listed<CatalogEntry>, StoreError> {
    let name = ["catalog", search.map_or("", |search| &search.text)];
    let after = match &page.cursor {
        None => String::new(),
        Some(cursor) => {
            let id: Result<PluginId, _> = cursor::read(&name, cursor)?.parse();
            id.map_err(|_| StoreError::InvalidCursor)?.to_string()
        }
    };
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let (seqs, end) = match search {
        None => all(connection, &after, limit)?,
        Some(search) => find(connection, search, &after, limit)?,
    };
    Ok(Listed {
        data: entries(connection, &seqs)?,
        next_cursor: end.map(|id| cursor::make(&name, &id)),
    })
}

/// Rows of one page, and the id after which there may be more.
type Found = (Vec<i64>, Option<String>);

/// Ends a page that has one row more than it may.
fn cut(mut rows: Vec<(i64, String)>, limit: usize) -> Found {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let end = rows.last().filter(|_| more).map(|(_, id)| id.clone());
    (rows.into_iter().map(|(seq, _)| seq).collect(), end)
}

fn all(connection: &Connection, after: &str, limit: usize) -> Result<Found, StoreError> {
    let sql = "SELECT seq, plugin_id FROM catalog WHERE plugin_id > ?1 ORDER BY plugin_id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![after, rows_of(limit)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(cut(rows.collect::<Result<_, _>>()?, limit))
}

fn find(
    connection: &Connection,
    search: &Search,
    after: &str,
    limit: usize,
) -> Result<Found, StoreError> {
    if let Some(phrase) = search.phrase()
        && is_rare(connection, &phrase)?
    {
        return sorted(connection, &phrase, after, limit);
    }
    walk(connection, search, after, limit)
}

/// Tells whether so few plugins match that they are sorted quickly.
fn is_rare(connection: &Connection, phrase: &str) -> Result<bool, StoreError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ?1 LIMIT ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    let count: i64 = statement.query_row(params![phrase, rows_of(SORTED)], |row| row.get(0))?;
    Ok(count < rows_of(SORTED))
}

fn sorted(
    connection: &Connection,
    phrase: &str,
    after: &str,
    limit: usize,
) -> Result<Found, StoreError> {
    let sql = "SELECT catalog.seq, plugin_id FROM search JOIN catalog ON catalog.seq = search.rowid \
               WHERE search MATCH ?1 AND plugin_id > ?2 ORDER BY plugin_id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![phrase, after, rows_of(limit)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(cut(rows.collect::<Result<_, _>>()?, limit))
}

fn walk(
    connection: &Connection,
    search: &Search,
    after: &str,
    limit: usize,
) -> Result<Found, StoreError> {
    let finder = Finder::new(search.folded.as_bytes());
    let sql = "SELECT seq, plugin_id, folded FROM catalog INDEXED BY catalog_walk \
               WHERE plugin_id > ?1 ORDER BY plugin_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([after])?;
    let mut matching = Vec::new();
    let (mut looked, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let text = |index| -> Result<&[u8], StoreError> {
            let value = row.get_ref(index)?;
            Ok(value.as_bytes().map_err(rusqlite::Error::from)?)
        };
        let (id, folded) = (text(1)?, text(2)?);
        looked += 1;
        bytes += id.len() + folded.len();
        let matches = finder.find(id).is_some() || finder.find(folded).is_some();
        if matches {
            matching.push((row.get(0)?, row.get(1)?));
        }
        if matching.len() > limit {
            break;
        }
        if looked >= WALKED || bytes >= WALKED_BYTES {
            let seqs = matching.into_iter().map(|(seq, _)| seq).collect();
            return Ok((seqs, Some(row.get(1)?)));
        }
    }
    Ok(cut(matching, limit))
}

/// One row more than wanted tells whether there are more.
fn rows_of(limit: usize) -> i64 {
    i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))
}

fn entries(connection: &Connection, seqs: &[i64]) -> Result<Vec<CatalogEntry>, StoreError> {
    let sql = "SELECT plugin_id, description, publisher, updated_at, channels FROM catalog WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut entries = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let mut rows = statement.query([seq])?;
        let row = rows.next()?.ok_or(StoreError::Inconsistent {
            what: "a row of the catalog is missing",
        })?;
        entries.push(entry(row)?);
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> Result<CatalogEntry, StoreError> {
    let plugin_id: PluginId = parsed(row, "plugin_id")?;
    let channels = row.get_ref("channels")?;
    Ok(CatalogEntry {
        name: plugin_id.to_string(),
        plugin_id,
        description: row.get("description")?,
        publisher: row.get("publisher")?,
        updated_at: time(row, "updated_at")?,
        channels: read_channels(channels.as_bytes().map_err(rusqlite::Error::from)?)?,
    })
}

fn read_channels(bytes: &[u8]) -> Result<BTreeMap<ChannelName, CatalogChannel>, StoreError> {
    let broken = StoreError::Inconsistent {
        what: "the channels of a row of the catalog",
    };
    let read = || -> Option<BTreeMap<ChannelName, CatalogChannel>> {
        let channels = parse_object(bytes, &CHANNELS, Layout::Compact).ok()?;
        let mut read = BTreeMap::new();
        for (name, channel) in channels.iter() {
            let Json::Object(channel) = channel else {
                return None;
            };
            read.insert(
                name.parse().ok()?,
                read_channel(channel.clone().fields(name)).ok()?,
            );
        }
        Some(read)
    };
    read().ok_or(broken)
}

fn read_channel(mut fields: Fields) -> Result<CatalogChannel, strict_json::FieldError> {
    Ok(CatalogChannel {
        release_id: fields.parse("release_id")?,
        version: match fields.value("version")? {
            Json::Text(version) => Some(version),
            _ => None,
        },
        artifact_digest: fields.parse("artifact_digest")?,
    })
}

/// Writes the row of a plugin anew, or takes it away if all of its releases are yanked.
pub(super) fn refresh(connection: &Connection, plugin: i64) -> Result<(), StoreError> {
    let shown = shown(connection, plugin)?;
    let sql = "SELECT folded FROM catalog WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let before: Option<String> = statement.query_row([plugin], |row| row.get(0)).optional()?;
    let folded = shown.as_ref().map(Shown::folded);
    // Most changes leave the words alone, and the words are the costly part.
    if before != folded {
        if before.is_some() {
            let sql = "DELETE FROM search WHERE rowid = ?1";
            connection.prepare_cached(sql)?.execute([plugin])?;
        }
        if let (Some(shown), Some(folded)) = (&shown, &folded) {
            let sql = "INSERT INTO search (rowid, text) VALUES (?1, ?2)";
            // No text that is searched for holds the character between them.
            let text = format!("{}\u{1}{folded}", shown.plugin_id);
            connection
                .prepare_cached(sql)?
                .execute(params![plugin, text])?;
        }
    }
    let Some((shown, folded)) = shown.zip(folded) else {
        let sql = "DELETE FROM catalog WHERE seq = ?1";
        connection.prepare_cached(sql)?.execute([plugin])?;
        return Ok(());
    };
    let channels = strict_json::to_line(&live_channels(connection, plugin)?);
    let channels = String::from_utf8_lossy(&channels);
    let sql = "INSERT OR REPLACE INTO catalog (seq, plugin_id, description, folded, publisher, updated_at, channels) \
               SELECT seq, plugin_id, ?2, ?3, ?4, updated_at, ?5 FROM plugins WHERE seq = ?1";
    connection.prepare_cached(sql)?.execute(params![
        plugin,
        shown.description,
        folded,
        shown.publisher,
        channels.trim_end(),
    ])?;
    Ok(())
}

/// What of a release stands for its plugin.
struct Shown {
    plugin_id: String,
    description: Option<String>,
    publisher: String,
}

impl Shown {
    /// The description as it is searched.
    fn folded(&self) -> String {
        let text = self.description.as_deref().unwrap_or_default();
        // SQLite's tokenizer takes a NUL for the end; nothing that is searched for holds either.
        text.to_ascii_lowercase().replace('\0', "\u{1}")
    }
}

/// Finds the release that stands for a plugin: the one in `stable`, or else the newest.
fn shown(connection: &Connection, plugin: i64) -> Result<Option<Shown>, StoreError> {
    let sql = "SELECT artifacts.plugin_id, description, publisher FROM releases \
               JOIN artifacts ON artifacts.seq = releases.artifact \
               LEFT JOIN channels ON channels.plugin = releases.plugin AND channel = 'stable' \
                 AND channels.release = releases.seq \
               WHERE releases.plugin = ?1 AND yanked_at IS NULL \
               ORDER BY channels.release IS NULL, releases.seq DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([plugin], |row| {
        Ok(Shown {
            plugin_id: row.get(0)?,
            description: row.get::<_, Option<String>>(1)?.map(|text| listed(&text)),
            publisher: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

fn live_channels(
    connection: &Connection,
    plugin: i64,
) -> Result<BTreeMap<ChannelName, CatalogChannel>, StoreError> {
    let sql = "SELECT channel, release_id, version, digest FROM channels \
               JOIN releases ON releases.seq = channels.release \
               JOIN artifacts ON artifacts.seq = releases.artifact \
               WHERE channels.plugin = ?1 AND yanked_at IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then([plugin], |row| {
        let channel = CatalogChannel {
            release_id: release_id(row, "release_id")?,
            version: row.get("version")?,
            artifact_digest: sha256(row, "digest")?,
        };
        Ok((parsed(row, "channel")?, channel))
    })?;
    rows.collect()
}

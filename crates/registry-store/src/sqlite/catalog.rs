//! The catalog: one row a plugin, kept by whatever changes the plugin, and searched in two ways.
//!
//! What holds a rare trigram is found by it, looked into and sorted. What holds none, or is too short
//! for one, is found by walking the plugins in their order and looking into each; a walk ends after
//! so many rows, full page or not, so that no page costs much more than another.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem::Finder;
use rusqlite::{Connection, OptionalExtension, Row, params};
use strict_json::{Fields, Json, Layout, parse_object};

use super::cursor;
use super::releases::listed;
use super::rows::{parsed, release_id, sha256, time};
use crate::{
    CatalogChannel, CatalogEntry, ChannelName, Listed, MAX_QUERY, Page, PluginId, StoreError,
};

/// Plugins with one trigram that are looked into and sorted for one page.
const SORTED: i64 = 1_000;
/// Rows that one page looks into.
const WALKED: usize = 5_000;
/// Bytes that one page looks into.
const WALKED_BYTES: usize = 4 * 1024 * 1024;

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
}

/// How rare a text is, by its rarest trigram.
enum Rarity {
    /// Nobody holds it.
    Absent,
    /// Few hold this part of it.
    Rare(String),
    /// Many hold each part of it, or it has none.
    Common,
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
    match rarity(connection, &search.folded)? {
        Rarity::Absent => Ok((Vec::new(), None)),
        Rarity::Rare(gram) => sorted(connection, search, &gram, after, limit),
        Rarity::Common => walk(connection, search, after, limit),
    }
}

/// The parts of three characters of a text, each once.
fn trigrams(text: &str) -> BTreeSet<&str> {
    let starts: Vec<usize> = text
        .char_indices()
        .map(|(start, _)| start)
        .chain([text.len()])
        .collect();
    let part = |window: &[usize]| text.get(*window.first()?..*window.last()?);
    starts.windows(4).filter_map(part).collect()
}

fn rarity(connection: &Connection, text: &str) -> Result<Rarity, StoreError> {
    let sql = "SELECT n FROM trigrams WHERE gram = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rarest: Option<(i64, &str)> = None;
    for gram in trigrams(text) {
        let found = statement.query_row([gram], |row| row.get(0)).optional()?;
        let Some(count) = found.filter(|count| *count > 0) else {
            return Ok(Rarity::Absent);
        };
        if rarest.is_none_or(|(least, _)| count < least) {
            rarest = Some((count, gram));
        }
    }
    Ok(match rarest {
        Some((count, gram)) if count <= SORTED => Rarity::Rare(gram.to_owned()),
        _ => Rarity::Common,
    })
}

fn sorted(
    connection: &Connection,
    search: &Search,
    gram: &str,
    after: &str,
    limit: usize,
) -> Result<Found, StoreError> {
    let finder = Finder::new(search.folded.as_bytes());
    let sql = "SELECT catalog.seq, plugin_id, folded FROM search \
               JOIN catalog ON catalog.seq = search.rowid WHERE search MATCH ?1 AND plugin_id > ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let phrase = format!("\"{}\"", gram.replace('"', "\"\""));
    let mut rows = statement.query(params![phrase, after])?;
    let mut matching = Vec::new();
    while let Some(row) = rows.next()? {
        if holds(&finder, row)? {
            matching.push((row.get(0)?, row.get(1)?));
        }
    }
    matching.sort_by(|one: &(i64, String), other| one.1.cmp(&other.1));
    Ok(cut(matching, limit))
}

/// Tells whether a row of id and words, its second and third column, holds what is searched for.
fn holds(finder: &Finder<'_>, row: &Row<'_>) -> Result<bool, StoreError> {
    for index in [1, 2] {
        let text = row.get_ref(index)?;
        let text = text.as_bytes().map_err(rusqlite::Error::from)?;
        if finder.find(text).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
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
        looked += 1;
        let folded = row.get_ref(2)?;
        bytes += folded.as_bytes().map_err(rusqlite::Error::from)?.len();
        if holds(&finder, row)? {
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
        // The id of a plugin never changes.
        let sql = "SELECT plugin_id FROM plugins WHERE seq = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let id: String = statement.query_row([plugin], |row| row.get(0))?;
        if let Some(before) = before {
            let sql = "DELETE FROM search WHERE rowid = ?1";
            connection.prepare_cached(sql)?.execute([plugin])?;
            count(connection, &searched(&id, &before), -1)?;
        }
        if let Some(folded) = &folded {
            let text = searched(&id, folded);
            let sql = "INSERT INTO search (rowid, text) VALUES (?1, ?2)";
            connection
                .prepare_cached(sql)?
                .execute(params![plugin, text])?;
            count(connection, &text, 1)?;
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

/// The text that is searched; nothing that is searched for holds the character in the middle.
fn searched(id: &str, folded: &str) -> String {
    format!("{id}\u{1}{folded}")
}

/// Counts the trigrams of a text, or takes them from the count.
fn count(connection: &Connection, text: &str, change: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO trigrams (gram, n) VALUES (?1, max(?2, 0)) \
               ON CONFLICT (gram) DO UPDATE SET n = n + ?2";
    let mut statement = connection.prepare_cached(sql)?;
    for gram in trigrams(text) {
        statement.execute(params![gram, change])?;
    }
    Ok(())
}

/// What of a release stands for its plugin.
struct Shown {
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
    let sql = "SELECT description, publisher FROM releases \
               JOIN artifacts ON artifacts.seq = releases.artifact \
               LEFT JOIN channels ON channels.plugin = releases.plugin AND channel = 'stable' \
                 AND channels.release = releases.seq \
               WHERE releases.plugin = ?1 AND yanked_at IS NULL \
               ORDER BY channels.release IS NULL, releases.seq DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([plugin], |row| {
        Ok(Shown {
            description: row.get::<_, Option<String>>(0)?.map(|text| listed(&text)),
            publisher: row.get(1)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows: usize) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for step in super::super::migrate::MIGRATIONS {
            connection.execute_batch(step).unwrap();
        }
        let plugins = "INSERT INTO plugins (plugin_id, updated_at) VALUES (?1, 0)";
        let catalog = "INSERT INTO catalog VALUES (?1, ?2, NULL, ?3, 'p', 0, '{}')";
        let transaction = connection.unchecked_transaction().unwrap();
        for row in 0..rows {
            let id = format!("p{row:06}");
            let folded = if row + 1 == rows { "zq" } else { "words" };
            transaction.execute(plugins, [&id]).unwrap();
            let seq = transaction.last_insert_rowid();
            transaction
                .execute(catalog, params![seq, id, folded])
                .unwrap();
            count(&transaction, &searched(&id, folded), 1).unwrap();
        }
        transaction.commit().unwrap();
        connection
    }

    fn ask(connection: &Connection, query: &str, cursor: Option<String>) -> Listed<CatalogEntry> {
        let search = Search::new(query.to_owned()).unwrap();
        page(connection, Some(&search), &Page { limit: 2, cursor }).unwrap()
    }

    #[test]
    fn a_walk_ends_after_so_many_rows_and_goes_on_from_there() {
        let connection = filled(WALKED + 5);
        let first = ask(&connection, "ZQ", None);
        assert_eq!(first.data, []);
        let second = ask(&connection, "ZQ", first.next_cursor);
        let ids: Vec<_> = second.data.iter().map(|one| one.name.clone()).collect();
        assert_eq!(
            (ids, second.next_cursor),
            (vec![format!("p{:06}", WALKED + 4)], None)
        );
    }

    #[test]
    fn what_a_search_costs_is_known_before_it_is_made() {
        let connection = filled(1_500);
        let rarity = |text| rarity(&connection, text).unwrap();
        assert!(matches!(rarity("words"), Rarity::Common));
        assert!(matches!(rarity("zq"), Rarity::Common));
        assert!(matches!(rarity("words of nobody"), Rarity::Absent));
        assert!(matches!(rarity("000012"), Rarity::Rare(gram) if gram == "012"));
        assert!(matches!(rarity("\u{1}zq"), Rarity::Rare(_)));
        count(&connection, &searched("p001499", "zq"), -1).unwrap();
        assert!(matches!(rarity("\u{1}zq"), Rarity::Absent));
    }
}

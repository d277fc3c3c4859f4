//! `trust.toml`: which keys are trusted, and which no longer. What it says beside that is kept.

use std::collections::BTreeSet;

use attest_receipt::time::Time;
use bounded::text::{has_control_or_format, visible};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::error::TrustError;
use super::name::KeyName;
use super::public_key::KeyId;

const VERSION: i64 = 1;
const KEY: &str = "key";
const STATUS: &str = "status";
const REVOKED_AT: &str = "revoked_at";

/// What the policy says of a key. The set is closed: another word is refused, not guessed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    /// Its signatures count.
    Trusted,
    /// Its signatures count no longer: since a moment, or ever.
    Revoked {
        /// The moment; absent, the key counts as revoked ever since.
        since: Option<Time>,
    },
}

impl KeyStatus {
    /// Returns the word for it in the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Revoked { .. } => "revoked",
        }
    }
}

/// One `[[key]]` of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustEntry {
    /// The key.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it is worth.
    pub status: KeyStatus,
}

/// What revoking a key came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// The policy has no such key.
    Unknown,
    /// It was revoked before, and that stays as it is.
    Already {
        /// Since when.
        since: Option<Time>,
    },
    /// It is revoked now.
    Done,
}

/// The policy: its entries, and the document that they stand in.
#[derive(Debug, Clone)]
pub struct TrustFile {
    document: DocumentMut,
    entries: Vec<TrustEntry>,
}

impl TrustFile {
    /// The greatest length of the file in bytes.
    pub const MAX_BYTES: usize = 1024 * 1024;
    /// The greatest number of entries.
    pub const MAX_KEYS: usize = 4096;

    /// Reads a policy.
    ///
    /// # Errors
    ///
    /// It is no TOML, another version, or has an entry that is malformed or stands twice.
    pub fn parse(text: &str) -> Result<Self, TrustError> {
        if text.len() > Self::MAX_BYTES {
            let limit = Self::MAX_BYTES;
            return Err(TrustError::Syntax(format!(
                "it has more than {limit} bytes"
            )));
        }
        let document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
        check_version(&document)?;
        let entries = read_entries(&document)?;
        let mut seen = BTreeSet::new();
        for entry in &entries {
            if !seen.insert(entry.id) {
                return Err(TrustError::DuplicateId(entry.id));
            }
        }
        Ok(Self { document, entries })
    }

    /// Writes the policy: as it was read, with what was changed.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.document.to_string()
    }

    /// Returns the entries in their order.
    #[must_use]
    pub fn entries(&self) -> &[TrustEntry] {
        &self.entries
    }

    /// Returns the entry of a key.
    #[must_use]
    pub fn entry(&self, id: &KeyId) -> Option<&TrustEntry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// Adds a key as trusted, unless the policy has an entry for it. Tells whether it was added.
    ///
    /// # Errors
    ///
    /// The policy is full.
    pub fn trust(&mut self, id: KeyId, name: &KeyName) -> Result<bool, TrustError> {
        if self.entry(&id).is_some() {
            return Ok(false);
        }
        if self.entries.len() >= Self::MAX_KEYS {
            return Err(too_many());
        }
        let status = KeyStatus::Trusted;
        let pairs = [
            ("id", id.as_str()),
            ("name", name.as_str()),
            ("status", status.as_str()),
        ];
        let key = self
            .document
            .entry(KEY)
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match key {
            Item::ArrayOfTables(tables) => tables.push(Table::from_iter(pairs)),
            Item::Value(Value::Array(array)) => array.push(InlineTable::from_iter(pairs)),
            Item::None | Item::Value(_) | Item::Table(_) => {
                return Err(shape("key", "is not a list of tables"));
            }
        }
        self.entries.push(TrustEntry {
            id,
            name: name.as_str().to_owned(),
            status,
        });
        Ok(true)
    }

    /// Marks a key as revoked at `now`. What was revoked before stays as it is: a later date, or a
    /// date where there was none, would make signatures good that were not.
    pub fn revoke(&mut self, id: &KeyId, now: Time) -> Revocation {
        let found = self.entries.iter_mut().enumerate();
        let Some((index, entry)) = found.into_iter().find(|(_, entry)| entry.id == *id) else {
            return Revocation::Unknown;
        };
        if let KeyStatus::Revoked { since } = entry.status {
            return Revocation::Already { since };
        }
        entry.status = KeyStatus::Revoked { since: Some(now) };
        let table: Option<&mut dyn TableLike> = match self.document.get_mut(KEY) {
            Some(Item::ArrayOfTables(tables)) => tables.get_mut(index).map(|table| table as _),
            Some(Item::Value(Value::Array(array))) => array
                .get_mut(index)
                .and_then(Value::as_inline_table_mut)
                .map(|table| table as _),
            _ => None,
        };
        if let Some(table) = table {
            put(table, STATUS, entry.status.as_str());
            put(table, REVOKED_AT, &now.to_string());
        }
        Revocation::Done
    }
}

impl Default for TrustFile {
    fn default() -> Self {
        let mut document = DocumentMut::new();
        document.insert("version", Item::Value(Value::from(VERSION)));
        Self {
            document,
            entries: Vec::new(),
        }
    }
}

fn check_version(document: &DocumentMut) -> Result<(), TrustError> {
    match document.get("version").map(Item::as_integer) {
        Some(Some(VERSION)) => Ok(()),
        Some(Some(other)) => Err(shape(
            "version",
            &format!("is {other}, and this program knows {VERSION}"),
        )),
        Some(None) => Err(shape("version", "is not an integer")),
        None => Err(shape("version", "is missing")),
    }
}

fn read_entries(document: &DocumentMut) -> Result<Vec<TrustEntry>, TrustError> {
    let tables: Vec<Option<&dyn TableLike>> = match document.get(KEY) {
        None => Vec::new(),
        Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| Some(table as _)).collect(),
        Some(Item::Value(Value::Array(array))) => array
            .iter()
            .map(|value| value.as_inline_table().map(|table| table as _))
            .collect(),
        Some(_) => return Err(shape(KEY, "is not a list of tables")),
    };
    if tables.len() > TrustFile::MAX_KEYS {
        return Err(too_many());
    }
    let numbered = tables.into_iter().zip(1_u32..);
    numbered
        .map(|(table, number)| {
            let place = format!("entry {number}");
            let table = table.ok_or_else(|| shape(&place, "is not a table"))?;
            read_entry(table, &place)
        })
        .collect()
}

fn read_entry(table: &dyn TableLike, place: &str) -> Result<TrustEntry, TrustError> {
    let id = required(table, "id", place)?;
    let id = KeyId::new(id).map_err(|error| {
        let shown = shown(id);
        shape(place, &format!("malformed key id `{shown}`: {error}"))
    })?;
    let name = required(table, "name", place)?;
    if has_control_or_format(name) {
        return Err(shape(place, "`name` has control or formatting characters"));
    }
    let since = text(table, REVOKED_AT, place)?
        .map(|text| read_time(text, place))
        .transpose()?;
    let status = match (required(table, STATUS, place)?, since) {
        ("trusted", None) => KeyStatus::Trusted,
        ("trusted", Some(_)) => {
            return Err(shape(
                place,
                "`revoked_at` contradicts the status `trusted`",
            ));
        }
        ("revoked", since) => KeyStatus::Revoked { since },
        (other, _) => {
            let shown = shown(other);
            return Err(shape(
                place,
                &format!("unknown status `{shown}`, expected `trusted` or `revoked`"),
            ));
        }
    };
    Ok(TrustEntry {
        id,
        name: name.to_owned(),
        status,
    })
}

fn required<'table>(
    table: &'table dyn TableLike,
    key: &str,
    place: &str,
) -> Result<&'table str, TrustError> {
    text(table, key, place)?.ok_or_else(|| shape(place, &format!("`{key}` is missing")))
}

fn text<'table>(
    table: &'table dyn TableLike,
    key: &str,
    place: &str,
) -> Result<Option<&'table str>, TrustError> {
    match table.get(key) {
        None => Ok(None),
        Some(item) => match item.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(shape(place, &format!("`{key}` is not a string"))),
        },
    }
}

/// Reads RFC 3339 with any offset, since people write this field by hand too.
fn read_time(text: &str, place: &str) -> Result<Time, TrustError> {
    let refused = || {
        shape(
            place,
            "`revoked_at` is not a time such as 2026-11-30T12:00:00Z",
        )
    };
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let Some((head, [sign, offset @ ..])) = text.as_bytes().split_last_chunk::<6>() else {
        return Err(refused());
    };
    let is_offset = matches!(sign, b'+' | b'-')
        && offset.iter().zip(b"00:00").all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        });
    let in_utc = format!("{}Z", String::from_utf8_lossy(head));
    if !is_offset || in_utc.parse::<Time>().is_err() {
        return Err(refused());
    }
    let moment: jiff::Timestamp = text.parse().map_err(|_| refused())?;
    Ok(Time::from(moment))
}

/// Sets one key of a table and keeps the comment and white space around it.
fn put(table: &mut dyn TableLike, key: &str, text: &str) {
    let mut value = Value::from(text);
    match table.get_mut(key) {
        Some(item) => {
            if let Some(old) = item.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(value);
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

fn syntax(text: &str, error: &toml_edit::TomlError) -> TrustError {
    let message: String = visible(error.message()).chars().take(200).collect();
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return TrustError::Syntax(message);
    };
    let line = before.matches('\n').count().saturating_add(1);
    TrustError::Syntax(format!("line {line}: {message}"))
}

/// The beginning of a foreign text, safe to show.
fn shown(text: &str) -> String {
    visible(&text.chars().take(64).collect::<String>())
}

fn shape(place: &str, problem: &str) -> TrustError {
    TrustError::Shape {
        place: place.to_owned(),
        problem: problem.to_owned(),
    }
}

fn too_many() -> TrustError {
    TrustError::TooMany {
        what: "keys",
        limit: TrustFile::MAX_KEYS,
    }
}

#[cfg(test)]
mod tests;

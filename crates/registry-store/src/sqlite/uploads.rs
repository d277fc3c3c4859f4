//! Bytes by digest, before and after their release, and the receipts beside them.

use digest_text::{Blake3Text, Sha256Text};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::rows::{blake3, count, integer, micros, parsed, sha256, time};
use crate::{Artifact, Checked, StoreError};

/// What is known of a digest.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) artifact: Artifact,
    pub(crate) blake3: Blake3Text,
    /// Whether the bytes are there for certain.
    pub(crate) kept: bool,
}

/// An upload that may be removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) digest: Sha256Text,
    pub(crate) bytes: u64,
    pub(crate) kept: bool,
}

/// A receipt without its bytes.
#[derive(Debug, Clone)]
pub(crate) struct KeptReceipt {
    pub(crate) digest: Sha256Text,
    pub(crate) bytes: u64,
    pub(crate) stored_at: Timestamp,
    pub(crate) stored_by: String,
}

/// Finds what is known of a digest.
pub(crate) fn find(
    connection: &Connection,
    digest: Sha256Text,
) -> Result<Option<Known>, StoreError> {
    let sql = "SELECT digest, blake3, bytes, plugin_id, state, uploaded_at FROM artifacts WHERE digest = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([digest.as_bytes()])?;
    rows.next()?.map(known).transpose()
}

fn known(row: &Row<'_>) -> Result<Known, StoreError> {
    let state: String = row.get("state")?;
    Ok(Known {
        artifact: Artifact {
            digest: sha256(row, "digest")?,
            bytes: count(row, "bytes")?,
            plugin_id: parsed(row, "plugin_id")?,
            released: state == "released",
            uploaded_at: time(row, "uploaded_at")?,
        },
        blake3: blake3(row, "blake3")?,
        kept: state != "pending",
    })
}

/// Notes that bytes are about to be written, and gives what was known before.
pub(crate) fn begin(
    connection: &Connection,
    checked: &Checked,
    now: Timestamp,
) -> Result<Option<Known>, StoreError> {
    let known = find(connection, checked.digest)?;
    if known.is_none() {
        let sql = "INSERT INTO artifacts (digest, blake3, bytes, unpacked_bytes, files, plugin_id, version, \
                   description, manifest, state, uploaded_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'pending', ?10)";
        connection.prepare_cached(sql)?.execute(params![
            checked.digest.as_bytes(),
            checked.blake3.as_bytes(),
            integer(checked.length()),
            integer(checked.unpacked_bytes),
            integer(checked.files),
            checked.plugin_id.as_str(),
            checked.version,
            checked.description,
            checked.manifest,
            micros(now),
        ])?;
    }
    Ok(known)
}

/// Notes that bytes are durable; what waits for its release waits from now on.
pub(crate) fn keep(
    connection: &Connection,
    digest: Sha256Text,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE artifacts SET uploaded_at = ?2, state = 'kept' WHERE digest = ?1 AND state <> 'released'";
    connection
        .prepare_cached(sql)?
        .execute(params![digest.as_bytes(), micros(now)])?;
    Ok(())
}

/// Lists digests after another one, in their order.
pub(crate) fn digests(
    connection: &Connection,
    after: Option<Sha256Text>,
    limit: u32,
) -> Result<Vec<Sha256Text>, StoreError> {
    let after = after.map_or_else(Vec::new, |digest| digest.as_bytes().to_vec());
    let sql = "SELECT digest FROM artifacts WHERE digest > ?1 AND state <> 'pending' ORDER BY digest LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params![after, limit], |row| sha256(row, "digest"))?;
    rows.collect()
}

/// Lists uploads that have waited since a time, the oldest first.
pub(crate) fn waiting(
    connection: &Connection,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<Waiting>, StoreError> {
    let sql = "SELECT digest, bytes, state FROM artifacts \
               WHERE state <> 'released' AND uploaded_at <= ?1 ORDER BY uploaded_at LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params![micros(since), limit], |row| {
        Ok(Waiting {
            digest: sha256(row, "digest")?,
            bytes: count(row, "bytes")?,
            kept: row.get::<_, String>("state")? == "kept",
        })
    })?;
    rows.collect()
}

/// Lists what an interrupted process may have left behind.
pub(super) fn pending(connection: &Connection) -> Result<Vec<Sha256Text>, StoreError> {
    let sql = "SELECT digest FROM artifacts WHERE state <> 'released' AND state = 'pending'";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then([], |row| sha256(row, "digest"))?;
    rows.collect()
}

/// Takes an upload out of reach before its bytes are removed; tells whether it still waited.
pub(crate) fn mark_pending(
    connection: &Connection,
    digest: Sha256Text,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "UPDATE artifacts SET state = 'pending' \
               WHERE digest = ?1 AND state <> 'released' AND uploaded_at <= ?2";
    let changed = connection
        .prepare_cached(sql)?
        .execute(params![digest.as_bytes(), micros(since)])?;
    Ok(changed > 0)
}

/// Forgets bytes that are gone.
pub(crate) fn drop_row(connection: &Connection, digest: Sha256Text) -> Result<(), StoreError> {
    let receipts = "DELETE FROM receipts WHERE artifact IN \
                    (SELECT seq FROM artifacts WHERE digest = ?1 AND state = 'pending')";
    connection
        .prepare_cached(receipts)?
        .execute([digest.as_bytes()])?;
    let sql = "DELETE FROM artifacts WHERE digest = ?1 AND state = 'pending'";
    connection
        .prepare_cached(sql)?
        .execute([digest.as_bytes()])?;
    Ok(())
}

/// Finds the receipt beside an artifact.
pub(crate) fn receipt(
    connection: &Connection,
    artifact: Sha256Text,
) -> Result<Option<KeptReceipt>, StoreError> {
    let sql = "SELECT receipts.digest, receipts.bytes, stored_at, stored_by FROM receipts \
               JOIN artifacts ON artifacts.seq = receipts.artifact WHERE artifacts.digest = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([artifact.as_bytes()])?;
    let kept = |row: &Row<'_>| {
        Ok(KeptReceipt {
            digest: sha256(row, "digest")?,
            bytes: count(row, "bytes")?,
            stored_at: time(row, "stored_at")?,
            stored_by: row.get("stored_by")?,
        })
    };
    rows.next()?.map(kept).transpose()
}

/// Notes that a receipt is durable.
pub(crate) fn keep_receipt(
    connection: &Connection,
    artifact: Sha256Text,
    kept: &KeptReceipt,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO receipts (artifact, digest, bytes, stored_at, stored_by) \
               SELECT seq, ?2, ?3, ?4, ?5 FROM artifacts WHERE digest = ?1 AND state <> 'pending'";
    let changed = connection.prepare_cached(sql)?.execute(params![
        artifact.as_bytes(),
        kept.digest.as_bytes(),
        integer(kept.bytes),
        micros(kept.stored_at),
        kept.stored_by,
    ])?;
    if changed == 0 {
        return Err(StoreError::NotFound { what: "upload" });
    }
    Ok(())
}

//! Writes an archive: the same bytes for the same receipt and events, wherever and whenever.

use std::collections::BTreeMap;
use std::fmt;

use attest_receipt::receipt::Receipt;
use attest_verify::trust::PublicKey;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::Serialize;

use super::error::ArchiveError;
use super::{FORMAT, Limits, MANIFEST, RECEIPT, header, read};

/// What goes into an archive.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The receipt's file.
    pub bytes: &'a [u8],
    /// The same, taken apart.
    pub receipt: &'a Receipt,
    /// The files of its events, by id.
    pub events: &'a BTreeMap<String, Vec<u8>>,
}

impl Parts<'_> {
    /// Returns the ids of events that the receipt names and that are not here.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let ids = self.receipt.causal_events.iter();
        ids.filter(|id| !self.events.contains_key(*id))
            .map(String::as_str)
            .collect()
    }
}

/// Writes an archive. It says of itself that it is partial if an event is missing.
///
/// # Errors
/// What keeps the result from being an archive that a reader takes.
pub fn write(parts: &Parts<'_>) -> Result<Vec<u8>, ArchiveError> {
    #[derive(Serialize)]
    struct Manifest<'a> {
        format: &'a str,
        created: String,
        attest_version: &'a str,
        partial: bool,
    }
    let manifest = Manifest {
        format: FORMAT,
        created: parts.receipt.timestamp.with_offset(),
        attest_version: &parts.receipt.attest_version,
        partial: !parts.missing().is_empty(),
    };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(&error))?;
    let mut entries: BTreeMap<String, &[u8]> = BTreeMap::new();
    for (id, bytes) in parts.events {
        entries.insert(format!("events/{id}.json"), bytes);
    }
    let signer = parts.receipt.signer_public_key.as_deref();
    let key = signer.and_then(|hex| PublicKey::from_hex(hex).ok());
    let pem = key.as_ref().map(PublicKey::to_spki_pem);
    if let (Some(key), Some(pem)) = (&key, &pem) {
        entries.insert(format!("pubkeys/{}.pub", key.key_id()), pem.as_bytes());
    }
    entries.insert(MANIFEST.to_owned(), &manifest);
    entries.insert(RECEIPT.to_owned(), parts.bytes);

    let archive = compress_to_vec(tar(&entries)?.as_slice(), CompressionLevel::Fastest);
    // Whoever gets the archive reads it under these limits.
    read(&archive, &Limits::default())?;
    Ok(archive)
}

fn tar(entries: &BTreeMap<String, &[u8]>) -> Result<Vec<u8>, ArchiveError> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in entries {
        let size = u64::try_from(bytes.len()).map_err(|error| failed(&error))?;
        let header = header::make(name, size, header::FILE).map_err(|error| failed(&error))?;
        builder
            .append(&header, *bytes)
            .map_err(|error| failed(&error))?;
    }
    builder.into_inner().map_err(|error| failed(&error))
}

fn failed(error: &dyn fmt::Display) -> ArchiveError {
    ArchiveError::Write(error.to_string())
}

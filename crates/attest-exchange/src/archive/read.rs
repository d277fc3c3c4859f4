//! Reads an archive of which nothing is believed.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::ledger::{self, Event, EventError};
use attest_receipt::receipt;
use attest_verify::trust::PublicKey;
use strict_json::Layout;

use super::error::{ArchiveError, Limit};
use super::frame::Frame;
use super::header::{self, BLOCK};
use super::{Archive, FORMAT, Limits, MANIFEST, RECEIPT};

const MANIFEST_BYTES: usize = 64 * 1024;
const KEY_BYTES: usize = 16 * 1024;
/// A program's version is not longer than this.
const VERSION_BYTES: usize = 256;

/// Reads the bytes of an archive's file.
///
/// # Errors
/// The first rule that it breaks; nothing of it is used then.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Archive, ArchiveError> {
    if length(bytes.len()) > limits.archive {
        return Err(ArchiveError::too_long(limits));
    }
    let mut frame = Frame::new(bytes, limits.unpacked)?;
    let mut content = Content::default();
    let mut number = 0;
    while let Some(block) = next_header(&mut frame)? {
        number += 1;
        if number > limits.entries {
            return Err(ArchiveError::TooMuch {
                limit: Limit::Entries,
                bound: limits.entries,
                what: "the archive".to_owned(),
            });
        }
        let (name, size) = header::read(&block, number)?;
        let kind = Kind::of(&name)?;
        if !content.seen.insert(name.clone()) {
            return Err(ArchiveError::Twice(name));
        }
        let body = body(&mut frame, &name, size, &kind, limits)?;
        content.take(kind, &name, body)?;
    }
    only_zeros(&mut frame)?;
    frame.finish()?;
    content.into_archive()
}

/// What an entry is, by its name.
enum Kind {
    Manifest,
    Receipt,
    Event(String),
    Key(String),
}

impl Kind {
    fn of(name: &str) -> Result<Self, ArchiveError> {
        let within = |folder, end| name.strip_prefix(folder)?.strip_suffix(end);
        if name == MANIFEST {
            return Ok(Self::Manifest);
        }
        if name == RECEIPT {
            return Ok(Self::Receipt);
        }
        let event = within("events/", ".json").filter(|id| attest_receipt::is_lower_hex_64(id));
        let key = within("pubkeys/", ".pub").filter(|id| attest_receipt::is_hex(id, 32));
        match (event, key) {
            (Some(id), _) => Ok(Self::Event(id.to_owned())),
            (None, Some(id)) => Ok(Self::Key(id.to_owned())),
            (None, None) => Err(ArchiveError::Stranger(name.to_owned())),
        }
    }

    /// What a document of the kind can be long at most.
    fn limit(&self) -> u64 {
        length(match self {
            Self::Manifest => MANIFEST_BYTES,
            Self::Receipt => receipt::MAX_BYTES,
            Self::Event(_) => ledger::MAX_BYTES,
            Self::Key(_) => KEY_BYTES,
        })
    }
}

/// Reads a header; two blocks of zeros end the archive.
fn next_header(frame: &mut Frame<'_>) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
    let mut block = [0; BLOCK];
    whole(frame, &mut block)?;
    if block != [0; BLOCK] {
        return Ok(Some(block));
    }
    whole(frame, &mut block)?;
    if block == [0; BLOCK] {
        Ok(None)
    } else {
        Err(ArchiveError::Trailing)
    }
}

/// Reads the body and its padding. The memory for it is no more than what may still come.
fn body(
    frame: &mut Frame<'_>,
    name: &str,
    size: u64,
    kind: &Kind,
    limits: &Limits,
) -> Result<Vec<u8>, ArchiveError> {
    for (limit, bound) in [
        (Limit::Entry, limits.entry),
        (Limit::Document, kind.limit()),
    ] {
        if size > bound {
            return Err(ArchiveError::TooMuch {
                limit,
                bound,
                what: format!("entry {name}"),
            });
        }
    }
    let bytes = usize::try_from(size).map_err(|_| ArchiveError::CutShort)?;
    if size > frame.left() {
        return Err(ArchiveError::TooMuch {
            limit: Limit::Unpacked,
            bound: limits.unpacked,
            what: "the archive".to_owned(),
        });
    }
    let mut body = vec![0; bytes];
    whole(frame, &mut body)?;
    let mut padding = vec![0; bytes.next_multiple_of(BLOCK) - bytes];
    whole(frame, &mut padding)?;
    if padding.iter().any(|byte| *byte != 0) {
        return Err(ArchiveError::Trailing);
    }
    Ok(body)
}

fn whole(frame: &mut Frame<'_>, buffer: &mut [u8]) -> Result<(), ArchiveError> {
    if frame.fill(buffer)? < buffer.len() {
        return Err(ArchiveError::CutShort);
    }
    Ok(())
}

/// Other writers fill up their last record; nothing else may follow.
fn only_zeros(frame: &mut Frame<'_>) -> Result<(), ArchiveError> {
    let mut buffer = vec![0; 16 * BLOCK];
    loop {
        let filled = frame.fill(&mut buffer)?;
        if filled == 0 {
            return Ok(());
        }
        if buffer.iter().take(filled).any(|byte| *byte != 0) {
            return Err(ArchiveError::Trailing);
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Content {
    seen: BTreeSet<String>,
    manifest: Option<Manifest>,
    receipt: Option<Vec<u8>>,
    events: BTreeMap<String, Result<Event, EventError>>,
}

impl Content {
    fn take(&mut self, kind: Kind, name: &str, body: Vec<u8>) -> Result<(), ArchiveError> {
        match kind {
            Kind::Manifest => self.manifest = Some(Manifest::read(&body)?),
            Kind::Receipt => self.receipt = Some(body),
            Kind::Event(id) => {
                self.events.insert(id, Event::read(&body));
            }
            Kind::Key(id) => {
                let text = std::str::from_utf8(&body).ok();
                let key = text.and_then(|text| PublicKey::from_spki_pem(text).ok());
                if key.is_none_or(|key| key.key_id().as_str() != id) {
                    return Err(ArchiveError::Key(name.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn into_archive(self) -> Result<Archive, ArchiveError> {
        let manifest = self.manifest.ok_or(ArchiveError::Missing(MANIFEST))?;
        Ok(Archive {
            created: manifest.created,
            attest_version: manifest.attest_version,
            partial: manifest.partial,
            receipt: self.receipt.ok_or(ArchiveError::Missing(RECEIPT))?,
            events: self.events,
        })
    }
}

struct Manifest {
    created: String,
    attest_version: String,
    partial: bool,
}

impl Manifest {
    fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let wrong = |error: &dyn std::fmt::Display| ArchiveError::Manifest(error.to_string());
        let limits = strict_json::Limits {
            bytes: MANIFEST_BYTES,
            depth: 8,
        };
        let object = strict_json::parse_object(bytes, &limits, Layout::Spaced);
        let mut fields = object.map_err(|error| wrong(&error))?.fields("");
        // Before anything else: another version may have other fields.
        let format = fields.text("format").map_err(|error| wrong(&error))?;
        if format != FORMAT {
            return Err(ArchiveError::Format(format));
        }
        let manifest = Self {
            created: fields.text("created").map_err(|error| wrong(&error))?,
            attest_version: fields
                .text("attest_version")
                .map_err(|error| wrong(&error))?,
            partial: fields
                .opt_bool("partial")
                .map_err(|error| wrong(&error))?
                .unwrap_or(false),
        };
        fields.end().map_err(|error| wrong(&error))?;
        if manifest.attest_version.len() > VERSION_BYTES {
            return Err(wrong(&"`attest_version` is too long"));
        }
        Ok(manifest)
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

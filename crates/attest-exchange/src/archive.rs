//! `attest-archive/v1`: a tar in a zstd frame with a receipt and what a verifier needs beside it.
//!
//! | entry | what |
//! |---|---|
//! | `manifest.json` | the format, and whether events are missing |
//! | `receipt.yaml` | the receipt, byte for byte |
//! | `events/<id>.json` | the events that it names |
//! | `pubkeys/<key id>.pub` | the signer's key for the reader's convenience; it vouches for nothing |
//!
//! The writer's output is a function of its input. The reader takes nothing that the writer does
//! not write.

mod error;
mod frame;
mod header;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::ledger::{Event, EventError};
use attest_receipt::receipt::Receipt;
use attest_verify::{Check, CheckName, Status, chain};

pub use error::{ArchiveError, Limit};
pub use read::read;
pub use write::{Parts, write};

/// The name of the format.
pub const FORMAT: &str = "attest-archive/v1";

const MANIFEST: &str = "manifest.json";
const RECEIPT: &str = "receipt.yaml";

/// How much a reader takes. All are inclusive, and each is checked before the work it bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub archive: u64,
    /// Bytes after decompression, headers and padding included.
    pub unpacked: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes of one entry.
    pub entry: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive: 64 * 1024 * 1024,
            unpacked: 512 * 1024 * 1024,
            entries: 10_000,
            entry: 64 * 1024 * 1024,
        }
    }
}

/// What an archive held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// When the receipt says that it was made, as the ledger spells times.
    pub created: String,
    /// The program that made the receipt.
    pub attest_version: String,
    /// Whether events are missing, as the writer says.
    pub partial: bool,
    /// The receipt's bytes.
    pub receipt: Vec<u8>,
    /// The events by the id in their name, as far as they can be read.
    pub events: BTreeMap<String, Result<Event, EventError>>,
}

/// Events that are told one by one.
const TOLD: usize = 4;

impl Archive {
    /// Judges whether the archive is the receipt's: its facts, and the causal chain.
    #[must_use]
    pub fn linkage(&self, receipt: &Receipt) -> Check {
        match self.disagreement(receipt) {
            Some(detail) => Check::new(CheckName::ChainLinkage, Status::Fail, detail),
            None => {
                let readable = |(id, event): (&String, &Result<Event, EventError>)| {
                    Some((id.clone(), event.as_ref().ok()?.clone()))
                };
                let events = self.events.iter().filter_map(readable).collect();
                chain::linkage(receipt, &events, &[], self.partial)
            }
        }
    }

    fn disagreement(&self, receipt: &Receipt) -> Option<String> {
        if self.created != receipt.timestamp.with_offset()
            || self.attest_version != receipt.attest_version
        {
            return Some("manifest.json tells of another receipt".to_owned());
        }
        let unreadable: Vec<String> = self
            .events
            .iter()
            .filter_map(|(id, event)| Some(format!("{id}: {}", event.as_ref().err()?)))
            .take(TOLD)
            .collect();
        if !unreadable.is_empty() {
            return Some(format!("events cannot be read: {}", unreadable.join("; ")));
        }
        let named: BTreeSet<&str> = receipt.causal_events.iter().map(String::as_str).collect();
        let strange: Vec<&str> = self
            .events
            .keys()
            .map(String::as_str)
            .filter(|id| !named.contains(id))
            .take(TOLD)
            .collect();
        if strange.is_empty() {
            None
        } else {
            let ids = strange.join(", ");
            Some(format!("the receipt does not name these events: {ids}"))
        }
    }
}

//! The causal ledger on disk: one file per event, named by the event's id.
//!
//! Events are made from memory when a run is over, so their order and times do not depend on which
//! of several steps ended first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attest_receipt::encode::{blake3_hex, hex};
use attest_receipt::ledger::Event;
use attest_receipt::receipt::StepResult;
use attest_receipt::time::Time;
use serde::Serialize;

use crate::layout::{LayoutError, create_unsynchronised, create_whole, make_folder, synchronise};
use crate::run::SigningKey;

/// What all events of a run have in common.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a> {
    /// The run's pipeline hash.
    pub pipeline_hash: &'a str,
    /// The machine's hash.
    pub environment_hash: &'a str,
    /// When they are recorded.
    pub timestamp: Time,
}

/// Makes the events of a run. `results` stand in the order of the run, and `needs` names the steps
/// that one needs; those without an event of their own are no parents.
pub fn events<'a>(
    results: &[StepResult],
    needs: impl Fn(&str) -> &'a [String],
    shared: Shared<'_>,
) -> Vec<Event> {
    let mut ids: BTreeMap<&str, String> = BTreeMap::new();
    let mut events = Vec::with_capacity(results.len());
    for result in results {
        let parents = needs(&result.name)
            .iter()
            .filter_map(|need| ids.get(need.as_str()).cloned());
        let mut event = Event {
            event_id: String::new(),
            step_name: result.name.clone(),
            causal_parents: parents.collect(),
            input_hash: result.input_hash.clone(),
            output_hash: result.output_hash.clone(),
            timestamp: shared.timestamp,
            exit_code: result.exit_code,
            pipeline_hash: shared.pipeline_hash.to_owned(),
            environment_hash: shared.environment_hash.to_owned(),
            signer_public_key: None,
            signature: None,
            metadata: metadata(result),
        };
        event.event_id = event.computed_id();
        ids.insert(&result.name, event.event_id.clone());
        events.push(event);
    }
    events
}

fn metadata(result: &StepResult) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([
        ("cache_hit".to_owned(), result.cache_hit.to_string()),
        ("duration_secs".to_owned(), result.duration_secs.to_string()),
    ]);
    if !result.stdout.is_empty() {
        let hash = blake3_hex(result.stdout.as_bytes());
        metadata.insert("stdout_hash".to_owned(), hash);
    }
    metadata
}

/// Signs each event.
pub fn sign(events: &mut [Event], key: &dyn SigningKey) {
    for event in events {
        let signature = key.sign(&event.signing_bytes());
        event.signer_public_key = Some(key.public_hex());
        event.signature = Some(hex(&signature));
    }
}

/// Writes the events and, into a new ledger, its description. Either all of them are there
/// afterwards or, as far as the disk allows it, none that was not there before.
///
/// # Errors
/// The operating system's refusal.
pub fn store(ledger: &Path, events: &[Event], now: Time) -> Result<Written, LayoutError> {
    let folder = ledger.join("events");
    make_folder(ledger)?;
    make_folder(&folder)?;
    describe(ledger, now)?;
    let mut written = Written::default();
    for event in events {
        let path = folder.join(format!("{}.json", event.event_id));
        match create_unsynchronised(&path, &pretty(event)) {
            Ok(true) => written.files.push(path),
            // Its name says what is in it.
            Ok(false) => {}
            Err(error) => {
                written.undo();
                return Err(error);
            }
        }
    }
    if let Err(error) = synchronise(&folder) {
        written.undo();
        return Err(error);
    }
    Ok(written)
}

/// The files that were written.
#[derive(Debug, Default)]
pub struct Written {
    files: Vec<PathBuf>,
}

impl Written {
    /// Removes them again, for a receipt that did not come about.
    pub fn undo(self) {
        for file in self.files {
            // An event without a receipt is harmless; there is nobody to tell.
            fs_err::remove_file(file).ok();
        }
    }
}

fn describe(ledger: &Path, now: Time) -> Result<(), LayoutError> {
    #[derive(Serialize)]
    struct Description<'a> {
        algorithm: &'a str,
        created_at: String,
        description: &'a str,
        version: &'a str,
    }
    let path = ledger.join("metadata.json");
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let description = Description {
        algorithm: "BLAKE3 and Ed25519",
        created_at: now.to_string(),
        description: "events of attest's runs, each naming those that it followed",
        version: "0.1.0",
    };
    create_whole(&path, &pretty(&description)).map(|_| ())
}

/// Two spaces of indentation, as people read it and other tools write it.
fn pretty<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

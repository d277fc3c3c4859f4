//! From what was measured to the file: events, signature, size, name.

use std::io;
use std::path::{Path, PathBuf};

use attest_receipt::encode::{blake3_hex, hex};
use attest_receipt::ledger::Event;
use attest_receipt::receipt::{self, MAX_BYTES, Receipt};
use attest_receipt::time::Time;

use super::{LoadKey, Place, RunError, gate};
use crate::layout::{State, create_whole};
use crate::ledger;
use crate::output::Secrets;

/// Longest label in the name of a receipt.
const LABEL: usize = 100;
/// How many names are tried for one receipt; each is its content, so two are rare.
const NAMES: usize = 1000;

/// A receipt before its signature, with the events that it names.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Complete but for signature and key.
    pub receipt: Receipt,
    /// In the order of the receipt.
    pub events: Vec<Event>,
}

/// How a draft becomes a file.
#[derive(Clone, Copy)]
pub struct Closing<'a> {
    /// Where state is kept.
    pub state: &'a State,
    /// Where the receipt goes.
    pub place: &'a Place,
    /// The file that [`check_place`] found when the run began.
    pub target: Option<&'a Path>,
    /// Who signs, if it is signed.
    pub signing: Option<&'a dyn LoadKey>,
    /// What the receipt's name says, cleaned up here; the pipeline's hash where it is nothing.
    pub label: Option<&'a str>,
    /// The time of the file's name.
    pub now: Time,
    /// What must not stand in it.
    pub secrets: &'a Secrets,
    /// Whether the events go to the ledger.
    pub record_events: bool,
}

impl Closing<'_> {
    /// A step may have put a link where a folder was when the run began. None of its processes is
    /// left by now.
    fn check_folders(&self) -> Result<(), RunError> {
        if *self.place == Place::Receipts {
            self.state.check_written("receipts")?;
        }
        if self.record_events {
            self.state.check_written("causal_ledger")?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Closing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closing")
            .field("place", self.place)
            .finish_non_exhaustive()
    }
}

/// Signs and writes: events first, the receipt last, so that no receipt names an event that is not
/// there. The key is loaded here and nowhere before.
///
/// # Errors
/// A secret in it, no usable key, a receipt that no reader would take, or the disk; no receipt is
/// there then.
pub fn conclude(
    draft: Draft,
    closing: Closing<'_>,
) -> Result<(Receipt, Option<PathBuf>), RunError> {
    let Draft {
        mut receipt,
        mut events,
    } = draft;
    gate::check(closing.secrets, "receipt", &receipt)?;
    gate::check(closing.secrets, "events", &events)?;
    let label = closing.label.unwrap_or_default();
    gate::text(closing.secrets, "the name of the receipt's file", label)?;
    if let Some(signing) = closing.signing {
        let key = signing.load()?;
        ledger::sign(&mut events, &*key);
        let signature = key.sign(&receipt.signing_bytes());
        receipt.signature = Some(hex(&signature));
        receipt.signer_public_key = Some(key.public_hex());
        receipt.timestamp_token = key.stamp(&signature);
    }
    let text = receipt.to_yaml().map_err(|source| RunError::Internal {
        what: "cannot write the receipt as YAML",
        source: source.into(),
    })?;
    check_readable(&receipt, &text)?;
    if *closing.place == Place::Memory {
        return Ok((receipt, None));
    }
    closing.check_folders()?;
    let written = if closing.record_events {
        let folder = closing.state.ledger();
        ledger::store(&folder, &events, closing.now).map_err(write_failed("the causal ledger"))?
    } else {
        ledger::Written::default()
    };
    match store(&receipt, text.as_bytes(), closing) {
        Ok(path) => Ok((receipt, Some(path))),
        Err(error) => {
            written.undo();
            Err(error)
        }
    }
}

/// Makes sure that whoever reads the file gets this very receipt, before it is anywhere.
fn check_readable(receipt: &Receipt, text: &str) -> Result<(), RunError> {
    if text.len() > MAX_BYTES {
        return Err(RunError::ReceiptTooLong {
            bytes: text.len(),
            limit: MAX_BYTES,
        });
    }
    let refused = |why: String| RunError::Internal {
        what: "the receipt would be refused by every reader",
        source: why.into(),
    };
    let read = receipt::read(text.as_bytes()).map_err(|error| refused(error.to_string()))?;
    if read != *receipt {
        return Err(refused("it reads back as something else".into()));
    }
    match receipt.problems().as_slice() {
        [] => Ok(()),
        problems => Err(refused(problems.join("; "))),
    }
}

/// Finds out early that a receipt could not be put where it is wanted, and which file a named one
/// leads to.
///
/// # Errors
/// The folder is missing or not writable, or something that is no file is in the way.
pub fn check_place(place: &Place) -> Result<Option<PathBuf>, RunError> {
    let Place::File(path) = place else {
        return Ok(None);
    };
    let target = safe_fs::writable_target(path).map_err(write_failed("the receipt"))?;
    Ok(Some(target))
}

fn not_usable(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("`{}` {why}", path.display()))
}

fn store(receipt: &Receipt, text: &[u8], closing: Closing<'_>) -> Result<PathBuf, RunError> {
    if let Place::File(path) = closing.place {
        // Nobody has judged what a link leads to that was put there meanwhile.
        if check_place(closing.place)?.as_deref() != closing.target {
            let why = "leads to another file than when the run began";
            return Err(write_failed("the receipt")(not_usable(path, why)));
        }
        safe_fs::write_target(path, text, 0o644).map_err(write_failed("the receipt"))?;
        return Ok(path.clone());
    }
    let folder = closing.state.receipts();
    let stem = stem(receipt, text, closing);
    for number in 0..NAMES {
        let name = match number {
            0 => format!("{stem}.yaml"),
            number => format!("{stem}-{number}.yaml"),
        };
        let path = folder.join(name);
        if create_whole(&path, text).map_err(write_failed("the receipt"))? {
            return Ok(path);
        }
    }
    Err(write_failed("the receipt")(not_usable(
        &folder,
        "has too many receipts of this name",
    )))
}

/// `receipt_20261130T120000Z_LABEL_123456789abc`
fn stem(receipt: &Receipt, text: &[u8], closing: Closing<'_>) -> String {
    let stamp = closing.now.timestamp().strftime("%Y%m%dT%H%M%SZ");
    let label: String = match closing.label {
        Some(label) if !label.is_empty() => label.chars().take(LABEL).map(plain).collect(),
        _ => receipt.pipeline_hash.chars().take(8).collect(),
    };
    let content: String = blake3_hex(text).chars().take(12).collect();
    format!("receipt_{stamp}_{label}_{content}")
}

fn plain(character: char) -> char {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => character,
        _ => '-',
    }
}

fn write_failed<E>(what: &'static str) -> impl Fn(E) -> RunError
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |source| RunError::Write {
        what,
        source: source.into(),
    }
}

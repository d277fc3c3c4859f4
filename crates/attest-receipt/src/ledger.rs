//! The causal ledger: which step's event followed from which, as hashes that hold each other.

use std::collections::BTreeMap;

use serde::Serialize;
use strict_json::{Element, FieldError, Fields, Json, Layout, Limits};

use crate::encode::field;
use crate::receipt::take::{i32, open_object};
use crate::time::Time;

/// Longest event file in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Deepest nesting of an event; unknown fields are passed over within it.
const MAX_DEPTH: usize = 16;

/// What one step did, linked to the events that it followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// BLAKE3 of [`Event::content`], 64 hexadecimal digits.
    pub event_id: String,
    /// The step.
    pub step_name: String,
    /// The events of the steps that it needs.
    pub causal_parents: Vec<String>,
    /// The step's `input_hash`.
    pub input_hash: String,
    /// The step's `output_hash`.
    pub output_hash: String,
    /// When it was recorded.
    pub timestamp: Time,
    /// The step's exit code.
    pub exit_code: i32,
    /// The run's `pipeline_hash`.
    pub pipeline_hash: String,
    /// [`environment_hash`] of the machine.
    pub environment_hash: String,
    /// The key that signed it, 64 hexadecimal digits.
    pub signer_public_key: Option<String>,
    /// Ed25519 over [`Event::signing_bytes`], 128 hexadecimal digits.
    pub signature: Option<String>,
    /// What nothing covers: `cache_hit`, `duration_secs`, `stdout_hash`.
    pub metadata: BTreeMap<String, String>,
}

/// Says why bytes are no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// No readable JSON.
    #[error(transparent)]
    Unreadable(#[from] strict_json::JsonError),
    /// A field.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl Event {
    /// Returns the 32 bytes behind the event's id and the chain.
    #[must_use]
    pub fn content(&self) -> [u8; 32] {
        let mut bytes = Vec::with_capacity(512);
        field(&mut bytes, "domain", b"attest-causal-event/v2");
        field(&mut bytes, "step", self.step_name.as_bytes());
        field(&mut bytes, "input", self.input_hash.as_bytes());
        field(&mut bytes, "output", self.output_hash.as_bytes());
        field(&mut bytes, "pipeline", self.pipeline_hash.as_bytes());
        field(&mut bytes, "environment", self.environment_hash.as_bytes());
        field(&mut bytes, "exit", self.exit_code.to_string().as_bytes());
        field(
            &mut bytes,
            "timestamp",
            self.timestamp.with_offset().as_bytes(),
        );
        field(
            &mut bytes,
            "parents",
            self.causal_parents.len().to_string().as_bytes(),
        );
        for parent in &self.causal_parents {
            field(&mut bytes, "parent", parent.as_bytes());
        }
        *blake3::hash(&bytes).as_bytes()
    }

    /// Returns the id that the content gives.
    #[must_use]
    pub fn computed_id(&self) -> String {
        crate::encode::blake3_hex(&self.content())
    }

    /// Returns the bytes that the event's signature covers: compact JSON with sorted keys.
    #[must_use]
    pub fn signing_bytes(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Signed<'a> {
            causal_parents: &'a [String],
            environment_hash: &'a str,
            event_id: &'a str,
            exit_code: i32,
            input_hash: &'a str,
            output_hash: &'a str,
            pipeline_hash: &'a str,
            step_name: &'a str,
            timestamp: String,
        }
        strict_json::to_line(&Signed {
            causal_parents: &self.causal_parents,
            environment_hash: &self.environment_hash,
            event_id: &self.event_id,
            exit_code: self.exit_code,
            input_hash: &self.input_hash,
            output_hash: &self.output_hash,
            pipeline_hash: &self.pipeline_hash,
            step_name: &self.step_name,
            timestamp: self.timestamp.with_offset(),
        })
    }

    /// Reads an event file; unknown fields are passed over, nothing else is.
    ///
    /// Only the form is judged: whether the id is the content's own, and whether the signature
    /// holds, is for the caller to ask.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, EventError> {
        let limits = Limits {
            bytes: MAX_BYTES,
            depth: MAX_DEPTH,
        };
        let object = strict_json::parse_object(bytes, &limits, Layout::Spaced)?;
        let mut fields = open_object(object, "", &["signer_public_key", "signature"])?;
        let parents = fields.array("causal_parents")?.into_iter();
        let event = Self {
            event_id: fields.text("event_id")?,
            step_name: fields.text("step_name")?,
            causal_parents: parents.map(Element::text).collect::<Result<_, _>>()?,
            input_hash: fields.text("input_hash")?,
            output_hash: fields.text("output_hash")?,
            timestamp: fields.parse("timestamp")?,
            exit_code: i32(&mut fields, "exit_code")?,
            pipeline_hash: fields.text("pipeline_hash")?,
            environment_hash: fields.text("environment_hash")?,
            signer_public_key: fields.opt_text("signer_public_key")?,
            signature: fields.opt_text("signature")?,
            metadata: metadata(&mut fields)?,
        };
        fields.end_ignoring_unknown();
        Ok(event)
    }
}

fn metadata(fields: &mut Fields) -> Result<BTreeMap<String, String>, FieldError> {
    let path = fields.path_of("metadata");
    let wrong = |expected, found: &Json| FieldError::WrongType {
        path: path.clone(),
        expected,
        found: found.kind(),
    };
    match fields.value("metadata")? {
        Json::Object(object) => object
            .into_iter()
            .map(|(key, value)| match value {
                Json::Text(text) => Ok((key, text)),
                other => Err(wrong("an object of strings", &other)),
            })
            .collect(),
        other => Err(wrong("an object", &other)),
    }
}

/// Returns the hash over the events of a run, in the run's order, 64 hexadecimal digits.
#[must_use]
pub fn chain_hash<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let mut hasher = blake3::Hasher::new();
    for event in events {
        hasher.update(&event.content());
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the hash that stands for the machine: its system, architecture, and how steps ran
/// (`true` hermetic, `false`, or `wrapped`).
#[must_use]
pub fn environment_hash(os: &str, arch: &str, how: &str) -> String {
    crate::encode::blake3_hex(format!("{os}:{arch}:{how}").as_bytes())
}

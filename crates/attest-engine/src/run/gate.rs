//! The last look before anything is signed or written: no text of a receipt or of an event may
//! hold the value of a secret.
//!
//! What commands write is replaced on its way here. A name or a path cannot be: the receipt would
//! tell of something else then. So there is no receipt, and the message names variable and place.
//! Every text is looked at but those in [`OURS`], so that a field that is added later is, too.

use std::path::Path;

use attest_receipt::receipt::{DeclaredStep, Receipt, Source};
use serde::Serialize;
use serde_json::Value;

use super::{RunError, RunOptions};
use crate::output::Secrets;

/// Hashes, times and words that are attest's own: a short value may stand there by chance.
const OURS: &[&str] = &[
    "receipt.pipeline_hash",
    "receipt.timestamp",
    "receipt.signature",
    "receipt.signer_public_key",
    "receipt.attest_version",
    "receipt.causal_events[]",
    "receipt.causal_chain_hash",
    "receipt.timestamp_token",
    "receipt.steps[].input_hash",
    "receipt.steps[].output_hash",
    "receipt.steps[].capsule_hash",
    "receipt.reproducibility.method",
    "receipt.provenance.invocation_id",
    "receipt.provenance.started_at",
    "receipt.provenance.source.commit",
    "receipt.provenance.runner_os",
    "receipt.provenance.runner_arch",
    "receipt.provenance.ci.provider",
    "receipt.provenance.execution.mode",
    "receipt.provenance.steps[].command_hash",
    "receipt.provenance.artifacts[].kind",
    "receipt.provenance.artifacts[].digest",
    "receipt.provenance.artifacts[].algorithm",
    "receipt.isolation.mode",
    "receipt.isolation.platform",
    "receipt.isolation.controls[].name",
    "receipt.isolation.controls[].status",
    "receipt.isolation.controls[].detail",
    "receipt.plugins[].digest",
    "receipt.plugins[].decision",
    "events[].event_id",
    "events[].causal_parents[]",
    "events[].input_hash",
    "events[].output_hash",
    "events[].timestamp",
    "events[].pipeline_hash",
    "events[].environment_hash",
    "events[].signer_public_key",
    "events[].signature",
    "events[].metadata.cache_hit",
    "events[].metadata.duration_secs",
    "events[].metadata.stdout_hash",
];

/// Where keys are not attest's own.
const FOREIGN_KEYS: &str = "receipt.plugins[].annotation";

/// Refuses a value with a secret in one of its texts; `root` is `receipt` or `events`.
pub(super) fn check<T: Serialize>(
    secrets: &Secrets,
    root: &str,
    value: &T,
) -> Result<(), RunError> {
    if secrets.is_empty() {
        return Ok(());
    }
    let value = serde_json::to_value(value).map_err(|source| RunError::Internal {
        what: "cannot look for secrets in the receipt",
        source: source.into(),
    })?;
    let here = Here {
        place: root.to_owned(),
        shape: root.to_owned(),
    };
    walk(secrets, &here, &value)
}

/// Refuses a receipt with a secret in it before anybody is shown it.
pub(crate) fn shown(secrets: &Secrets, receipt: &Receipt) -> Result<(), RunError> {
    check(secrets, "receipt", receipt)
}

/// Refuses a text with a secret in it.
pub(crate) fn text(secrets: &Secrets, place: &str, text: &str) -> Result<(), RunError> {
    match secrets.find(text.as_bytes()) {
        None => Ok(()),
        Some(name) => Err(RunError::Secret {
            name: name.to_owned(),
            place: place.to_owned(),
            text: bounded::text::visible(&secrets.replace(text)),
        }),
    }
}

/// Refuses a path with a secret in it.
pub(crate) fn path(secrets: &Secrets, place: &str, path: &Path) -> Result<(), RunError> {
    text(secrets, place, &path.to_string_lossy())
}

/// Refuses before anything runs what would be refused at the end.
pub(crate) fn early(
    secrets: &Secrets,
    pipeline_name: Option<&str>,
    steps: &[DeclaredStep],
) -> Result<(), RunError> {
    #[derive(Serialize)]
    struct Early<'a> {
        provenance: Provenance<'a>,
    }
    #[derive(Serialize)]
    struct Provenance<'a> {
        pipeline_name: Option<&'a str>,
        steps: &'a [DeclaredStep],
    }
    let provenance = Provenance {
        pipeline_name,
        steps,
    };
    check(secrets, "receipt", &Early { provenance })
}

/// Does the same for the commit, which is known a little later.
pub(crate) fn source(secrets: &Secrets, source: Option<&Source>) -> Result<(), RunError> {
    check(secrets, "receipt.provenance.source", &source)
}

/// Refuses places that are told at the end of a run and have a secret in their names.
pub(super) fn places(secrets: &Secrets, options: &RunOptions<'_>) -> Result<(), RunError> {
    told_places(secrets, &options.state, &options.place)
}

/// Does the same for a wrapped command.
pub(crate) fn told_places(
    secrets: &Secrets,
    state: &crate::layout::State,
    place: &super::Place,
) -> Result<(), RunError> {
    match place {
        super::Place::File(file) => path(secrets, "the path of the receipt", file),
        super::Place::Receipts => path(secrets, "the path of the state folder", state.folder()),
        super::Place::Memory => Ok(()),
    }
}

/// Where a value stands: with the numbers of list items for people, and without.
struct Here {
    place: String,
    shape: String,
}

impl Here {
    fn item(&self, number: usize) -> Self {
        Self {
            place: format!("{}[{number}]", self.place),
            shape: format!("{}[]", self.shape),
        }
    }

    fn field(&self, name: &str) -> Self {
        Self {
            place: format!("{}.{name}", self.place),
            shape: format!("{}.{name}", self.shape),
        }
    }
}

fn walk(secrets: &Secrets, here: &Here, value: &Value) -> Result<(), RunError> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        // A secret of digits may have become a number on its way.
        Value::Number(number) if here.shape.starts_with(FOREIGN_KEYS) => {
            text(secrets, &here.place, &number.to_string())
        }
        Value::Number(_) => Ok(()),
        Value::String(_) if OURS.contains(&here.shape.as_str()) => Ok(()),
        Value::String(value) => text(secrets, &here.place, value),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(number, item)| walk(secrets, &here.item(number), item)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            if here.shape.starts_with(FOREIGN_KEYS) {
                text(secrets, &format!("a key of {}", here.place), name)?;
            }
            walk(secrets, &here.field(name), value)
        }),
    }
}

#[cfg(test)]
mod tests;

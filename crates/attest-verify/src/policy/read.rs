//! The policy file as text.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Age, MAX_BYTES, Policy, Signer};
use crate::require::{RequireError, Requirement};
use crate::trust::KeyId;

/// Longest `max_age` in seconds: a hundred years.
const LONGEST: i64 = 100 * 366 * 86_400;

/// Says why a file is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// More bytes than allowed; nothing was read.
    #[error("{0} bytes are more than the {MAX_BYTES} of a policy file")]
    TooLong(usize),
    /// No TOML, an unknown key or a value of another type.
    #[error("line {line}: {reason}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A value of another form.
    #[error("{key}: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// Why.
        reason: String,
    },
    /// A name in `require`.
    #[error(transparent)]
    Require(#[from] RequireError),
    /// No rule, which can hardly be meant.
    #[error("the policy has no rule")]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: i64,
    require: Option<Vec<String>>,
    steps: Option<Vec<String>>,
    max_age: Option<String>,
    signer: Option<Vec<SignerEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignerEntry {
    key: String,
    steps: Option<Vec<String>>,
}

pub(super) fn policy(bytes: &[u8]) -> Result<Policy, PolicyError> {
    let file = file(bytes)?;
    if file.version != 1 {
        return wrong("version", "is 1; another version needs another program");
    }
    let steps = file.steps.map(|names| set("steps", names)).transpose()?;
    let signers = file
        .signer
        .map(|entries| signers(entries, steps.as_ref()))
        .transpose()?;
    let policy = Policy {
        require: Requirement::parse(&file.require.unwrap_or_default())?,
        signers,
        steps,
        max_age: file.max_age.map(age).transpose()?,
    };
    if policy.requirements().is_empty() {
        return Err(PolicyError::Empty);
    }
    Ok(policy)
}

fn file(bytes: &[u8]) -> Result<File, PolicyError> {
    if bytes.len() > MAX_BYTES {
        return Err(PolicyError::TooLong(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| PolicyError::Syntax {
        line: line_of(bytes, error.valid_up_to()),
        reason: "not UTF-8".to_owned(),
    })?;
    toml::from_str(text).map_err(|error| PolicyError::Syntax {
        line: line_of(bytes, error.span().map_or(0, |span| span.start)),
        reason: bounded::text::visible(error.message()),
    })
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes.iter().take(at).filter(|byte| **byte == b'\n').count()
}

fn wrong<T>(key: &'static str, reason: impl Into<String>) -> Result<T, PolicyError> {
    let reason = reason.into();
    Err(PolicyError::Value { key, reason })
}

/// Takes names that stand once each; an empty list could only refuse everything.
fn set(key: &'static str, names: Vec<String>) -> Result<BTreeSet<String>, PolicyError> {
    if names.is_empty() {
        return wrong(key, "is empty; leave it out or name a step");
    }
    let mut set = BTreeSet::new();
    for name in names {
        let shown = bounded::text::visible(&name);
        if name.is_empty() || !set.insert(name) {
            return wrong(key, format!("step '{shown}' is empty or stands twice"));
        }
    }
    Ok(set)
}

fn signers(
    entries: Vec<SignerEntry>,
    expected: Option<&BTreeSet<String>>,
) -> Result<Vec<Signer>, PolicyError> {
    if entries.is_empty() {
        return wrong("signer", "is empty; leave it out or name a key");
    }
    let mut seen = BTreeSet::new();
    let mut signers = Vec::with_capacity(entries.len());
    for entry in entries {
        let Ok(key) = KeyId::new(&entry.key) else {
            return wrong("signer.key", "a key id is 32 lowercase hexadecimal digits");
        };
        if !seen.insert(key) {
            return wrong("signer.key", format!("{key} stands twice"));
        }
        let steps = entry
            .steps
            .map(|names| set("signer.steps", names))
            .transpose()?;
        let unknown = steps
            .iter()
            .flatten()
            .find(|name| expected.is_some_and(|expected| !expected.contains(name.as_str())));
        if let Some(name) = unknown {
            let shown = bounded::text::visible(name);
            return wrong("signer.steps", format!("'{shown}' is not among `steps`"));
        }
        signers.push(Signer { key, steps });
    }
    Ok(signers)
}

/// Reads a whole number and a unit: `45s`, `90m`, `12h`, `30d`.
fn age(text: String) -> Result<Age, PolicyError> {
    let seconds = seconds(&text).filter(|seconds| (1..=LONGEST).contains(seconds));
    match seconds {
        Some(seconds) => Ok(Age { seconds, text }),
        None => wrong(
            "max_age",
            "is a whole number above 0 and one of s, m, h, d, such as \"30d\"",
        ),
    }
}

fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    plain.then(|| number.parse::<i64>().ok()?.checked_mul(unit))?
}

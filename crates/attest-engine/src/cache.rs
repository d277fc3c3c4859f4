//! Results of steps that need not run again.
//!
//! An entry is a claim of whoever can write the state folder. It is used only where the key, which
//! covers the whole step, its variables and the hash of its inputs, is that of the step at hand,
//! and the outputs on disk hash to what it says; the files behind the outputs are told from disk,
//! never from the entry. An entry that is unreadable or is another step's is passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attest_receipt::encode::{blake3_hex, field};
use attest_receipt::pipeline::Step;
use attest_receipt::receipt::StepResult;
use attest_receipt::time::Time;
use attest_receipt::yaml::{self, IntoJson as _};
use serde::Serialize;
use strict_json::{FieldError, Json};

use crate::layout::{LayoutError, replace_soon};
use crate::output::{Record, Secrets};
use crate::told::told;

/// Longest entry in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What a result depends on.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The step's name.
    pub name: &'a str,
    /// All that it declares.
    pub step: &'a Step,
    /// The hash of its inputs and command.
    pub input_hash: &'a str,
    /// The hash of its capsule.
    pub capsule_hash: Option<&'a str>,
    /// The variables that it gets beside the inherited ones.
    pub variables: &'a BTreeMap<String, String>,
    /// How much of its outputs is kept.
    pub record: Record,
}

impl Subject<'_> {
    /// Returns the key: 64 hexadecimal digits.
    #[must_use]
    pub fn key(&self) -> String {
        let shape = blake3_hex(&strict_json::to_line(self.step));
        let mut bytes = b"attest-cache-key/v4\n".to_vec();
        field(&mut bytes, "shape", shape.as_bytes());
        field(&mut bytes, "step", self.name.as_bytes());
        field(&mut bytes, "inputs", self.input_hash.as_bytes());
        self.encode_variables(&mut bytes);
        // Entries with the default amount are those that other tools know.
        match self.record {
            Record::Tail => {}
            Record::None => field(&mut bytes, "record", b"none"),
            Record::Full => field(&mut bytes, "record", b"full"),
        }
        blake3_hex(&bytes)
    }

    fn environment_hash(&self) -> String {
        let mut bytes = Vec::new();
        self.encode_variables(&mut bytes);
        blake3_hex(&bytes)
    }

    fn encode_variables(&self, bytes: &mut Vec<u8>) {
        let capsule = self
            .capsule_hash
            .map(|hash| ("ATTEST_CAPSULE_HASH".to_owned(), hash.to_owned()));
        let mut variables = self.variables.clone();
        variables.extend(capsule);
        field(bytes, "env-count", variables.len().to_string().as_bytes());
        for (name, value) in &variables {
            field(bytes, "env-key", name.as_bytes());
            field(bytes, "env-value", value.as_bytes());
        }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.yaml", self.key()))
    }
}

/// What the cache has for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A result; its outputs were not compared yet.
    Claim(StepResult),
    /// A file that is no entry for this step, and why.
    Unusable(String),
}

/// Looks for a step's result.
#[must_use]
pub fn look(folder: &Path, subject: &Subject<'_>) -> Found {
    let path = subject.path(folder);
    let bytes = match safe_fs::read_bounded(&path, MAX_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Found::Nothing,
        Err(error) => return Found::Unusable(error.to_string()),
    };
    let claim = read(&bytes).and_then(|(key, result)| fits(subject, &key, result));
    match claim {
        Ok(result) => Found::Claim(result),
        Err(why) => Found::Unusable(format!("`{}`: {why}", path.display())),
    }
}

fn fits(subject: &Subject<'_>, key: &str, result: StepResult) -> Result<StepResult, String> {
    let same = key == subject.key()
        && result.name == subject.name
        && result.input_hash == subject.input_hash
        && result.capsule_hash.as_deref() == subject.capsule_hash;
    if !same {
        return Err("the entry is another step's".into());
    }
    if result.exit_code != 0 {
        return Err("the entry records a failure, which is never cached".into());
    }
    Ok(result)
}

fn read(bytes: &[u8]) -> Result<(String, StepResult), String> {
    let limits = yaml::Limits {
        bytes: MAX_BYTES,
        depth: 8,
    };
    let tree = yaml::parse(bytes, &limits).and_then(yaml::Node::into_json);
    match tree.map_err(|error| error.to_string())? {
        Json::Object(entry) => take(entry).map_err(|error| error.to_string()),
        _ => Err("the entry is no mapping".into()),
    }
}

fn take(entry: strict_json::Object) -> Result<(String, StepResult), FieldError> {
    let mut entry = entry.fields("");
    let key = entry.text("content_hash")?;
    let mut result = entry.object("result")?;
    let capsule_hash = match result.opt_value("capsule_hash")? {
        None | Some(Json::Null) => None,
        Some(Json::Text(hash)) => Some(hash),
        Some(_) => return Err(FieldError::invalid("result.capsule_hash", "must be text")),
    };
    let exit_code = i32::try_from(result.i64("exit_code")?)
        .map_err(|_| FieldError::invalid("result.exit_code", "is out of range"))?;
    let step = StepResult {
        name: result.text("name")?,
        input_hash: result.text("input_hash")?,
        output_hash: result.text("output_hash")?,
        duration_secs: result.u64("duration_secs")?,
        exit_code,
        cache_hit: true,
        stdout: result.text("stdout")?,
        stderr: result.text("stderr")?,
        capsule_hash,
    };
    result.end_ignoring_unknown();
    entry.end_ignoring_unknown();
    Ok((key, step))
}

/// Stores a step's result, replacing an older one.
///
/// # Errors
/// Why it could not be written, in words; a run goes on without it.
pub fn store(
    folder: &Path,
    subject: &Subject<'_>,
    result: &StepResult,
    secrets: &Secrets,
    now: Time,
) -> Result<(), String> {
    #[derive(Serialize)]
    struct Entry<'a> {
        content_hash: String,
        step_name: &'a str,
        input_paths: &'a [String],
        output_paths: &'a [String],
        command: String,
        environment_hash: String,
        result: &'a StepResult,
        cached_at: Time,
        dependencies: &'a [String],
        metadata: BTreeMap<String, String>,
    }
    let entry = Entry {
        content_hash: subject.key(),
        step_name: subject.name,
        input_paths: &subject.step.inputs,
        output_paths: &subject.step.outputs,
        command: secrets.replace(&subject.step.run),
        environment_hash: subject.environment_hash(),
        result,
        cached_at: now,
        dependencies: subject.step.needs.as_deref().unwrap_or_default(),
        metadata: BTreeMap::new(),
    };
    let text = yaml_serde::to_string(&entry).map_err(|error| error.to_string())?;
    // What a power failure leaves of an entry is passed over like any other damage.
    replace_soon(&subject.path(folder), text.as_bytes()).map_err(|error| {
        let why = match &error {
            // Its words name a temporary file, which nobody can do anything about.
            LayoutError::Io { source, .. } => source.kind().to_string(),
            error => told(error),
        };
        format!("cannot write into `{}`: {why}", folder.display())
    })
}

#[cfg(test)]
mod tests;

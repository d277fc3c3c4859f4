//! The pipeline: what a run is asked to do, and the canonical form that is hashed.

mod graph;
mod read;
mod rules;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::yaml::YamlError;

/// The highest `schema_version` of a pipeline file.
pub const NEWEST_VERSION: u32 = 1;

/// Longest pipeline file in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What a run is asked to do. Absent optional fields are written as `null`, so that the canonical
/// form says everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pipeline {
    /// The version of the file's format; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// The user's own version.
    pub version: String,
    /// Its name.
    pub name: Option<String>,
    /// The steps by name.
    pub steps: BTreeMap<String, Step>,
    /// Variables for every step.
    pub env: BTreeMap<String, String>,
    /// Wishes without an effect on a run.
    pub attestation: Attestation,
    /// Names of variables whose values never reach a receipt, log or event (ours; absent when empty,
    /// so that the canonical form of other pipelines stays what it was).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// Wishes of a pipeline without an effect on a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Attestation {
    /// `sign_all_steps`
    pub sign_all_steps: bool,
    /// `verify_dependencies`
    pub verify_dependencies: bool,
    /// `require_reproducible`
    pub require_reproducible: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The command for `sh -c`.
    pub run: String,
    /// Files and directories that it reads, literally.
    pub inputs: Vec<String>,
    /// Files and directories that it makes, literally.
    pub outputs: Vec<String>,
    /// Steps that come before.
    pub needs: Option<Vec<String>>,
    /// Variables of its own.
    pub env: Option<BTreeMap<String, String>>,
    /// Where it runs, below the workspace.
    pub working_dir: Option<String>,
    /// Without an effect.
    pub image: Option<String>,
    /// The capsule that it runs in.
    pub capsule: Option<String>,
    /// Whether its result may be cached.
    pub cache: bool,
    /// After how long it is killed.
    pub timeout_secs: Option<u64>,
    /// Wishes without an effect.
    pub attestation: Option<StepAttestation>,
}

/// Wishes of a step without an effect on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepAttestation {
    /// Its kind in the user's words.
    #[serde(rename = "type")]
    pub kind: String,
    /// `reproducible`
    pub reproducible: bool,
    /// `generate_slsa`
    pub generate_slsa: bool,
    /// `verify_chain`
    pub verify_chain: bool,
}

/// Says why a file is no pipeline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// No readable document.
    #[error(transparent)]
    Unreadable(#[from] YamlError),
    /// A rule of the format, with the line where there is one.
    #[error("{}{reason}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Invalid {
        /// The line, from 1.
        line: Option<usize>,
        /// Why.
        reason: String,
    },
}

impl Pipeline {
    /// Returns the canonical form: the whole pipeline, written again.
    ///
    /// # Errors
    /// The emitter's, which no pipeline is known to cause.
    pub fn canonical(&self) -> Result<String, yaml_serde::Error> {
        yaml_serde::to_string(self)
    }

    /// Returns the BLAKE3 hash of the canonical form, 64 hexadecimal digits.
    ///
    /// # Errors
    /// As [`Pipeline::canonical`].
    pub fn hash(&self) -> Result<String, yaml_serde::Error> {
        Ok(crate::encode::blake3_hex(self.canonical()?.as_bytes()))
    }
}

impl Step {
    /// Returns the BLAKE3 hash of the command, 64 hexadecimal digits.
    #[must_use]
    pub fn command_hash(&self) -> String {
        crate::encode::blake3_hex(self.run.as_bytes())
    }
}

/// Returns the text that stands for a wrapped command: its argument vector as compact JSON.
#[must_use]
pub fn wrapped_command(argv: &[String]) -> String {
    String::from_utf8_lossy(&strict_json::to_line(argv)).into_owned()
}

/// Returns the `pipeline_hash` of a wrapped command.
#[must_use]
pub fn wrapped_hash(argv: &[String]) -> String {
    let text = format!("attest-wrap/v1\n{}", wrapped_command(argv));
    crate::encode::blake3_hex(text.as_bytes())
}

//! What a request is about. Absent fields are omitted, never `null` (ours).

use std::collections::BTreeMap;

use serde::Serialize;
use strict_json::Object;

use crate::hook::Hook;
use crate::limits::OUTPUT_BYTES;

/// The payload of a request, one shape per hook (seed 6.3; the fields are ours).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Payload {
    /// Of `pipeline.validate`.
    #[serde(rename = "pipeline")]
    Pipeline(PipelinePayload),
    /// Of `step.pre`.
    #[serde(rename = "step")]
    BeforeStep(BeforeStep),
    /// Of `step.post`.
    #[serde(rename = "step")]
    AfterStep(AfterStep),
    /// Of `receipt.finalize`: the receipt as it will be signed, without signature and records.
    #[serde(rename = "receipt")]
    Receipt(Object),
}

impl Payload {
    /// Returns the hook that it belongs to.
    #[must_use]
    pub fn hook(&self) -> Hook {
        match self {
            Self::Pipeline(_) => Hook::PipelineValidate,
            Self::BeforeStep(_) => Hook::StepPre,
            Self::AfterStep(_) => Hook::StepPost,
            Self::Receipt(_) => Hook::ReceiptFinalize,
        }
    }
}

/// The pipeline that is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PipelinePayload {
    /// Its file, relative to the workspace; absent when a single command is wrapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The hash of the file.
    pub pipeline_hash: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its steps in topological order.
    pub steps: Vec<StepPlan>,
}

/// A step as the pipeline declares it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StepPlan {
    /// Its name.
    pub name: String,
    /// Its command.
    pub run: String,
    /// The steps that it needs.
    pub needs: Vec<String>,
    /// Its declared inputs.
    pub inputs: Vec<String>,
    /// Its declared outputs.
    pub outputs: Vec<String>,
    /// The pipeline's variables, overlaid by its own.
    pub env: BTreeMap<String, String>,
    /// Its working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Its capsule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsule: Option<String>,
    /// Whether it may be taken from the cache.
    pub cache: bool,
    /// Its time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
}

/// A step that is about to run or to be taken from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BeforeStep {
    /// Its name.
    pub name: String,
    /// Its command.
    pub run: String,
    /// The steps that it needs.
    pub needs: Vec<String>,
    /// Its declared inputs.
    pub inputs: Vec<String>,
    /// Its declared outputs.
    pub outputs: Vec<String>,
    /// The hash of its command and inputs.
    pub input_hash: String,
    /// The hash of its command.
    pub command_hash: String,
    /// The hash of its capsule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsule_hash: Option<String>,
    /// Whether its result is in the cache.
    pub cache_hit: bool,
}

/// A step that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AfterStep {
    /// Its name.
    pub name: String,
    /// The hash of its command and inputs.
    pub input_hash: String,
    /// The hash of its outputs.
    pub output_hash: String,
    /// How long it took.
    pub duration_secs: u64,
    /// Its exit code.
    pub exit_code: i32,
    /// Whether its result came from the cache.
    pub cache_hit: bool,
    /// The hash of its capsule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsule_hash: Option<String>,
    /// What it wrote, for a plugin that is declared with `wants_output`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub output: Option<StepOutput>,
}

/// The last 64 KiB of what a step wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StepOutput {
    /// The end of its stdout.
    pub stdout: String,
    /// The end of its stderr.
    pub stderr: String,
    /// Whether there was more on stdout.
    pub stdout_truncated: bool,
    /// Whether there was more on stderr.
    pub stderr_truncated: bool,
}

impl StepOutput {
    /// Takes the last 64 KiB of each, cut at a character.
    #[must_use]
    pub fn tail(stdout: &str, stderr: &str) -> Self {
        let (stdout, stdout_truncated) = tail(stdout);
        let (stderr, stderr_truncated) = tail(stderr);
        Self {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            stdout_truncated,
            stderr_truncated,
        }
    }
}

/// Returns the last 64 KiB of a text, cut at a character, and whether anything was cut.
#[must_use]
pub fn tail(text: &str) -> (&str, bool) {
    let end = bounded::text::tail(text, OUTPUT_BYTES);
    (end, end.len() < text.len())
}

//! The receipt: what a run did, in the order of the fields that is also the canonical order.
//!
//! Hashes and keys are held as they are spelled, so that a receipt with a malformed hash can be
//! read, shown and judged; [`Receipt::problems`] is where they are judged.

mod plugin;
mod problems;
mod read;
mod sign;
pub(crate) mod take;

use serde::Serialize;
use strict_json::Json;

use crate::time::Time;

pub use read::{ReadError, SchemaError, read, version_gate};

/// The highest `schema_version` that this crate reads.
pub const NEWEST_VERSION: u32 = 3;

/// The version of receipts without plugins.
pub const PLAIN_VERSION: u32 = 2;

/// The version of receipts with plugins.
pub const PLUGINS_VERSION: u32 = 3;

/// Longest receipt in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Deepest nesting of a receipt; annotations may be 64 deep, four levels down.
pub const MAX_DEPTH: usize = 80;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// The version of the format; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// BLAKE3 of the canonical pipeline, or of the wrapped command.
    pub pipeline_hash: String,
    /// The steps that ran, in the order in which they are told.
    pub steps: Vec<StepResult>,
    /// When the run ended.
    pub timestamp: Time,
    /// How long the run took.
    pub total_duration_secs: u64,
    /// Ed25519 over [`Receipt::signing_bytes`], 128 hexadecimal digits.
    pub signature: Option<String>,
    /// The public key that verifies it, 64 hexadecimal digits.
    pub signer_public_key: Option<String>,
    /// The version of the program that wrote the receipt.
    pub attest_version: String,
    /// The ids of the ledger's events, in the order of the run.
    pub causal_events: Vec<String>,
    /// BLAKE3 over the events.
    pub causal_chain_hash: Option<String>,
    /// What a reproducibility check found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproducibility: Option<Reproducibility>,
    /// Where the run took place and what it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// An RFC 3161 token over the signature, base64 of its DER form; not signed itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_token: Option<String>,
    /// How the steps were kept apart from the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The plugins that were declared, sorted by name; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<PluginRecord>>,
}

/// What one step did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepResult {
    /// Its name.
    pub name: String,
    /// BLAKE3 of the manifest of its command and inputs.
    pub input_hash: String,
    /// BLAKE3 of the manifest of its outputs.
    pub output_hash: String,
    /// How long it took.
    pub duration_secs: u64,
    /// Its exit code; 124 after a time-out, -1 after a signal.
    pub exit_code: i32,
    /// Whether the result came from the cache.
    pub cache_hit: bool,
    /// What it wrote to stdout, bounded.
    pub stdout: String,
    /// What it wrote to stderr, bounded.
    pub stderr: String,
    /// The hash of the capsule it ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsule_hash: Option<String>,
}

/// What a reproducibility check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reproducibility {
    /// Whether every compared output agreed.
    pub verified: bool,
    /// How many times the pipeline ran.
    pub runs: u32,
    /// How it was compared; `double-build/v1`.
    pub method: String,
}

/// Where the run took place and what it made. What is unknown is written as `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// A UUID of this run.
    pub invocation_id: Option<String>,
    /// When the run started.
    pub started_at: Option<Time>,
    /// The name of the pipeline.
    pub pipeline_name: Option<String>,
    /// The git commit of the workspace.
    pub source: Option<Source>,
    /// The operating system.
    pub runner_os: String,
    /// The architecture.
    pub runner_arch: String,
    /// The CI job.
    pub ci: Option<Ci>,
    /// What each step declared, sorted by name.
    pub steps: Vec<DeclaredStep>,
    /// The files behind the output hashes.
    pub artifacts: Vec<Artifact>,
    /// How the steps were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// The git commit of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The address of `origin` without credentials.
    pub repository: Option<String>,
    /// The commit.
    pub commit: String,
    /// The branch.
    pub branch: Option<String>,
    /// Whether tracked files differed from the commit.
    pub tracked_dirty: bool,
}

/// A CI job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ci {
    /// Whose CI it is.
    pub provider: CiProvider,
    /// The run or pipeline.
    pub run_id: Option<String>,
    /// The job.
    pub job_id: Option<String>,
}

/// Whose CI it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CiProvider {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
}

/// What one step declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredStep {
    /// Its name.
    pub name: String,
    /// The steps that it needs.
    pub needs: Vec<String>,
    /// BLAKE3 of its command.
    pub command_hash: String,
    /// Its inputs as declared.
    pub inputs: Vec<String>,
    /// Its outputs as declared.
    pub outputs: Vec<String>,
}

/// One file behind an output hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// The step that declared it.
    pub step: String,
    /// Its path below the workspace.
    pub path: String,
    /// What it is.
    pub kind: ArtifactKind,
    /// BLAKE3 of its content, or of a link's target.
    pub digest: String,
    /// `blake3`
    pub algorithm: String,
}

/// What an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// A regular file
    File,
    /// A symbolic link
    Symlink,
}

/// How the steps were started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Execution {
    /// From a pipeline file.
    Native,
    /// From a command line.
    Wrapped {
        /// Its argument vector.
        command: Vec<String>,
    },
}

/// How the steps were kept apart from the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// In a word.
    pub mode: IsolationMode,
    /// The operating system.
    pub platform: String,
    /// One by one.
    pub controls: Vec<Control>,
    /// The steps that ran in capsules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capsule_steps: Vec<String>,
}

/// How steps were kept apart, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationMode {
    /// Not at all
    None,
    /// As processes with limits
    Process,
    /// In containers
    Container,
    /// In containers with every control
    StrictContainer,
}

/// One way of keeping a step apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Control {
    /// Which.
    pub name: String,
    /// Whether it was in force.
    pub status: ControlStatus,
    /// In words.
    pub detail: String,
}

/// Whether a control was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlStatus {
    /// In force
    Enforced,
    /// Not in force
    NotEnforced,
    /// Cannot be in force here
    NotAvailable,
}

/// What one plugin had to do with the run (attest-plugin/1, section 7).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PluginRecord {
    /// Its declared name.
    pub name: String,
    /// Its version; empty before the handshake.
    pub version: String,
    /// The protocol's major version.
    pub protocol: u32,
    /// `blake3:` and the hash of the executable.
    pub digest: String,
    /// The worst decision that it gave, or what became of it.
    pub decision: Decision,
    /// Whether its answers are a function of the requests.
    pub deterministic: bool,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The annotation of its last verdict that had one: an object, its keys sorted at every depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation: Option<Json>,
}

/// What a plugin decided, or what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Declared and never asked
    Skipped,
    /// Nothing against it
    Allow,
    /// Something to look at
    Warn,
    /// No
    Deny,
    /// It failed
    Error,
}

impl Receipt {
    /// Returns how many steps ended with another code than 0.
    #[must_use]
    pub fn failed_steps(&self) -> usize {
        self.steps.iter().filter(|step| step.exit_code != 0).count()
    }
}

//! An in-toto Statement v1 with SLSA provenance v1, made of a receipt that it carries along.
//!
//! Everything in it but the SHA-256 of files follows from the receipt, so a reader makes it again
//! and compares. The receipt stays what is judged.

mod parse;
mod words;

use std::collections::BTreeMap;

use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;
use jiff::SignedDuration;
use serde::Serialize;
use strict_json::Json;

use crate::blob::Blob;
use crate::inventory::{self, InventoryError};

pub use words::SEMANTICS;

/// The type of a statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of its predicate.
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// Where the mapping from a receipt is described.
pub const BUILD_TYPE: &str = "https://github.com/Alien6-Studio/continuum-attest/blob/main/docs/specifications/attest-pipeline-v2.md";
/// The mapping of the first releases, which carried no receipt.
pub const EARLY_BUILD_TYPE: &str = "https://alien6.com/attest/pipeline/v1";
/// What a receipt says of the machine: nothing.
pub const BUILDER: &str = "urn:attest:builder:unverified";

const EVIDENCE_FORMAT: &str = "attest-original-evidence/v1";
const RECEIPT_TYPE: &str = "application/yaml";
const TRUST_TYPE: &str = "application/octet-stream";

/// A statement. The order of fields is the order of their JSON names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Statement {
    #[serde(rename = "_type")]
    pub(crate) kind: String,
    pub(crate) predicate: Predicate,
    #[serde(rename = "predicateType")]
    pub(crate) predicate_type: String,
    pub(crate) subject: Vec<Subject>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Subject {
    pub(crate) digest: Digest,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Digest {
    pub(crate) blake3: String,
    /// The word of whoever made the statement: the receipt has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Predicate {
    #[serde(rename = "attest_evidence", skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<Evidence>,
    #[serde(rename = "buildDefinition")]
    pub(crate) build: BuildDefinition,
    #[serde(rename = "runDetails")]
    pub(crate) run: RunDetails,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evidence {
    pub(crate) artifact_binding: String,
    pub(crate) format: String,
    pub(crate) original_signer: Option<String>,
    pub(crate) producer: Producer,
    pub(crate) receipt: Blob,
    pub(crate) semantics: Vec<String>,
    pub(crate) trust_material: BTreeMap<String, Blob>,
    /// A claim that nothing here can judge.
    pub(crate) workflow: Option<Json>,
    pub(crate) workflow_bundle: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Producer {
    pub(crate) name: String,
    pub(crate) version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildDefinition {
    pub(crate) build_type: String,
    pub(crate) external_parameters: ExternalParameters,
    /// Input manifests are no single resources, so there are none.
    pub(crate) resolved_dependencies: Vec<()>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExternalParameters {
    pub(crate) pipeline_hash: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunDetails {
    pub(crate) builder: Builder,
    pub(crate) metadata: Metadata,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Builder {
    pub(crate) id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) finished_on: String,
    pub(crate) invocation_id: String,
    pub(crate) started_on: String,
}

/// Why no statement can be made of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// Its files.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// Its times.
    #[error("the receipt's time and duration give no start that can be written")]
    Start,
}

/// What goes into a statement beside the receipt.
#[derive(Debug, Clone, Copy)]
pub struct Carried<'a> {
    /// The receipt's file.
    pub bytes: &'a [u8],
    /// The same, taken apart.
    pub receipt: &'a Receipt,
    /// The version of this program.
    pub version: &'a str,
    /// Public files of a trust store, by name: context, never an authority.
    pub trust: &'a BTreeMap<String, Vec<u8>>,
    /// SHA-256 of artifacts by path, where the file is at hand and still the receipt's.
    pub sha256: &'a BTreeMap<String, String>,
}

/// Makes the statement of a receipt: compact JSON, keys sorted at every level.
///
/// # Errors
/// What of the receipt keeps it from being one.
pub fn make(carried: &Carried<'_>) -> Result<Vec<u8>, StatementError> {
    let receipt = carried.receipt;
    let trust = carried.trust.iter();
    let evidence = Evidence {
        artifact_binding: binding(receipt).to_owned(),
        format: EVIDENCE_FORMAT.to_owned(),
        original_signer: receipt.signer_public_key.clone(),
        producer: Producer {
            name: "attest".to_owned(),
            version: carried.version.to_owned(),
        },
        receipt: Blob::new(carried.bytes, RECEIPT_TYPE),
        semantics: SEMANTICS.map(str::to_owned).to_vec(),
        trust_material: trust
            .map(|(name, bytes)| (name.clone(), Blob::new(bytes, TRUST_TYPE)))
            .collect(),
        workflow: None,
        workflow_bundle: None,
    };
    let mut statement = project(receipt, evidence)?;
    for subject in &mut statement.subject {
        subject.digest.sha256 = carried.sha256.get(&subject.name).cloned();
    }
    Ok(strict_json::to_line(&statement))
}

/// Makes the statement that a receipt has with this evidence, without SHA-256 of files.
pub(crate) fn project(receipt: &Receipt, evidence: Evidence) -> Result<Statement, StatementError> {
    let files = inventory::of(receipt)?.unwrap_or_default();
    let subject = inventory::regular(&files).map(|artifact| Subject {
        digest: Digest {
            blake3: artifact.digest.clone(),
            sha256: None,
        },
        name: artifact.path.clone(),
    });
    let metadata = Metadata {
        finished_on: to_the_second(receipt.timestamp),
        invocation_id: evidence.receipt.sha256.clone(),
        started_on: to_the_second(start(receipt)?),
    };
    Ok(Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: subject.collect(),
        predicate_type: PREDICATE_TYPE.to_owned(),
        predicate: Predicate {
            build: BuildDefinition {
                build_type: BUILD_TYPE.to_owned(),
                external_parameters: ExternalParameters {
                    pipeline_hash: receipt.pipeline_hash.clone(),
                },
                resolved_dependencies: Vec::new(),
            },
            run: RunDetails {
                builder: Builder {
                    id: evidence.builder().to_owned(),
                },
                metadata,
            },
            evidence: Some(evidence),
        },
    })
}

/// Says whether the files of the outputs are listed, so that subjects can be bound to them.
fn binding(receipt: &Receipt) -> &'static str {
    let listed = receipt.provenance.as_ref();
    if listed.is_some_and(|one| !one.artifacts.is_empty()) {
        "signed-file-inventory"
    } else {
        "unavailable"
    }
}

impl Evidence {
    /// The builder is a workflow where one is claimed.
    fn builder(&self) -> &str {
        match &self.workflow {
            Some(Json::Object(claim)) => match claim.get("workflow") {
                Some(Json::Text(name)) => name,
                _ => "",
            },
            _ => BUILDER,
        }
    }

    /// Returns what of the evidence is not as the receipt in it has it.
    pub(crate) fn problem(&self, receipt: &Receipt) -> Option<&'static str> {
        let rules = [
            (
                self.format == EVIDENCE_FORMAT,
                "unsupported format of the evidence",
            ),
            (
                self.receipt.media_type == RECEIPT_TYPE,
                "unsupported media type of the receipt",
            ),
            (
                self.semantics == SEMANTICS,
                "the statement does not say what it leaves out as its format does",
            ),
            (
                !self.producer.name.is_empty() && !self.producer.version.is_empty(),
                "the statement does not name the program that made it",
            ),
            (
                self.original_signer == receipt.signer_public_key,
                "the statement names another signer than the receipt",
            ),
            (
                self.artifact_binding == binding(receipt),
                "the statement says something else of the files than the receipt",
            ),
            (
                self.workflow.is_some() == self.workflow_bundle.is_some(),
                "a workflow is claimed without evidence of it",
            ),
        ];
        rules
            .into_iter()
            .find_map(|(holds, problem)| (!holds).then_some(problem))
    }
}

fn start(receipt: &Receipt) -> Result<Time, StatementError> {
    let seconds = i64::try_from(receipt.total_duration_secs).map_err(|_| StatementError::Start)?;
    let start = receipt
        .timestamp
        .timestamp()
        .checked_sub(SignedDuration::from_secs(seconds));
    start.map(Time::from).map_err(|_| StatementError::Start)
}

/// Statements have no fractions of a second.
fn to_the_second(time: Time) -> String {
    let text = time.to_string();
    match text.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => text,
    }
}

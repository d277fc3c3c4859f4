//! Judges an envelope with a statement: who signed the envelope, whether the statement is the one
//! of the receipt in it, and the receipt itself, each by the reader's own trust store.

mod outcome;
mod require;
mod signature;

use attest_receipt::receipt::{self, Receipt};
use attest_receipt::time::Time;
use attest_verify::trust::Trust;
use attest_verify::{CheckName, Execution, Options, Outcome, Requirement, Status, Verdict};
use strict_json::JsonError;

use crate::dsse::{Envelope, EnvelopeError, PAYLOAD_TYPE};
use crate::inventory;
use crate::statement::{
    BUILD_TYPE, EARLY_BUILD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, Statement, project,
};

pub use outcome::{Imported, Line, Unmet};
pub use require::{ImportRequirement, parse_requirements};

/// The longest file that is carried along.
const MAX_TRUST_FILE: usize = 16 * 1024 * 1024;

/// The hashes of a file as it was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHashes {
    /// BLAKE3 of its content, or of a link's target.
    pub blake3: String,
    /// SHA-256 of its content.
    pub sha256: String,
}

/// The files that were delivered beside the statement.
pub trait Delivered {
    /// Hashes one; links are not followed.
    ///
    /// # Errors
    /// Why it cannot be hashed as what the receipt says that it is.
    fn hashes(&self, artifact: &receipt::Artifact) -> Result<FileHashes, String>;
}

/// By what a statement is judged.
#[derive(Clone, Copy)]
pub struct ImportOptions<'a> {
    /// Whom the reader believes.
    pub trust: &'a Trust,
    /// Whether a revoked key's statement may say itself when it was made.
    pub trust_statement_time: bool,
    /// What has to be established.
    pub require: &'a [ImportRequirement],
    /// The files, if they are at hand.
    pub delivered: Option<&'a dyn Delivered>,
    /// The time now.
    pub now: Time,
}

impl std::fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportOptions")
            .field("require", &self.require)
            .finish_non_exhaustive()
    }
}

/// Judges the bytes of an envelope's file.
///
/// # Errors
/// They are too many or no JSON; all else is a verdict.
pub fn judge(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, JsonError> {
    let mut imported = Imported::new(options.require);
    let original = match read(bytes) {
        Ok((envelope, statement)) => {
            imported.add(
                "schema",
                Ok("DSSE envelope and in-toto statement match schema"),
            );
            Some(judge_statement(
                &envelope,
                &statement,
                options,
                &mut imported,
            ))
        }
        Err(Unread::Json(error)) => return Err(error),
        Err(Unread::Form(detail)) => {
            imported.add::<&str>("schema", Err(detail));
            None
        }
    };
    imported.conclude(original.flatten().as_deref(), options);
    Ok(imported)
}

enum Unread {
    Json(JsonError),
    Form(String),
}

fn read(bytes: &[u8]) -> Result<(Envelope, Statement), Unread> {
    let envelope = Envelope::read(bytes).map_err(|error| match error {
        EnvelopeError::Json(error) => Unread::Json(error),
        form @ EnvelopeError::Form(_) => Unread::Form(form.to_string()),
    })?;
    let expect = |what: &str, found: &str, expected: &str| {
        if found == expected {
            Ok(())
        } else {
            let detail = format!("unsupported {what} '{found}' (expected {expected})");
            Err(Unread::Form(detail))
        }
    };
    expect("payloadType", &envelope.payload_type, PAYLOAD_TYPE)?;
    let statement = Statement::parse(&envelope.payload);
    let statement = statement.map_err(|error| Unread::Form(error.to_string()))?;
    expect("statement _type", &statement.kind, STATEMENT_TYPE)?;
    expect("predicateType", &statement.predicate_type, PREDICATE_TYPE)?;
    Ok((envelope, statement))
}

/// Returns the bytes of the receipt, if there is one that the statement is made of.
fn judge_statement(
    envelope: &Envelope,
    statement: &Statement,
    options: &ImportOptions<'_>,
    imported: &mut Imported,
) -> Option<Vec<u8>> {
    imported.add("consistency", consistency(statement));
    let signer = signature::check(envelope, statement, options, &mut imported.warnings);
    imported.envelope_signer = signer.as_ref().ok().map(|(key, _)| key.clone());
    imported.add("dsse-signature", signer.map(|(_, detail)| detail));

    let (bytes, receipt) = match embedded(statement) {
        Ok(found) => found,
        Err(detail) => {
            imported.add::<&str>("original-evidence", Err(detail));
            imported.add_signature();
            return None;
        }
    };
    let evidence = statement.predicate.evidence.as_ref();
    imported.receipt_sha256 = evidence.map(|evidence| evidence.receipt.sha256.clone());
    judge_receipt(&bytes, options, imported);
    imported.skip(
        "identity",
        "workflow identities are not judged here; a builder that is named is a claim",
    );
    match options.delivered {
        Some(delivered) => imported.add("artifacts", artifacts(statement, &receipt, delivered)),
        None => imported.skip(
            "artifacts",
            "the files were not given; use --artifact-root and --require artifacts",
        ),
    }
    imported.add_signature();
    Some(bytes)
}

fn consistency(statement: &Statement) -> Result<&'static str, String> {
    let predicate = &statement.predicate;
    let mut problems = Vec::new();
    match predicate.build.build_type.as_str() {
        BUILD_TYPE => {}
        EARLY_BUILD_TYPE => problems.push(
            "it is of the first releases, whose statements carry no receipt that could be judged"
                .to_owned(),
        ),
        other => problems.push(format!("buildType '{other}' is not that of attest")),
    }
    if !attest_receipt::is_lower_hex_64(&predicate.build.external_parameters.pipeline_hash) {
        problems.push("pipelineHash is not 64 lowercase hexadecimal digits".to_owned());
    }
    let odd = |subject: &&crate::statement::Subject| {
        let digest = &subject.digest;
        let sha256 = digest.sha256.iter().map(String::as_str);
        !sha256
            .chain([digest.blake3.as_str()])
            .all(attest_receipt::is_lower_hex_64)
    };
    if let Some(subject) = statement.subject.iter().find(odd) {
        let name = &subject.name;
        problems.push(format!(
            "a digest of '{name}' is not 64 lowercase hexadecimal digits"
        ));
    }
    let times = &predicate.run.metadata;
    for (name, time) in [
        ("startedOn", &times.started_on),
        ("finishedOn", &times.finished_on),
    ] {
        if time.parse::<Time>().is_err() {
            problems.push(format!("{name} is not a time"));
        }
    }
    if problems.is_empty() {
        Ok("statement is coherent")
    } else {
        Err(problems.join("; "))
    }
}

/// Takes the receipt out of the statement and makes the statement of it again.
fn embedded(statement: &Statement) -> Result<(Vec<u8>, Receipt), String> {
    let evidence = statement.predicate.evidence.as_ref();
    let evidence = evidence.ok_or("the statement carries no receipt")?;
    let bytes = evidence
        .receipt
        .bytes(receipt::MAX_BYTES)
        .map_err(|why| format!("the receipt in it {why}"))?;
    let receipt = receipt::read(&bytes).map_err(|why| format!("the receipt in it: {why}"))?;
    for (name, file) in &evidence.trust_material {
        file.bytes(MAX_TRUST_FILE)
            .map_err(|why| format!("the file '{name}' in it {why}"))?;
    }
    if let Some(bundle) = &evidence.workflow_bundle {
        bundle
            .bytes(MAX_TRUST_FILE)
            .map_err(|why| format!("the workflow's evidence in it {why}"))?;
    }
    if let Some(problem) = evidence.problem(&receipt) {
        return Err(problem.to_owned());
    }
    let mut expected =
        project(&receipt, evidence.clone()).map_err(|why| format!("the receipt in it: {why}"))?;
    // The receipt has no SHA-256 of files; they are compared with the files, if those are given.
    for (expected, found) in expected.subject.iter_mut().zip(&statement.subject) {
        expected.digest.sha256.clone_from(&found.digest.sha256);
    }
    if expected == *statement {
        Ok((bytes, receipt))
    } else {
        Err("the statement is not the one that the receipt in it gives".to_owned())
    }
}

fn judge_receipt(bytes: &[u8], options: &ImportOptions<'_>, imported: &mut Imported) {
    let nested = Options {
        require: vec![Requirement::Signature],
        ..Options::new(options.now)
    };
    let outcome = match attest_verify::verify(bytes, options.trust, &nested, None) {
        Ok(outcome) => outcome,
        Err(error) => {
            imported.add::<&str>("original-evidence", Err(error.to_string()));
            return;
        }
    };
    imported.add(
        "original-evidence",
        if outcome.passed() {
            Ok("the receipt in it verifies with the reader's own trust store")
        } else {
            Err(refusal(&outcome))
        },
    );
    if let Some(check) = outcome.check(CheckName::Timestamp) {
        imported.lines.push(Line {
            name: "timestamp",
            status: check.status,
            detail: check.detail.clone(),
        });
    }
    imported.execution = outcome.execution;
    imported.original = Some(outcome);
}

/// Names the checks that failed.
fn refusal(outcome: &Outcome) -> String {
    let failed = outcome
        .all_checks()
        .filter(|check| check.status == Status::Fail);
    let failed: Vec<String> = failed
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect();
    format!("the receipt in it does not verify: {}", failed.join("; "))
}

fn artifacts(
    statement: &Statement,
    receipt: &Receipt,
    delivered: &dyn Delivered,
) -> Result<String, String> {
    let files = inventory::of(receipt).map_err(|error| error.to_string())?;
    let files = files.ok_or("the receipt lists no files")?;
    for artifact in files.values() {
        let path = &artifact.path;
        let hashes = delivered
            .hashes(artifact)
            .map_err(|why| format!("'{path}': {why}"))?;
        let claimed = statement
            .subject
            .iter()
            .find(|subject| subject.name == *path)
            .and_then(|subject| subject.digest.sha256.as_ref());
        if hashes.blake3 != artifact.digest {
            return Err(format!("'{path}' differs from the receipt's"));
        }
        if claimed.is_some_and(|sha256| *sha256 != hashes.sha256) {
            return Err(format!("'{path}' has another SHA-256 than the statement's"));
        }
    }
    Ok(format!("{} file(s) are the receipt's", files.len()))
}

/// What a receipt that is not there says of the run.
const NOTHING: Execution = Execution::Unknown;

impl Imported {
    fn new(require: &[ImportRequirement]) -> Self {
        Self {
            verdict: Verdict::Fail,
            lines: Vec::new(),
            envelope_signer: None,
            receipt_sha256: None,
            original: None,
            warnings: Vec::new(),
            execution: NOTHING,
            required: require.to_vec(),
            unmet: Vec::new(),
        }
    }
}

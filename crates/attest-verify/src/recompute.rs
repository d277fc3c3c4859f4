//! The check that hashes the workspace again.

mod native;
mod wrapped;

use std::collections::BTreeMap;

use attest_receipt::manifest::{Entry, Manifest};
use attest_receipt::receipt::{Artifact, Execution, Provenance, Receipt, StepResult};

use crate::outcome::{Check, CheckName};
use crate::problems::{Problems, short};

const NAME: CheckName = CheckName::Recompute;

/// The workspace as recomputation needs it. Implementations never follow a link out of it and
/// never run anything; an error is a sentence for the check's detail.
pub trait Workspace {
    /// Reads the pipeline file; `None` if there is none.
    ///
    /// # Errors
    /// It exists and cannot be read.
    fn pipeline(&self) -> Result<Option<Vec<u8>>, String>;

    /// Makes the manifest of a step's inputs.
    ///
    /// # Errors
    /// An input is missing, cannot be read, or is nothing that a manifest holds.
    fn inputs(&self, command_hash: &str, declared: &[String]) -> Result<Manifest, String>;

    /// Makes the manifest of a step's outputs.
    ///
    /// # Errors
    /// As [`Workspace::inputs`].
    fn outputs(&self, declared: &[String]) -> Result<Manifest, String>;

    /// Returns the hash of a capsule, 64 hexadecimal digits.
    ///
    /// # Errors
    /// There is no such capsule, or it is malformed.
    fn capsule_hash(&self, name: &str) -> Result<String, String>;
}

/// Recomputes what the receipt says of the workspace.
pub(crate) fn check(receipt: &Receipt, workspace: Option<&dyn Workspace>) -> Check {
    let Some(workspace) = workspace else {
        return Check::fail(NAME, "there is no workspace to recompute from");
    };
    let execution = receipt
        .provenance
        .as_ref()
        .and_then(|provenance| provenance.execution.as_ref());
    match execution {
        Some(Execution::Wrapped { command }) => told(
            wrapped::problems(receipt, command, workspace),
            wrapped::PASS,
        ),
        Some(Execution::Native) => match workspace.pipeline() {
            Ok(Some(file)) => told(native::problems(receipt, &file, workspace), native::PASS),
            Ok(None) => Check::fail(NAME, "the workspace has no attest.yaml"),
            Err(error) => Check::fail(NAME, format!("cannot read attest.yaml: {error}")),
        },
        None => undescribed(receipt, workspace),
    }
}

/// Old receipts do not say how their steps were started. A pipeline file with the same hash shows
/// that they were native; without one, a wrapped command could not be recovered.
fn undescribed(receipt: &Receipt, workspace: &dyn Workspace) -> Check {
    match workspace.pipeline() {
        Ok(None) => Check::skipped(
            NAME,
            "the receipt does not say how its steps were started, and there is no attest.yaml to compare with",
        ),
        Ok(Some(file)) => {
            let mut check = told(native::problems(receipt, &file, workspace), native::PASS);
            check.detail = format!(
                "taken for a native run, which the receipt does not say: {}",
                check.detail
            );
            check
        }
        Err(error) => Check::fail(NAME, format!("cannot read attest.yaml: {error}")),
    }
}

fn told(problems: Problems, pass: &str) -> Check {
    match problems.into_detail() {
        None => Check::pass(NAME, pass),
        Some(detail) => Check::fail(NAME, detail),
    }
}

/// Compares what the receipt records of a step with the manifests of the workspace.
fn files(
    step: &StepResult,
    declared: (&str, &[String], &[String]),
    artifacts: &Artifacts<'_>,
    workspace: &dyn Workspace,
    problems: &mut Problems,
) {
    let (command_hash, inputs, outputs) = declared;
    let name = short(&step.name);
    match workspace.inputs(command_hash, inputs) {
        Ok(manifest) => differs(&name, "input", &step.input_hash, &manifest.hash(), problems),
        Err(error) => problems.add(|| format!("step '{name}': {error}")),
    }
    match workspace.outputs(outputs) {
        Ok(manifest) => {
            differs(
                &name,
                "output",
                &step.output_hash,
                &manifest.hash(),
                problems,
            );
            artifacts.compare(&step.name, &manifest, problems);
        }
        Err(error) => problems.add(|| format!("step '{name}': {error}")),
    }
}

fn differs(step: &str, what: &str, recorded: &str, found: &str, problems: &mut Problems) {
    if recorded != found {
        problems.add(|| {
            format!(
                "step '{step}': {what} hash mismatch (receipt {}, workspace {found})",
                short(recorded)
            )
        });
    }
}

/// The artifacts of a receipt by step and path.
struct Artifacts<'a>(BTreeMap<&'a str, BTreeMap<&'a str, &'a Artifact>>);

impl<'a> Artifacts<'a> {
    fn of(provenance: Option<&'a Provenance>, problems: &mut Problems) -> Self {
        let mut steps: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for artifact in provenance.iter().flat_map(|it| &it.artifacts) {
            let (step, path) = (artifact.step.as_str(), artifact.path.as_str());
            let before = steps.entry(step).or_default().insert(path, artifact);
            if before.is_some() {
                problems.add(|| {
                    let (step, path) = (short(step), short(path));
                    format!("step '{step}': artifact '{path}' stands twice")
                });
            }
        }
        Self(steps)
    }

    /// Artifacts that are recorded are those of the manifest, one by one; some originals record
    /// none for results from the cache.
    fn compare(&self, step: &str, manifest: &Manifest, problems: &mut Problems) {
        let Some(recorded) = self.0.get(step) else {
            return;
        };
        let step = short(step);
        for (path, entry) in manifest.entries() {
            match recorded.get(path) {
                Some(artifact) if is_entry(artifact, entry) => {}
                Some(_) => problems.add(|| {
                    format!(
                        "step '{step}': artifact '{}' is recorded with another digest or kind",
                        short(path)
                    )
                }),
                None => problems.add(|| {
                    format!(
                        "step '{step}': output '{}' is not among the recorded artifacts",
                        short(path)
                    )
                }),
            }
        }
        // Only what is new beyond the manifest is left to tell.
        let known = manifest
            .entries()
            .filter(|(path, _)| recorded.contains_key(path))
            .count();
        if recorded.len() > known {
            problems.add(|| {
                format!(
                    "step '{step}': {} recorded artifact(s) are no outputs of the workspace",
                    recorded.len() - known
                )
            });
        }
    }
}

fn is_entry(artifact: &Artifact, entry: &Entry) -> bool {
    artifact.algorithm == "blake3" && artifact.kind == entry.kind && artifact.digest == entry.digest
}

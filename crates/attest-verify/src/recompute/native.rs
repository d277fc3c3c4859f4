//! Recomputation of a run of the pipeline file.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::pipeline::{Pipeline, Step};
use attest_receipt::receipt::{DeclaredStep, Receipt, StepResult};

use super::{Artifacts, Workspace, files};
use crate::problems::{Problems, short};

pub(super) const PASS: &str = "pipeline, inputs and outputs of every step match the workspace";

/// Compares the receipt with the pipeline file and the files of the workspace.
pub(super) fn problems(receipt: &Receipt, file: &[u8], workspace: &dyn Workspace) -> Problems {
    let mut problems = Problems::default();
    let pipeline = match Pipeline::read(file) {
        Ok(pipeline) => pipeline,
        Err(error) => {
            problems.add(|| format!("cannot parse attest.yaml: {error}"));
            return problems;
        }
    };
    whole(receipt, &pipeline, &mut problems);
    declarations(receipt, &pipeline, &mut problems);
    let artifacts = Artifacts::of(receipt.provenance.as_ref(), &mut problems);
    let mut seen = BTreeSet::new();
    for result in &receipt.steps {
        let Some(step) = pipeline.steps.get(&result.name) else {
            problems.add(|| {
                format!(
                    "step '{}' is not declared in the workspace pipeline",
                    short(&result.name)
                )
            });
            continue;
        };
        // A step that stands twice is refused elsewhere; hashing it again would only take time.
        if !seen.insert(result.name.as_str()) {
            continue;
        }
        capsule(result, step, workspace, &mut problems);
        let declared = (step.command_hash(), &step.inputs, &step.outputs);
        files(
            result,
            (&declared.0, declared.1, declared.2),
            &artifacts,
            workspace,
            &mut problems,
        );
    }
    problems
}

/// The pipeline as a whole, so that a receipt of a smaller or other build is found out.
fn whole(receipt: &Receipt, pipeline: &Pipeline, problems: &mut Problems) {
    match pipeline.hash() {
        Ok(hash) if hash == receipt.pipeline_hash => {}
        Ok(hash) => problems.add(|| {
            format!(
                "pipeline hash mismatch (receipt {}, workspace {hash})",
                short(&receipt.pipeline_hash)
            )
        }),
        Err(error) => problems.add(|| format!("cannot write the pipeline again: {error}")),
    }
    let recorded: BTreeSet<_> = receipt.steps.iter().map(|step| &step.name).collect();
    for name in pipeline
        .steps
        .keys()
        .filter(|name| !recorded.contains(name))
    {
        problems.add(|| {
            format!(
                "step '{name}' is declared in the workspace pipeline but absent from the receipt"
            )
        });
    }
}

/// What the receipt says was declared is what the pipeline declares.
fn declarations(receipt: &Receipt, pipeline: &Pipeline, problems: &mut Problems) {
    let Some(provenance) = &receipt.provenance else {
        return;
    };
    let declared: BTreeMap<_, _> = provenance
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step))
        .collect();
    for name in declared.keys() {
        if !pipeline.steps.contains_key(*name) {
            problems.add(|| {
                format!(
                    "provenance declares a step '{}' that the workspace pipeline does not",
                    short(name)
                )
            });
        }
    }
    for (name, step) in &pipeline.steps {
        let Some(declaration) = declared.get(name.as_str()) else {
            problems.add(|| format!("provenance does not declare step '{name}'"));
            continue;
        };
        if let Some(what) = disagreement(declaration, step) {
            problems.add(|| {
                format!("step '{name}': provenance and workspace pipeline declare different {what}")
            });
        }
    }
}

fn disagreement(declaration: &DeclaredStep, step: &Step) -> Option<&'static str> {
    if declaration.command_hash != step.command_hash() {
        return Some("commands");
    }
    if declaration.needs.as_slice() != step.needs.as_deref().unwrap_or_default() {
        return Some("needs");
    }
    if declaration.inputs != step.inputs {
        return Some("inputs");
    }
    (declaration.outputs != step.outputs).then_some("outputs")
}

fn capsule(result: &StepResult, step: &Step, workspace: &dyn Workspace, problems: &mut Problems) {
    let name = short(&result.name);
    match (&step.capsule, &result.capsule_hash) {
        (Some(capsule), Some(recorded)) => match workspace.capsule_hash(capsule) {
            Ok(found) if found == *recorded => {}
            Ok(found) => problems.add(|| format!(
                "step '{name}': capsule hash mismatch (receipt {}, workspace {found})",
                short(recorded)
            )),
            Err(error) => problems.add(|| format!("step '{name}': capsule '{capsule}': {error}")),
        },
        (Some(capsule), None) => problems.add(|| format!(
            "step '{name}' declares capsule '{capsule}', and the receipt records no capsule_hash"
        )),
        (None, Some(_)) => problems.add(|| format!(
            "step '{name}' records a capsule_hash, and the workspace pipeline declares no capsule"
        )),
        (None, None) => {}
    }
}

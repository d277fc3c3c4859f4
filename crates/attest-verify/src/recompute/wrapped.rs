//! Recomputation of a wrapped command: the receipt alone says what was declared.

use attest_receipt::encode::blake3_hex;
use attest_receipt::pipeline::{wrapped_command, wrapped_hash};
use attest_receipt::receipt::{DeclaredStep, Receipt, StepResult};

use super::{Artifacts, Workspace, files};
use crate::problems::Problems;

pub(super) const PASS: &str = "command, inputs and outputs of the wrapped step match the workspace; nothing is said about a pipeline";

/// Compares the receipt with itself and with the files of the workspace.
pub(super) fn problems(
    receipt: &Receipt,
    command: &[String],
    workspace: &dyn Workspace,
) -> Problems {
    let mut problems = Problems::default();
    let (step, declared) = match described(receipt, command) {
        Ok(found) => found,
        Err(problem) => {
            problems.add(|| problem.to_owned());
            return problems;
        }
    };
    let artifacts = Artifacts::of(receipt.provenance.as_ref(), &mut problems);
    files(
        step,
        (&declared.command_hash, &declared.inputs, &declared.outputs),
        &artifacts,
        workspace,
        &mut problems,
    );
    problems
}

/// Finds the one step and its declaration; they and the command hang together.
fn described<'a>(
    receipt: &'a Receipt,
    command: &[String],
) -> Result<(&'a StepResult, &'a DeclaredStep), &'static str> {
    let runnable = command.first().is_some_and(|program| !program.is_empty())
        && command.iter().all(|argument| !argument.contains('\0'));
    if !runnable {
        return Err("the wrapped command could not have been started");
    }
    let [step] = receipt.steps.as_slice() else {
        return Err("a wrapped command is one step");
    };
    let declared = receipt.provenance.as_ref().map(|it| it.steps.as_slice());
    let Some([declared]) = declared else {
        return Err("a wrapped command declares one step");
    };
    if declared.name != step.name || !declared.needs.is_empty() {
        return Err("what is declared is not the step that ran");
    }
    if step.capsule_hash.is_some() {
        return Err("a wrapped command runs in no capsule");
    }
    if wrapped_hash(command) != receipt.pipeline_hash {
        return Err("the wrapped command does not give the pipeline hash");
    }
    if blake3_hex(wrapped_command(command).as_bytes()) != declared.command_hash {
        return Err("the wrapped command does not give the command hash");
    }
    Ok((step, declared))
}

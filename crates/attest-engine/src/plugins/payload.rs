//! What plugins are told, from the facts that lie in memory.

use attest_plugin_protocol as wire;
use attest_plugin_protocol::Payload;
use attest_receipt::encode::blake3_hex;
use attest_receipt::receipt::{Artifact, Provenance, Receipt, StepResult};
use strict_json::{Json, Layout, Limits, Object};

use crate::hooks::{AfterStep, BeforeStep, PipelineFacts, StepFacts};
use crate::output::recorded_tail;

/// Most artifacts that are told one by one; some thousands would pass the limit of a message.
pub const ARTIFACTS: usize = 1000;

/// Tells what is about to run.
pub(super) fn pipeline(facts: &PipelineFacts) -> Payload {
    Payload::Pipeline(wire::PipelinePayload {
        path: facts.path.clone(),
        pipeline_hash: facts.hash.clone(),
        name: facts.name.clone(),
        version: facts.version.clone(),
        steps: facts.steps.iter().map(plan).collect(),
    })
}

fn plan(step: &StepFacts) -> wire::StepPlan {
    wire::StepPlan {
        name: step.name.clone(),
        run: step.run.clone(),
        needs: step.needs.clone(),
        inputs: step.inputs.clone(),
        outputs: step.outputs.clone(),
        env: step.env.clone(),
        working_dir: step.working_dir.clone(),
        capsule: step.capsule.clone(),
        cache: step.cache,
        timeout_secs: step.timeout_secs,
    }
}

/// Tells what is known before a step.
pub(super) fn before_step(facts: &BeforeStep<'_>) -> Payload {
    let step = facts.step;
    Payload::BeforeStep(wire::BeforeStep {
        name: step.name.clone(),
        run: step.run.clone(),
        needs: step.needs.clone(),
        inputs: step.inputs.clone(),
        outputs: step.outputs.clone(),
        input_hash: facts.input_hash.to_owned(),
        command_hash: facts.command_hash.to_owned(),
        capsule_hash: facts.capsule_hash.map(str::to_owned),
        cache_hit: facts.cache_hit,
    })
}

/// Tells what a step did, and what it wrote to those who want that.
pub(super) fn after_step(facts: &AfterStep<'_>, wants_output: bool) -> Payload {
    let result = facts.result;
    let output = facts.output.filter(|_| wants_output);
    Payload::AfterStep(wire::AfterStep {
        name: result.name.clone(),
        input_hash: result.input_hash.clone(),
        output_hash: result.output_hash.clone(),
        duration_secs: result.duration_secs,
        exit_code: result.exit_code,
        cache_hit: result.cache_hit,
        capsule_hash: result.capsule_hash.clone(),
        output: output.map(|output| wire::StepOutput {
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            stdout_truncated: output.stdout_truncated,
            stderr_truncated: output.stderr_truncated,
        }),
    })
}

/// Shows a receipt as it will be signed, but for signature, key and the records of plugins, and
/// without what would make it too long for a message.
pub(super) fn receipt(receipt: &Receipt, wants_output: bool) -> Payload {
    let artifacts = receipt.provenance.as_ref().map(|told| &told.artifacts[..]);
    let many = artifacts.filter(|artifacts| artifacts.len() > ARTIFACTS);
    // Field by field, so that whoever adds one has to say whether it is shown.
    let shown = Receipt {
        schema_version: receipt.schema_version,
        pipeline_hash: receipt.pipeline_hash.clone(),
        steps: receipt
            .steps
            .iter()
            .map(|result| step(result, wants_output))
            .collect(),
        timestamp: receipt.timestamp,
        total_duration_secs: receipt.total_duration_secs,
        signature: None,
        signer_public_key: None,
        attest_version: receipt.attest_version.clone(),
        causal_events: receipt.causal_events.clone(),
        causal_chain_hash: receipt.causal_chain_hash.clone(),
        reproducibility: receipt.reproducibility.clone(),
        provenance: receipt.provenance.as_ref().map(|told| Provenance {
            invocation_id: told.invocation_id.clone(),
            started_at: told.started_at,
            pipeline_name: told.pipeline_name.clone(),
            source: told.source.clone(),
            runner_os: told.runner_os.clone(),
            runner_arch: told.runner_arch.clone(),
            ci: told.ci.clone(),
            steps: told.steps.clone(),
            artifacts: match many {
                Some(_) => Vec::new(),
                None => told.artifacts.clone(),
            },
            execution: told.execution.clone(),
        }),
        timestamp_token: None,
        isolation: receipt.isolation.clone(),
        plugins: None,
    };
    let limits = Limits {
        bytes: usize::MAX,
        depth: attest_receipt::receipt::MAX_DEPTH,
    };
    let line = strict_json::to_line(&shown);
    // What was just written is an object, since a receipt is one.
    let object = strict_json::parse_object(&line, &limits, Layout::Compact).unwrap_or_default();
    Payload::Receipt(match many {
        Some(artifacts) => counted(object, artifacts),
        None => object,
    })
}

fn step(result: &StepResult, wants_output: bool) -> StepResult {
    let told = |text: &str| match wants_output {
        true => recorded_tail(text, wire::OUTPUT_BYTES).to_owned(),
        false => String::new(),
    };
    StepResult {
        name: result.name.clone(),
        input_hash: result.input_hash.clone(),
        output_hash: result.output_hash.clone(),
        duration_secs: result.duration_secs,
        exit_code: result.exit_code,
        cache_hit: result.cache_hit,
        stdout: told(&result.stdout),
        stderr: told(&result.stderr),
        capsule_hash: result.capsule_hash.clone(),
    }
}

/// Puts number and hash in the place of the artifacts.
fn counted(receipt: Object, artifacts: &[Artifact]) -> Object {
    replaced(receipt, "provenance", |provenance| {
        let Json::Object(provenance) = provenance else {
            return vec![("provenance".into(), provenance)];
        };
        let provenance = replaced(provenance, "artifacts", |_| {
            let count = i64::try_from(artifacts.len()).unwrap_or(i64::MAX);
            let hash = Json::Text(artifact_manifest_hash(artifacts));
            vec![
                ("artifact_count".into(), Json::Integer(count)),
                ("artifact_manifest_hash".into(), hash),
            ]
        });
        vec![("provenance".into(), Json::Object(provenance))]
    })
}

/// Replaces a member in its place. The new keys are ones that no receipt has.
fn replaced(object: Object, key: &str, with: impl FnOnce(Json) -> Vec<(String, Json)>) -> Object {
    let mut with = Some(with);
    let mut members = Vec::with_capacity(object.len() + 1);
    for (name, value) in object {
        match with.take_if(|_| name == key) {
            Some(with) => members.extend(with(value)),
            None => members.push((name, value)),
        }
    }
    Object::from_members(members).unwrap_or_default()
}

/// Returns the hash that stands for many artifacts: BLAKE3 over a line for each, which is its
/// compact JSON as in the receipt (`step`, `path`, `kind`, `digest`, `algorithm`) and a line feed,
/// the lines sorted by their bytes.
#[must_use]
pub fn artifact_manifest_hash(artifacts: &[Artifact]) -> String {
    let mut lines: Vec<_> = artifacts.iter().map(strict_json::to_line).collect();
    lines.sort_unstable();
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend(line);
        bytes.push(b'\n');
    }
    blake3_hex(&bytes)
}

#[cfg(test)]
mod tests;

//! Payloads as a plugin reads them; unknown fields are passed over at every level.

use std::collections::BTreeMap;

use strict_json::{Element, FieldError, Fields, Json};

use super::texts;
use crate::hook::Hook;
use crate::limits::OUTPUT_BYTES;
use crate::payload::{AfterStep, BeforeStep, Payload, PipelinePayload, StepOutput, StepPlan};

/// Reads the payload of a request.
pub(crate) fn payload(hook: Hook, mut body: Fields) -> Result<Payload, FieldError> {
    let mut payload = body.object("payload")?;
    body.end_ignoring_unknown();
    let read = match hook {
        Hook::PipelineValidate => Payload::Pipeline(pipeline(payload.object("pipeline")?)?),
        Hook::StepPre => Payload::BeforeStep(before_step(payload.object("step")?)?),
        Hook::StepPost => Payload::AfterStep(after_step(payload.object("step")?)?),
        Hook::ReceiptFinalize => match payload.value("receipt")? {
            Json::Object(receipt) => Payload::Receipt(receipt),
            other => {
                return Err(FieldError::WrongType {
                    path: payload.path_of("receipt"),
                    expected: "an object",
                    found: other.kind(),
                });
            }
        },
    };
    payload.end_ignoring_unknown();
    Ok(read)
}

fn pipeline(mut fields: Fields) -> Result<PipelinePayload, FieldError> {
    let steps = fields.array("steps")?.into_iter().map(step_plan);
    let pipeline = PipelinePayload {
        steps: steps.collect::<Result<_, _>>()?,
        path: fields.opt_text("path")?,
        pipeline_hash: fields.text("pipeline_hash")?,
        name: fields.opt_text("name")?,
        version: fields.opt_text("version")?,
    };
    fields.end_ignoring_unknown();
    Ok(pipeline)
}

fn step_plan(element: Element) -> Result<StepPlan, FieldError> {
    let mut fields = element.object()?;
    let step = StepPlan {
        name: fields.text("name")?,
        run: fields.text("run")?,
        needs: texts(fields.array("needs")?)?,
        inputs: texts(fields.array("inputs")?)?,
        outputs: texts(fields.array("outputs")?)?,
        env: variables(&mut fields)?,
        working_dir: fields.opt_text("working_dir")?,
        capsule: fields.opt_text("capsule")?,
        cache: fields.bool("cache")?,
        timeout_secs: fields.opt_u64("timeout_secs")?,
    };
    fields.end_ignoring_unknown();
    Ok(step)
}

fn variables(fields: &mut Fields) -> Result<BTreeMap<String, String>, FieldError> {
    let path = fields.path_of("env");
    let wrong = |path: String, expected, found: &Json| FieldError::WrongType {
        path,
        expected,
        found: found.kind(),
    };
    let variables = match fields.value("env")? {
        Json::Object(variables) => variables,
        other => return Err(wrong(path, "an object", &other)),
    };
    let text = |(name, value): (String, Json)| match value {
        Json::Text(text) => Ok((name, text)),
        // The name is foreign text, so the message does without.
        other => Err(wrong(path.clone(), "an object of strings", &other)),
    };
    variables.into_iter().map(text).collect()
}

fn before_step(mut fields: Fields) -> Result<BeforeStep, FieldError> {
    let step = BeforeStep {
        name: fields.text("name")?,
        run: fields.text("run")?,
        needs: texts(fields.array("needs")?)?,
        inputs: texts(fields.array("inputs")?)?,
        outputs: texts(fields.array("outputs")?)?,
        input_hash: fields.text("input_hash")?,
        command_hash: fields.text("command_hash")?,
        capsule_hash: fields.opt_text("capsule_hash")?,
        cache_hit: fields.bool("cache_hit")?,
    };
    fields.end_ignoring_unknown();
    Ok(step)
}

fn after_step(mut fields: Fields) -> Result<AfterStep, FieldError> {
    let exit_code = fields.i64("exit_code")?;
    let step = AfterStep {
        name: fields.text("name")?,
        input_hash: fields.text("input_hash")?,
        output_hash: fields.text("output_hash")?,
        duration_secs: fields.u64("duration_secs")?,
        exit_code: i32::try_from(exit_code).map_err(|_| {
            FieldError::invalid(fields.path_of("exit_code"), "is no 32-bit integer")
        })?,
        cache_hit: fields.bool("cache_hit")?,
        capsule_hash: fields.opt_text("capsule_hash")?,
        output: output(&mut fields)?,
    };
    fields.end_ignoring_unknown();
    Ok(step)
}

fn output(fields: &mut Fields) -> Result<Option<StepOutput>, FieldError> {
    if !fields.contains("stdout") && !fields.contains("stderr") {
        return Ok(None);
    }
    let output = StepOutput {
        stdout: fields.text("stdout")?,
        stderr: fields.text("stderr")?,
        stdout_truncated: fields.opt_bool("stdout_truncated")?.unwrap_or(false),
        stderr_truncated: fields.opt_bool("stderr_truncated")?.unwrap_or(false),
    };
    for (name, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if text.len() > OUTPUT_BYTES {
            let reason = "has more than 65536 bytes";
            return Err(FieldError::invalid(fields.path_of(name), reason));
        }
    }
    Ok(Some(output))
}

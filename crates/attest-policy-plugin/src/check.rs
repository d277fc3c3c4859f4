//! `attest-policy check`: what a policy says, and what it would say of a pipeline or a receipt.

use std::path::Path;
use std::process::ExitCode;

use attest_plugin_protocol::{
    Decision, Finding, Hook, Payload, PipelinePayload, Severity, StepPlan,
};
use attest_receipt::pipeline::{self, Pipeline};
use attest_receipt::receipt;
use cli_shell::layout::wrap_words;
use cli_shell::{CliError, Ui, exit};
use serde::Serialize;
use strict_json::{Layout, Limits};

use crate::args::Check;
use crate::policy::{MAX_BYTES, Policy, Rule};
use crate::{judge, words};

/// Deepest nesting and most bytes of a receipt as JSON; escapes make it longer than its file.
const RECEIPT: Limits = Limits {
    bytes: 8 * receipt::MAX_BYTES,
    depth: receipt::MAX_DEPTH,
};

/// The record of `--format json`.
#[derive(Debug, Serialize)]
struct Record<'a> {
    file: String,
    digest: &'a str,
    rules: Vec<RuleRecord<'a>>,
    judged: Vec<Judged<'a>>,
}

#[derive(Debug, Serialize)]
struct RuleRecord<'a> {
    id: &'a str,
    kind: &'static str,
    decision: Decision,
    severity: Severity,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    says: String,
    hooks: &'static [Hook],
}

#[derive(Debug, Serialize)]
struct Judged<'a> {
    file: String,
    hook: Hook,
    decision: Decision,
    findings: Vec<Finding>,
    /// Of a pipeline only: the rules that are about none of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_rules: Option<Vec<&'a str>>,
}

/// Reads, judges and tells.
pub(crate) fn run(check: &Check, ui: &Ui) -> Result<ExitCode, CliError> {
    let bytes = read(&check.file, MAX_BYTES)?;
    let policy = Policy::parse(&bytes).map_err(|error| wrong(&check.file, error))?;
    let mut judged = Vec::new();
    if let Some(file) = &check.pipeline {
        judged.push(judged_file(&policy, file, &pipeline_payload(file)?));
    }
    if let Some(file) = &check.receipt {
        judged.push(judged_file(&policy, file, &receipt_payload(file)?));
    }
    let denied = judged.iter().any(|it| it.decision == Decision::Deny);
    let record = Record {
        file: shown(&check.file),
        digest: policy.digest(),
        rules: policy.rules.iter().map(rule_record).collect(),
        judged,
    };
    ui.record(&record, human)?;
    Ok(if denied { exit::no() } else { exit::ok() })
}

fn judged_file<'a>(policy: &'a Policy, file: &Path, payload: &Payload) -> Judged<'a> {
    let verdict = judge(policy, payload);
    let idle_rules = match payload {
        Payload::Pipeline(pipeline) => Some(policy.idle(pipeline).map(|it| it.id.as_str())),
        _ => None,
    };
    Judged {
        file: shown(file),
        hook: payload.hook(),
        decision: verdict.decision,
        findings: verdict.findings,
        idle_rules: idle_rules.map(Iterator::collect),
    }
}

/// A pipeline as `attest run` shows it before its first step, but for the path.
fn pipeline_payload(file: &Path) -> Result<Payload, CliError> {
    let bytes = read(file, pipeline::MAX_BYTES)?;
    let pipeline = Pipeline::read(&bytes).map_err(|error| wrong(file, error))?;
    let steps = pipeline.order().into_iter().filter_map(|name| {
        let step = pipeline.steps.get(name)?;
        let mut env = pipeline.env.clone();
        env.extend(step.env.clone().unwrap_or_default());
        Some(StepPlan {
            name: name.to_owned(),
            run: step.run.clone(),
            needs: step.needs.clone().unwrap_or_default(),
            inputs: step.inputs.clone(),
            outputs: step.outputs.clone(),
            env,
            working_dir: step.working_dir.clone(),
            capsule: step.capsule.clone(),
            cache: step.cache,
            timeout_secs: step.timeout_secs,
        })
    });
    Ok(Payload::Pipeline(PipelinePayload {
        path: None,
        pipeline_hash: pipeline.hash().map_err(|error| wrong(file, error))?,
        name: pipeline.name.clone(),
        version: Some(pipeline.version.clone()),
        steps: steps.collect(),
    }))
}

/// A receipt as it is shown before its signature, with all of its artifacts.
fn receipt_payload(file: &Path) -> Result<Payload, CliError> {
    let bytes = read(file, receipt::MAX_BYTES)?;
    let receipt = receipt::read(&bytes).map_err(|error| wrong(file, error))?;
    let line = strict_json::to_line(&receipt);
    let tree = strict_json::parse_object(&line, &RECEIPT, Layout::Compact);
    Ok(Payload::Receipt(tree.map_err(|error| wrong(file, error))?))
}

fn read(file: &Path, limit: usize) -> Result<Vec<u8>, CliError> {
    safe_fs::read_bounded(file, limit as u64).map_err(CliError::config)
}

fn wrong(file: &Path, error: impl std::fmt::Display) -> CliError {
    CliError::config(format!("`{}`: {error}", shown(file)))
}

fn shown(file: &Path) -> String {
    cli_shell::visible(&file.to_string_lossy())
}

fn rule_record(rule: &Rule) -> RuleRecord<'_> {
    RuleRecord {
        id: &rule.id,
        kind: rule.kind.name(),
        decision: rule.decision,
        severity: rule.severity,
        message: rule.message.as_deref(),
        says: words::says(rule),
        hooks: rule.kind.hooks(),
    }
}

/// In lines that fit a terminal; what is longer than a line can still be copied.
fn human(record: &Record<'_>) -> String {
    let below = |text: String| wrap_words(&text, "  ", "    ");
    let count = match record.rules.len() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    let mut text = format!("{}: {count}\n  {}\n", record.file, record.digest);
    for rule in &record.rules {
        let (id, decision, severity) = (rule.id, rule.decision, rule.severity);
        text += &format!("\n{id}: {decision}, {severity}\n");
        text += &below(rule.says.clone());
        if let Some(message) = rule.message {
            text += &below(format!("message: {message}"));
        }
        let hooks: Vec<&str> = rule.hooks.iter().map(|hook| hook.as_str()).collect();
        text += &below(format!("judged at {}", hooks.join(", ")));
    }
    for judged in &record.judged {
        let (file, hook, decision) = (&judged.file, judged.hook, judged.decision);
        text += &format!("\n{file} at {hook}: {decision}\n");
        for finding in &judged.findings {
            let resource = finding.resource().unwrap_or_default();
            let (rule, severity) = (finding.rule(), finding.severity());
            let message = finding.message();
            text += &below(format!("{rule} ({severity}) {resource}: {message}"));
        }
        let idle = judged.idle_rules.iter().flatten().copied();
        text += &words::about_no_step(idle).map(below).unwrap_or_default();
    }
    text
}

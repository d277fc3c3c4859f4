//! Which outputs are declared before, and made afterwards.

use attest_plugin_protocol::Decision;

use super::Facts;
use super::receipt::{Artifacts, ReceiptView};
use super::report::About;
use crate::policy::{OutputRule, Selector};
use crate::shown::{listed, quoted};

pub(super) fn judge(rule: &OutputRule, facts: &Facts<'_>, about: &mut About<'_, '_>) {
    match facts {
        Facts::Pipeline(pipeline) => {
            let selected = pipeline.steps.iter();
            let mut selected = selected
                .filter(|step| rule.steps.has(&step.name))
                .peekable();
            if selected.peek().is_none() {
                nobody(rule, "pipeline", about);
            }
            for step in selected {
                let outputs: Vec<&str> = step.outputs.iter().map(String::as_str).collect();
                declared(rule, &step.name, &outputs, about);
            }
        }
        Facts::BeforeStep(step) if rule.steps.has(&step.name) => {
            let outputs: Vec<&str> = step.outputs.iter().map(String::as_str).collect();
            declared(rule, &step.name, &outputs, about);
        }
        Facts::Receipt(receipt) => made(rule, receipt, about),
        Facts::BeforeStep(_) | Facts::AfterStep(_) => {}
    }
}

/// The steps that the rule is about are not there, so what they are to make is not either.
fn nobody(rule: &OutputRule, place: &str, about: &mut About<'_, '_>) {
    about.broken(place.to_owned(), || match &rule.steps {
        Selector::Every => "there is no step".to_owned(),
        Selector::Named(patterns) => {
            let few = patterns.iter().take(3).map(|pattern| pattern.as_str());
            let more = if patterns.len() > 3 { ", …" } else { "" };
            format!("no step matches {}{more}", listed(few))
        }
    });
}

/// The step declares an output for each pattern.
fn declared(rule: &OutputRule, step: &str, outputs: &[&str], about: &mut About<'_, '_>) {
    for pattern in &rule.required {
        if !outputs.iter().any(|output| pattern.matches(plain(output))) {
            about.broken_by(step, || {
                format!(
                    "declares no output that matches `{}`",
                    quoted(pattern.as_str())
                )
            });
        }
    }
}

/// Each declared output that a pattern matches is among the artifacts, or has some below it.
fn made(rule: &OutputRule, receipt: &ReceiptView<'_>, about: &mut About<'_, '_>) {
    let artifacts = match &receipt.artifacts {
        Artifacts::Told(artifacts) => artifacts,
        Artifacts::Counted(count) => {
            let why = format!(
                "the receipt has {count} artifacts, too many for the payload, which only counts them"
            );
            return about.unknown(rule.if_unknown, &why);
        }
        Artifacts::Untold => return untold(rule.if_unknown, about),
    };
    let (Some(steps), Some(all)) = (&receipt.steps, &receipt.declared) else {
        return untold(rule.if_unknown, about);
    };
    let mut selected = all
        .iter()
        .filter(|step| rule.steps.has(step.name))
        .peekable();
    if selected.peek().is_none() {
        nobody(rule, "receipt", about);
    }
    for step in selected {
        let ended = steps.iter().find(|ended| ended.name == step.name);
        if ended.is_none_or(|ended| ended.exit_code != Some(0)) {
            about.broken_by(step.name, || {
                "has not ended well, so its outputs are not there".to_owned()
            });
            continue;
        }
        declared(rule, step.name, &step.outputs, about);
        for output in step.outputs.iter().map(|output| plain(output)) {
            if !rule.required.iter().any(|pattern| pattern.matches(output)) {
                continue;
            }
            let found = artifacts
                .iter()
                .any(|artifact| artifact.step == step.name && is_of(artifact.path, output));
            if !found {
                about.broken_by(step.name, || {
                    format!("no artifact is `{}` or below it", quoted(output))
                });
            }
        }
    }
}

fn untold(decision: Decision, about: &mut About<'_, '_>) {
    about.unknown(
        decision,
        "the receipt does not tell what was declared and made",
    );
}

/// A declared path as artifacts spell it.
fn plain(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path)
}

/// Tells whether a file is the declared output, or lies below it.
fn is_of(file: &str, output: &str) -> bool {
    output == "."
        || file
            .strip_prefix(output)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

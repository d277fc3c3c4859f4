//! What a rule asks for, in words.

use crate::pattern::Pattern;
use crate::policy::{
    CommandRule, DurationRule, EnvRule, Kind, OutputRule, Rule, Selector, StepRule,
};
use crate::shown::listed;

/// Says what a rule asks for.
pub(crate) fn says(rule: &Rule) -> String {
    match &rule.kind {
        Kind::Step(kind) => step(kind),
        Kind::Command(kind) => command(kind),
        Kind::Env(kind) => env(kind),
        Kind::Output(kind) => output(kind),
        Kind::Duration(kind) => duration(kind),
    }
}

/// Names the rules that are about no step of a pipeline: their author may have misspelt one.
pub(crate) fn about_no_step<'a>(ids: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let rules: Vec<&str> = ids.into_iter().collect();
    (!rules.is_empty()).then(|| {
        let rules = rules.join(", ");
        format!("rules whose `steps` match no step of this pipeline: {rules}")
    })
}

fn step(rule: &StepRule) -> String {
    let order = if rule.ordered {
        "; each needs those before it, directly or through others"
    } else {
        ""
    };
    format!(
        "steps that match {} are there and end well{order}{}",
        all(&rule.required),
        unknown(rule.if_unknown)
    )
}

fn command(rule: &CommandRule) -> String {
    let mut parts = Vec::new();
    if !rule.allow.is_empty() {
        parts.push(format!(
            "{} runs {} (where no `*` stands for an operator of the shell)",
            selected("every", &rule.steps),
            any(&rule.allow)
        ));
    }
    if !rule.deny.is_empty() {
        parts.push(format!(
            "{} runs {}",
            selected("no", &rule.steps),
            any(&rule.deny)
        ));
    }
    parts.join("; ")
}

fn env(rule: &EnvRule) -> String {
    format!(
        "{} sets a variable that matches {}, by itself or through the pipeline",
        selected("no", &rule.steps),
        any(&rule.forbidden)
    )
}

fn output(rule: &OutputRule) -> String {
    format!(
        "{} declares outputs that match {} and makes them{}",
        selected("every", &rule.steps),
        all(&rule.required),
        unknown(rule.if_unknown)
    )
}

fn duration(rule: &DurationRule) -> String {
    let mut parts = Vec::new();
    if let Some(secs) = rule.step_secs {
        parts.push(format!(
            "{} takes at most {secs} s",
            selected("every", &rule.steps)
        ));
    }
    if let Some(secs) = rule.total_secs {
        parts.push(format!("the run takes at most {secs} s"));
    }
    format!("{}{}", parts.join("; "), unknown(rule.if_unknown))
}

fn selected(how_many: &str, steps: &Selector) -> String {
    match steps {
        Selector::Every => format!("{how_many} step"),
        Selector::Named(patterns) => format!("{how_many} step that matches {}", any(patterns)),
    }
}

fn unknown(decision: attest_plugin_protocol::Decision) -> String {
    format!("; where a receipt does not tell: {decision}")
}

fn all(patterns: &[Pattern]) -> String {
    joined(patterns, "and")
}

fn any(patterns: &[Pattern]) -> String {
    joined(patterns, "or")
}

fn joined(patterns: &[Pattern], word: &str) -> String {
    let mut shown: Vec<String> = patterns
        .iter()
        .map(|pattern| listed([pattern.as_str()]))
        .collect();
    match (shown.pop(), shown.is_empty()) {
        (Some(last), false) => format!("{} {word} {last}", shown.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

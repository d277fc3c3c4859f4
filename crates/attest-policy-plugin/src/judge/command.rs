//! Which commands may run.

use super::Facts;
use super::report::About;
use crate::pattern::{AROUND_COMMANDS, first};
use crate::policy::CommandRule;
use crate::shown::{listed, quoted};

pub(super) fn judge(rule: &CommandRule, facts: &Facts<'_>, about: &mut About<'_, '_>) {
    match facts {
        Facts::Pipeline(pipeline) => {
            for step in &pipeline.steps {
                command(rule, &step.name, &step.run, about);
            }
        }
        Facts::BeforeStep(step) => command(rule, &step.name, &step.run, about),
        Facts::AfterStep(_) | Facts::Receipt(_) => {}
    }
}

/// A pattern that denies wins over one that allows.
fn command(rule: &CommandRule, step: &str, run: &str, about: &mut About<'_, '_>) {
    if !rule.steps.has(step) {
        return;
    }
    // A block of YAML ends in a line break, which runs nothing and hides nothing from a pattern.
    let run = run.trim_matches(AROUND_COMMANDS);
    if let Some(pattern) = first(&rule.deny, run) {
        about.broken_by(step, || {
            format!(
                "`{}` is denied by `{}`",
                quoted(run),
                quoted(pattern.as_str())
            )
        });
    } else if !rule.allow.is_empty() && !rule.allow.iter().any(|pattern| pattern.allows(run)) {
        about.broken_by(step, || {
            let few = rule.allow.iter().take(3).map(|pattern| pattern.as_str());
            let more = if rule.allow.len() > 3 { ", …" } else { "" };
            format!("`{}` is not allowed by {}{more}", quoted(run), listed(few))
        });
    }
}

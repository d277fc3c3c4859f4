//! Which variables no step may set.

use super::Facts;
use super::report::About;
use crate::pattern::first;
use crate::policy::EnvRule;
use crate::shown::quoted;

/// A step's variables in the payload are the pipeline's overlaid by its own, so both are judged.
pub(super) fn judge(rule: &EnvRule, facts: &Facts<'_>, about: &mut About<'_, '_>) {
    let Facts::Pipeline(pipeline) = facts else {
        return;
    };
    for step in pipeline
        .steps
        .iter()
        .filter(|step| rule.steps.has(&step.name))
    {
        for name in step.env.keys() {
            if let Some(pattern) = first(&rule.forbidden, name) {
                about.broken_by(&step.name, || {
                    format!(
                        "sets variable `{}`, which `{}` forbids",
                        quoted(name),
                        quoted(pattern.as_str())
                    )
                });
            }
        }
    }
}

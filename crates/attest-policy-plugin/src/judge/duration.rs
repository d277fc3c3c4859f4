//! How long steps and runs may take.

use super::Facts;
use super::report::About;
use crate::policy::DurationRule;

pub(super) fn judge(rule: &DurationRule, facts: &Facts<'_>, about: &mut About<'_, '_>) {
    match facts {
        Facts::AfterStep(step) => one(rule, &step.name, step.duration_secs, about),
        Facts::Receipt(receipt) => {
            if receipt.fixed_time {
                // Zeros, so that two builds can be compared.
                let why = "two builds are compared, and the durations of such a run are not told";
                return about.unknown(rule.if_unknown, why);
            }
            match &receipt.steps {
                Some(steps) => {
                    for step in steps {
                        match step.duration_secs {
                            Some(secs) => one(rule, step.name, secs, about),
                            None if rule.steps.has(step.name) => {
                                about.unknown(rule.if_unknown, "a step has no duration");
                            }
                            None => {}
                        }
                    }
                }
                None => about.unknown(rule.if_unknown, "the receipt tells no steps"),
            }
            match (rule.total_secs, receipt.total_secs) {
                (Some(limit), Some(secs)) if secs > limit => {
                    about.broken("receipt".to_owned(), || {
                        format!("the run took {secs} s, {limit} s are the limit")
                    });
                }
                (Some(_), None) => about.unknown(rule.if_unknown, "the receipt has no duration"),
                _ => {}
            }
        }
        Facts::Pipeline(_) | Facts::BeforeStep(_) => {}
    }
}

fn one(rule: &DurationRule, step: &str, secs: u64, about: &mut About<'_, '_>) {
    let Some(limit) = rule.step_secs.filter(|limit| secs > *limit) else {
        return;
    };
    if rule.steps.has(step) {
        about.broken_by(step, || format!("took {secs} s, {limit} s are the limit"));
    }
}

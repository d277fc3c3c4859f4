//! What the rules found, within the limits of a verdict.

use attest_plugin_protocol::{Annotation, Decision, FINDINGS, Finding, Hook, Severity, Verdict};
use strict_json::{Json, Object};

use crate::policy::Rule;
use crate::shown::{quoted, step_resource};

/// The rule of the finding that counts the findings for which there was no room.
const MORE: &str = "attest-policy";

/// Findings of all rules about one payload.
pub(super) struct Report<'p> {
    hook: Hook,
    decision: Decision,
    denied: Vec<Finding>,
    warned: Vec<Finding>,
    /// Findings of each decision, also those that there is no room for.
    denials: u64,
    warnings: u64,
    left_out: Severity,
    judged: i64,
    rules: i64,
    elsewhere: Vec<&'p str>,
    unknown: Vec<&'p str>,
}

/// Findings of one rule.
pub(super) struct About<'r, 'p> {
    rule: &'p Rule,
    report: &'r mut Report<'p>,
}

impl<'p> Report<'p> {
    pub(super) fn new(hook: Hook) -> Self {
        Self {
            hook,
            decision: Decision::Allow,
            denied: Vec::new(),
            warned: Vec::new(),
            denials: 0,
            warnings: 0,
            left_out: Severity::Info,
            judged: 0,
            rules: 0,
            elsewhere: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Opens a rule; `None` if the payloads of this hook say nothing about it.
    pub(super) fn begin(&mut self, rule: &'p Rule) -> Option<About<'_, 'p>> {
        self.rules += 1;
        if !rule.kind.hooks().contains(&self.hook) {
            self.elsewhere.push(&rule.id);
            return None;
        }
        self.judged += 1;
        Some(About { rule, report: self })
    }

    /// Returns the verdict: denials before warnings, so that a cut never takes the reason away.
    pub(super) fn verdict(self, digest: &str) -> Verdict {
        let annotation = self.annotation(digest);
        let total = self.denials.saturating_add(self.warnings);
        let mut findings = self.denied;
        findings.extend(self.warned);
        if findings.len() > FINDINGS || total > FINDINGS as u64 {
            findings.truncate(FINDINGS - 1);
            let more = total.saturating_sub(findings.len() as u64);
            let text = format!("{more} more findings have no room in one verdict");
            findings.extend(Finding::new(MORE, self.left_out, text, None));
        }
        Verdict {
            decision: self.decision,
            findings,
            annotation,
        }
    }

    fn annotation(&self, digest: &str) -> Option<Annotation> {
        let ids = |ids: &[&str]| Json::Array(ids.iter().map(|id| text(id)).collect());
        let number = |count: u64| i64::try_from(count).map_or(Json::Unsigned(count), Json::Integer);
        let members = [
            ("policy", text(digest)),
            ("hook", text(self.hook.as_str())),
            ("rules", Json::Integer(self.rules)),
            ("judged", Json::Integer(self.judged)),
            ("denials", number(self.denials)),
            ("warnings", number(self.warnings)),
            ("judged_elsewhere", ids(&self.elsewhere)),
            ("unknown", ids(&self.unknown)),
        ];
        let members = members.map(|(key, value)| (key.to_owned(), value));
        // Ids are short and their number is bounded, so that all of them fit.
        Annotation::new(Object::from_members(members.to_vec()).ok()?).ok()
    }
}

impl About<'_, '_> {
    /// Records that the rule is broken. `what` is asked only where there is room.
    pub(super) fn broken(&mut self, resource: String, what: impl FnOnce() -> String) {
        self.add(self.rule.decision, resource, what);
    }

    /// The same about a step.
    pub(super) fn broken_by(&mut self, step: &str, what: impl FnOnce() -> String) {
        self.broken(step_resource(step), what);
    }

    /// Records that the payload does not tell.
    pub(super) fn unknown(&mut self, decision: Decision, why: &str) {
        let id = self.rule.id.as_str();
        if self.report.unknown.last() != Some(&id) {
            self.report.unknown.push(id);
        }
        self.add(decision, "receipt".to_owned(), || {
            format!("cannot be judged: {why}")
        });
    }

    fn add(&mut self, decision: Decision, resource: String, what: impl FnOnce() -> String) {
        let report = &mut *self.report;
        report.decision = report.decision.max(decision);
        let (findings, count) = match decision {
            Decision::Deny => (&mut report.denied, &mut report.denials),
            Decision::Allow | Decision::Warn => (&mut report.warned, &mut report.warnings),
        };
        *count = count.saturating_add(1);
        if findings.len() >= FINDINGS {
            report.left_out = report.left_out.max(self.rule.severity);
            return;
        }
        let mut message = what();
        if let Some(words) = &self.rule.message {
            message = format!("{words}: {message}");
        }
        // All parts are bounded far below the limits of a finding.
        let finding = Finding::new(&self.rule.id, self.rule.severity, message, Some(resource));
        findings.extend(finding);
    }
}

fn text(text: &str) -> Json {
    Json::Text(quoted(text))
}

//! The two output formats. Whatever a receipt says is made visible in the one for people.

use bounded::text::visible;
use serde::Serialize;

use crate::judge::Operational;
use crate::outcome::{
    Check, Execution, Outcome, PluginSummary, PolicyOutcome, Status, TrustMaterial, Verdict,
};

impl Outcome {
    /// Returns the lines for stdout; `subject` is the name of the file.
    #[must_use]
    pub fn text_lines(&self, subject: &str) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", visible(subject), self.verdict.as_str())];
        lines.extend(self.all_checks().map(check_line));
        if let Some(key) = &self.signed_by {
            lines.push(format!("  signed by: {}", visible(key)));
        }
        lines.push(execution_line(self.execution));
        lines.extend(self.plugin_lines());
        lines.extend(policy_lines(&self.policy));
        lines.push(
            "  trust material: no bundle on record; revocations are as current as the last change of the trust store"
                .to_owned(),
        );
        lines
    }

    /// Returns those of the lines that tell of plugins, also for what a receipt is wrapped in.
    pub fn plugin_lines(&self) -> impl Iterator<Item = String> {
        self.plugins.iter().map(plugin_line)
    }

    /// Returns the lines for stderr.
    #[must_use]
    pub fn warning_lines(&self) -> Vec<String> {
        let line = |warning: &String| format!("warning: {}", visible(warning));
        self.warnings.iter().map(line).collect()
    }

    /// Returns the record for stdout, without a line feed; `subject` is the name of the file.
    #[must_use]
    pub fn to_json(&self, subject: &str) -> Vec<u8> {
        strict_json::to_line(&Record {
            receipt: subject,
            verdict: self.verdict,
            checks: self.all_checks().collect(),
            signed_by: self.signed_by.as_deref(),
            warnings: &self.warnings,
            plugins: &self.plugins,
            trust_material: self.trust_material,
            execution: self.execution,
            policy: &self.policy,
        })
    }
}

/// The keys of the record, in their order.
#[derive(Serialize)]
struct Record<'a> {
    receipt: &'a str,
    verdict: Verdict,
    checks: Vec<&'a Check>,
    signed_by: Option<&'a str>,
    warnings: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    plugins: &'a [PluginSummary],
    trust_material: TrustMaterial,
    execution: Execution,
    policy: &'a PolicyOutcome,
}

fn check_line(check: &Check) -> String {
    let status = match check.status {
        Status::Pass => "pass",
        Status::Fail => "FAIL",
        Status::Skipped => "skipped",
    };
    format!(
        "  {:<12} {status:<8} {}",
        check.name,
        visible(&check.detail)
    )
}

fn execution_line(execution: Execution) -> String {
    match execution {
        Execution::Failure(failed) => {
            format!("  execution: failure ({failed} failed step(s))")
        }
        other => format!("  execution: {}", other.as_str()),
    }
}

fn plugin_line(plugin: &PluginSummary) -> String {
    let version = if plugin.version.is_empty() {
        "-".to_owned()
    } else {
        visible(&plugin.version)
    };
    format!(
        "  plugin: {} {version} {}",
        visible(&plugin.name),
        plugin.decision_word()
    )
}

fn policy_lines(policy: &PolicyOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    if !policy.required.is_empty() {
        let names: Vec<String> = policy.required.iter().map(ToString::to_string).collect();
        lines.push(format!("  required: {}", names.join(", ")));
    }
    lines.extend(policy.unmet.iter().map(|unmet| {
        format!(
            "  REFUSED: requirement '{}' not met: {}",
            unmet.requirement,
            visible(&unmet.reason)
        )
    }));
    lines
}

impl Operational {
    /// Returns the message for stderr, without the word `error`.
    #[must_use]
    pub fn message(&self, subject: &str) -> String {
        let (subject, detail) = (visible(subject), visible(&self.to_string()));
        if self.is_resource_limit() {
            format!("{subject}: {detail}")
        } else {
            format!("unreadable YAML in {subject}: {detail}")
        }
    }

    /// Returns the record for stdout, without a line feed.
    #[must_use]
    pub fn to_json(&self, subject: &str) -> Vec<u8> {
        let error = if self.is_resource_limit() {
            "resource-limit"
        } else {
            "operational"
        };
        error_record(subject, error, &self.message(subject))
    }
}

/// Returns the record of something that could not be judged, without a line feed.
#[must_use]
pub fn error_record(subject: &str, error: &str, detail: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Record<'a> {
        subject: &'a str,
        verdict: &'static str,
        error: &'a str,
        detail: &'a str,
    }
    strict_json::to_line(&Record {
        subject,
        verdict: "error",
        error,
        detail,
    })
}

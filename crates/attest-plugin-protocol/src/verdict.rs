//! What a plugin answers: a decision, findings, an annotation.

use serde::Serialize;

use crate::annotation::Annotation;
use crate::limits::{FINDING_MESSAGE_BYTES, RESOURCE_BYTES, RULE_BYTES};
use crate::words::words;

words! {
    /// A decision, the worst last (seed 6.4).
    Decision, "decision" {
        /// Nothing against it.
        Allow = "allow",
        /// Something to look at; the run goes on.
        Warn = "warn",
        /// No.
        Deny = "deny",
    }
}

words! {
    /// How much a finding weighs, the heaviest last (seed 6.4).
    Severity, "severity" {
        /// For information.
        Info = "info",
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
        /// Critical.
        Critical = "critical",
    }
}

/// One finding (seed 6.4). Its texts come from a plugin: show them escaped, open none as a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    rule: String,
    severity: Severity,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
}

/// A text of a finding that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` has at most {limit} bytes")]
pub struct InvalidFinding {
    /// The field.
    pub field: &'static str,
    /// Its limit.
    pub limit: usize,
}

impl Finding {
    /// Makes a finding.
    ///
    /// # Errors
    /// The first text that is too long.
    pub fn new(
        rule: impl Into<String>,
        severity: Severity,
        message: impl Into<String>,
        resource: Option<String>,
    ) -> Result<Self, InvalidFinding> {
        let finding = Self {
            rule: rule.into(),
            severity,
            message: message.into(),
            resource,
        };
        let resource = finding.resource.as_deref().unwrap_or_default();
        for (field, text, limit) in [
            ("rule", finding.rule.as_str(), RULE_BYTES),
            ("message", &finding.message, FINDING_MESSAGE_BYTES),
            ("resource", resource, RESOURCE_BYTES),
        ] {
            if text.len() > limit {
                return Err(InvalidFinding { field, limit });
            }
        }
        Ok(finding)
    }

    /// Returns the rule that it is about.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns how much it weighs.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns what it says.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what it is about; never a path to open.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}

/// The answer to a request (seed 6.4).
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The findings; at most 256.
    pub findings: Vec<Finding>,
    /// What goes into the receipt under the plugin's name.
    pub annotation: Option<Annotation>,
}

impl Verdict {
    /// Nothing against it.
    #[must_use]
    pub fn allow() -> Self {
        Self::new(Decision::Allow, Vec::new())
    }

    /// Something to look at.
    #[must_use]
    pub fn warn(findings: Vec<Finding>) -> Self {
        Self::new(Decision::Warn, findings)
    }

    /// No.
    #[must_use]
    pub fn deny(findings: Vec<Finding>) -> Self {
        Self::new(Decision::Deny, findings)
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotated(mut self, annotation: Annotation) -> Self {
        self.annotation = Some(annotation);
        self
    }

    fn new(decision: Decision, findings: Vec<Finding>) -> Self {
        Self {
            decision,
            findings,
            annotation: None,
        }
    }
}

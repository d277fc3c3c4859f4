//! What judging a statement found, and its two output formats.

use attest_verify::{Execution, Options, Outcome, Requirement, Status, TrustMaterial, Verdict};
use bounded::text::visible;
use serde::Serialize;
use strict_json::{Json, Layout, Limits};

use super::{ImportOptions, ImportRequirement};
use crate::statement::SEMANTICS;

/// One check and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Which.
    pub name: &'static str,
    /// What it came to.
    pub status: Status,
    /// Why, in words; may quote the statement, so it is untrusted text.
    pub detail: String,
}

/// A requirement that was not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Which.
    pub requirement: ImportRequirement,
    /// Why.
    pub reason: String,
}

/// What judging a statement found.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Whether it is accepted.
    pub verdict: Verdict,
    /// The checks in the order in which they are told.
    pub lines: Vec<Line>,
    /// The public key of the envelope's trusted signer.
    pub envelope_signer: Option<String>,
    /// The SHA-256 of the receipt in it.
    pub receipt_sha256: Option<String>,
    /// What judging the receipt found.
    pub original: Option<Outcome>,
    /// What does not change the verdict and should be known.
    pub warnings: Vec<String>,
    /// What the receipt says happened.
    pub execution: Execution,
    /// What was required.
    pub required: Vec<ImportRequirement>,
    /// What of it was not established.
    pub unmet: Vec<Unmet>,
}

impl Imported {
    /// Tells whether the statement is accepted.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Pass
    }

    pub(super) fn add<T: Into<String>>(&mut self, name: &'static str, found: Result<T, String>) {
        let (status, detail) = match found {
            Ok(detail) => (Status::Pass, detail.into()),
            Err(detail) => (Status::Fail, detail),
        };
        self.lines.push(Line {
            name,
            status,
            detail,
        });
    }

    pub(super) fn skip(&mut self, name: &'static str, detail: &str) {
        self.lines.push(Line {
            name,
            status: Status::Skipped,
            detail: detail.to_owned(),
        });
    }

    /// Adds the check that needs both signatures.
    pub(super) fn add_signature(&mut self) {
        let passed = |name| {
            self.line(name)
                .is_some_and(|line| line.status == Status::Pass)
        };
        let both = passed("dsse-signature") && passed("original-evidence");
        let detail = "wants a trusted envelope and a receipt that is trusted by itself";
        self.add(
            "signature",
            if both {
                Ok(detail)
            } else {
                Err(detail.to_owned())
            },
        );
    }

    fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// Judges what was required, and draws the verdict.
    pub(super) fn conclude(&mut self, receipt: Option<&[u8]>, options: &ImportOptions<'_>) {
        let unmet = self.required.iter().filter_map(|requirement| {
            let reason = match requirement {
                ImportRequirement::Artifacts => self.missing("artifacts"),
                ImportRequirement::Receipt(Requirement::Signature) => self.missing("signature"),
                ImportRequirement::Receipt(Requirement::Recompute) => {
                    Some("no recompute check on this surface".to_owned())
                }
                ImportRequirement::Receipt(other) => missing_of(other, receipt, options),
            };
            Some(Unmet {
                requirement: requirement.clone(),
                reason: reason?,
            })
        });
        self.unmet = unmet.collect();
        let failed = self.lines.iter().any(|line| line.status == Status::Fail);
        self.verdict = if failed || self.lines.is_empty() || !self.unmet.is_empty() {
            Verdict::Fail
        } else {
            Verdict::Pass
        };
    }

    fn missing(&self, name: &str) -> Option<String> {
        let Some(line) = self.line(name) else {
            return Some(format!("there is no receipt for a {name} check"));
        };
        match line.status {
            Status::Pass => None,
            Status::Fail => Some(format!("{name} check failed: {}", line.detail)),
            Status::Skipped => Some(format!("{name} check not performed: {}", line.detail)),
        }
    }

    /// Returns the lines for stdout; `subject` is the name of the file.
    #[must_use]
    pub fn text_lines(&self, subject: &str) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", visible(subject), self.verdict.as_str())];
        lines.extend(self.lines.iter().map(|line| {
            let status = match line.status {
                Status::Pass => "pass",
                Status::Fail => "FAIL",
                Status::Skipped => "skipped",
            };
            format!("  {:<17} {status:<8} {}", line.name, visible(&line.detail))
        }));
        if let Some(key) = &self.envelope_signer {
            lines.push(format!("  envelope signed by: {key}"));
        }
        let signer = self
            .original
            .as_ref()
            .and_then(|one| one.signed_by.as_ref());
        if let Some(key) = signer {
            lines.push(format!("  receipt signed by: {key}"));
        }
        lines.push(match self.execution {
            Execution::Failure(failed) => format!("  execution: failure ({failed} failed step(s))"),
            other => format!("  execution: {}", other.as_str()),
        });
        lines.extend(self.original.iter().flat_map(Outcome::plugin_lines));
        if !self.required.is_empty() {
            let names: Vec<String> = self.required.iter().map(ToString::to_string).collect();
            lines.push(format!("  required: {}", names.join(", ")));
        }
        lines.extend(self.unmet.iter().map(|unmet| {
            format!(
                "  REFUSED: requirement '{}' not met: {}",
                unmet.requirement,
                visible(&unmet.reason)
            )
        }));
        lines
    }

    /// Returns the record for stdout, without a line feed.
    #[must_use]
    pub fn to_json(&self, subject: &str) -> Vec<u8> {
        strict_json::to_line(&Record {
            receipt: subject,
            verdict: self.verdict,
            checks: &self.lines,
            signed_by: self.envelope_signer.as_deref(),
            interop: Interop {
                projection: true,
                envelope_signer: self.envelope_signer.as_deref(),
                original_signer: self
                    .original
                    .as_ref()
                    .and_then(|original| original.signed_by.as_deref()),
                original_receipt_sha256: self.receipt_sha256.as_deref(),
                original_verdict: self.original.as_ref().map(nested),
                semantics: &SEMANTICS,
            },
            warnings: &self.warnings,
            trust_material: TrustMaterial,
            execution: self.execution,
            policy: Policy {
                required: &self.required,
                unmet: &self.unmet,
            },
        })
    }
}

/// Asks the receipt alone what it does not meet.
fn missing_of(
    requirement: &Requirement,
    receipt: Option<&[u8]>,
    options: &ImportOptions<'_>,
) -> Option<String> {
    let absent = || Some("there is no receipt that could establish it".to_owned());
    let Some(bytes) = receipt else {
        return absent();
    };
    let asked = Options {
        require: vec![requirement.clone()],
        ..Options::new(options.now)
    };
    let Ok(outcome) = attest_verify::verify(bytes, options.trust, &asked, None) else {
        return absent();
    };
    let unmet = outcome.policy.unmet.into_iter().next();
    unmet.map(|unmet| unmet.reason)
}

/// The receipt's own record stands inside as it would stand alone.
fn nested(outcome: &Outcome) -> Json {
    let json = outcome.to_json("embedded original receipt");
    let limits = Limits {
        bytes: usize::MAX,
        depth: 16,
    };
    strict_json::parse_value(&json, &limits, Layout::Compact).unwrap_or(Json::Null)
}

/// The keys of the record, in their order.
#[derive(Serialize)]
struct Record<'a> {
    receipt: &'a str,
    verdict: Verdict,
    checks: &'a [Line],
    signed_by: Option<&'a str>,
    interop: Interop<'a>,
    warnings: &'a [String],
    trust_material: TrustMaterial,
    execution: Execution,
    policy: Policy<'a>,
}

#[derive(Serialize)]
struct Interop<'a> {
    projection: bool,
    envelope_signer: Option<&'a str>,
    original_signer: Option<&'a str>,
    original_receipt_sha256: Option<&'a str>,
    original_verdict: Option<Json>,
    semantics: &'a [&'static str],
}

#[derive(Serialize)]
struct Policy<'a> {
    required: &'a [ImportRequirement],
    unmet: &'a [Unmet],
}

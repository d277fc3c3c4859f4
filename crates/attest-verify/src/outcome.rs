//! What a verification found, as data.

use std::fmt;

use attest_receipt::receipt::{Decision, PluginRecord, Receipt};
use serde::{Serialize, Serializer};

use crate::require::Requirement;

/// Whether a receipt is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No check failed and every requirement is met.
    Pass,
    /// Anything else.
    Fail,
}

impl Verdict {
    /// Returns the word of both output formats.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }
}

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It ran and found what it wants.
    Pass,
    /// It ran and did not.
    Fail,
    /// It did not run and so established nothing.
    Skipped,
}

/// The name of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckName {
    /// The document is a receipt of a known version.
    Schema,
    /// Its facts can be true together.
    Consistency,
    /// A trusted key signed them.
    Signature,
    /// An authority saw the signature.
    Timestamp,
    /// The workspace still gives the same hashes.
    Recompute,
    /// The ledger's events are those that the receipt names; for archives.
    ChainLinkage,
}

impl CheckName {
    /// Returns the name of both output formats.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Consistency => "consistency",
            Self::Signature => "signature",
            Self::Timestamp => "timestamp",
            Self::Recompute => "recompute",
            Self::ChainLinkage => "chain-linkage",
        }
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One check and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which.
    pub name: CheckName,
    /// What it came to.
    pub status: Status,
    /// Why, in words; may quote the receipt, so it is untrusted text.
    pub detail: String,
}

impl Check {
    pub(crate) fn pass(name: CheckName, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Pass, detail)
    }

    pub(crate) fn fail(name: CheckName, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Fail, detail)
    }

    pub(crate) fn skipped(name: CheckName, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Skipped, detail)
    }

    /// Makes a check, for surfaces that add one of their own.
    #[must_use]
    pub fn new(name: CheckName, status: Status, detail: impl Into<String>) -> Self {
        Self {
            name,
            status,
            detail: detail.into(),
        }
    }
}

/// What the receipt says happened, which is not whether the receipt is valid evidence of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// Every step ended with 0.
    Success,
    /// So many did not.
    Failure(usize),
    /// There is no receipt that could say.
    Unknown,
}

impl Execution {
    pub(crate) fn of(receipt: &Receipt) -> Self {
        match receipt.failed_steps() {
            0 => Self::Success,
            failed => Self::Failure(failed),
        }
    }

    /// Returns the word of both output formats.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure(_) => "failure",
            Self::Unknown => "unknown",
        }
    }

    /// Returns how many steps failed.
    #[must_use]
    pub fn failed_steps(self) -> usize {
        match self {
            Self::Failure(failed) => failed,
            Self::Success | Self::Unknown => 0,
        }
    }
}

impl Serialize for Execution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Record {
            outcome: &'static str,
            failed_steps: usize,
        }
        Record {
            outcome: self.as_str(),
            failed_steps: self.failed_steps(),
        }
        .serialize(serializer)
    }
}

/// How current the revocations behind the verdict are. Trust bundles are not part of this program,
/// so there is never one on record; the block stays for readers that expect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrustMaterial;

impl Serialize for TrustMaterial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Record {
            state: &'static str,
            issuer: (),
            sequence: (),
            valid_until: (),
            judged_by: &'static str,
        }
        Record {
            state: "none",
            issuer: (),
            sequence: (),
            valid_until: (),
            judged_by: "local clock",
        }
        .serialize(serializer)
    }
}

/// What the receipt says about one plugin, without its annotation, which nothing here interprets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginSummary {
    /// Its declared name.
    pub name: String,
    /// Its version; empty before the handshake.
    pub version: String,
    /// The protocol's major version.
    pub protocol: u32,
    /// `blake3:` and the hash of the executable.
    pub digest: String,
    /// What it decided, or what became of it.
    pub decision: Decision,
    /// Whether its answers are a function of the requests.
    pub deterministic: bool,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PluginSummary {
    /// Returns the word of both output formats for the decision.
    #[must_use]
    pub fn decision_word(&self) -> &'static str {
        match self.decision {
            Decision::Skipped => "skipped",
            Decision::Allow => "allow",
            Decision::Warn => "warn",
            Decision::Deny => "deny",
            Decision::Error => "error",
        }
    }
}

impl From<&PluginRecord> for PluginSummary {
    fn from(record: &PluginRecord) -> Self {
        Self {
            name: record.name.clone(),
            version: record.version.clone(),
            protocol: record.protocol,
            digest: record.digest.clone(),
            decision: record.decision,
            deterministic: record.deterministic,
            reason: record.reason.clone(),
        }
    }
}

/// What was required, and what of it was not established.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PolicyOutcome {
    /// Everything that was required, in the order in which it was asked for.
    pub required: Vec<Requirement>,
    /// What of it was not established.
    pub unmet: Vec<Unmet>,
}

/// A requirement that was not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Which.
    pub requirement: Requirement,
    /// Why; may quote the receipt, so it is untrusted text.
    pub reason: String,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Whether the receipt is accepted.
    pub verdict: Verdict,
    /// Schema, consistency, signature, timestamp, recompute.
    pub checks: [Check; 5],
    /// Whether the archive around the receipt holds its events; for archives.
    pub linkage: Option<Check>,
    /// The public key of the trusted signer, 64 hexadecimal digits.
    pub signed_by: Option<String>,
    /// What does not change the verdict and should be known.
    pub warnings: Vec<String>,
    /// What the receipt says about plugins; none if it has no such records.
    pub plugins: Vec<PluginSummary>,
    /// How current revocations are.
    pub trust_material: TrustMaterial,
    /// What the receipt says happened.
    pub execution: Execution,
    /// What was required.
    pub policy: PolicyOutcome,
    /// The receipt, if the document is one.
    pub receipt: Option<Receipt>,
}

impl Outcome {
    /// Tells whether the receipt is accepted.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Pass
    }

    /// Returns one of the checks, if it is part of this surface.
    #[must_use]
    pub fn check(&self, name: CheckName) -> Option<&Check> {
        self.all_checks().find(|check| check.name == name)
    }

    /// Iterates over the checks in the order in which they are told.
    pub fn all_checks(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().chain(&self.linkage)
    }

    /// Adds what [`crate::chain::linkage`] found and judges again.
    pub fn add_linkage(&mut self, check: Check) {
        self.linkage = Some(check);
        let PolicyOutcome { required, unmet } = &mut self.policy;
        unmet.retain(|unmet| unmet.requirement != Requirement::Linkage);
        if required.contains(&Requirement::Linkage)
            && let Some(reason) = crate::require::linkage_missing(self.linkage.as_ref())
        {
            unmet.push(Unmet {
                requirement: Requirement::Linkage,
                reason,
            });
        }
        self.conclude();
    }

    /// Draws the verdict from the checks and the requirements.
    pub(crate) fn conclude(&mut self) {
        let failed = self.all_checks().any(|check| check.status == Status::Fail);
        self.verdict = if failed || !self.policy.unmet.is_empty() {
            Verdict::Fail
        } else {
            Verdict::Pass
        };
    }
}

//! The order of the checks, and the verdict.

use attest_receipt::receipt::{self, ReadError, Receipt};
use attest_receipt::time::Time;
use attest_receipt::yaml::YamlError;

use crate::outcome::{
    Check, CheckName, Execution, Outcome, PluginSummary, PolicyOutcome, TrustMaterial, Unmet,
    Verdict,
};
use crate::policy::Policy;
use crate::recompute::{self, Workspace};
use crate::require::{self, Requirement};
use crate::signature;
use crate::timestamp::{self, PinnedAuthorities, Stamp, TokenJudge};
use crate::trust::Trust;

/// How far ahead of this machine's clock a receipt may be; both clocks may be wrong.
pub(crate) const SKEW_SECONDS: i64 = 24 * 60 * 60;

/// What the caller asks for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether the signature is judged; without, nothing says who made the receipt.
    pub check_signatures: bool,
    /// Whether a revoked key's receipt may say itself when it was signed.
    pub trust_receipt_timestamp: bool,
    /// Whether the workspace is hashed again.
    pub recompute: bool,
    /// What must be established.
    pub require: Vec<Requirement>,
    /// Rules that can only refuse.
    pub policy: Option<Policy>,
    /// The time now.
    pub now: Time,
}

impl Options {
    /// Checks signatures, and nothing that has to be asked for.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self {
            check_signatures: true,
            trust_receipt_timestamp: false,
            recompute: false,
            require: Vec::new(),
            policy: None,
            now,
        }
    }
}

/// Why a document cannot be judged at all: exit code 2, not a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Operational(#[from] YamlError);

impl Operational {
    /// Tells whether a limit was exceeded, so that the document was not looked at.
    #[must_use]
    pub fn is_resource_limit(&self) -> bool {
        matches!(self.0, YamlError::TooLong { .. })
    }
}

/// Judges a receipt.
///
/// # Errors
/// The bytes are too many or no document.
pub fn verify(
    document: &[u8],
    trust: &Trust,
    options: &Options,
    workspace: Option<&dyn Workspace>,
) -> Result<Outcome, Operational> {
    verify_with_tokens(document, trust, options, workspace, &PinnedAuthorities)
}

/// Judges a receipt with another verifier of time-stamp tokens than the trust store's authorities.
///
/// # Errors
/// As [`verify`].
pub fn verify_with_tokens(
    document: &[u8],
    trust: &Trust,
    options: &Options,
    workspace: Option<&dyn Workspace>,
    tokens: &dyn TokenJudge,
) -> Result<Outcome, Operational> {
    let (mut outcome, stamp) = match receipt::read(document) {
        Ok(receipt) => judged(receipt, trust, options, workspace, tokens),
        Err(ReadError::Schema(error)) => (unread(error.to_string()), None),
        Err(ReadError::Unreadable(error)) => return Err(Operational(error)),
    };
    require_all(&mut outcome, options, stamp.as_ref());
    outcome.conclude();
    Ok(outcome)
}

fn judged(
    receipt: Receipt,
    trust: &Trust,
    options: &Options,
    workspace: Option<&dyn Workspace>,
    tokens: &dyn TokenJudge,
) -> (Outcome, Option<Stamp>) {
    let mut warnings = Vec::new();
    let (timestamp, stamp) = timestamp::check(&receipt, trust, tokens, options.now);
    let (signature, signed_by) = if options.check_signatures {
        signature::check(
            &receipt,
            trust,
            stamp.as_ref(),
            options.trust_receipt_timestamp,
            &mut warnings,
        )
    } else {
        let detail = "disabled by --check-signatures false";
        (Check::skipped(CheckName::Signature, detail), None)
    };
    let recompute = if options.recompute {
        recompute::check(&receipt, workspace)
    } else {
        Check::skipped(CheckName::Recompute, "enable with --recompute")
    };
    let checks = [
        Check::pass(CheckName::Schema, "receipt matches schema"),
        consistency(&receipt, options.now),
        signature,
        timestamp,
        recompute,
    ];
    let plugins = receipt.plugins.iter().flatten();
    let outcome = Outcome {
        verdict: Verdict::Fail,
        checks,
        linkage: None,
        signed_by,
        warnings,
        plugins: plugins.map(PluginSummary::from).collect(),
        trust_material: TrustMaterial,
        execution: Execution::of(&receipt),
        policy: PolicyOutcome::default(),
        receipt: Some(receipt),
    };
    (outcome, stamp)
}

/// The outcome for a document that is no receipt: nothing else can be judged.
fn unread(detail: String) -> Outcome {
    let skipped = |name| Check::skipped(name, "schema check failed");
    Outcome {
        verdict: Verdict::Fail,
        checks: [
            Check::fail(CheckName::Schema, detail),
            skipped(CheckName::Consistency),
            skipped(CheckName::Signature),
            skipped(CheckName::Timestamp),
            skipped(CheckName::Recompute),
        ],
        linkage: None,
        signed_by: None,
        warnings: Vec::new(),
        plugins: Vec::new(),
        trust_material: TrustMaterial,
        execution: Execution::Unknown,
        policy: PolicyOutcome::default(),
        receipt: None,
    }
}

fn consistency(receipt: &Receipt, now: Time) -> Check {
    let mut problems = Vec::new();
    if is_ahead(receipt.timestamp, now) {
        problems.push(format!(
            "timestamp {} is more than a day ahead of this machine's clock ({now})",
            receipt.timestamp
        ));
    }
    let started = receipt.provenance.as_ref().and_then(|it| it.started_at);
    if let Some(started) = started.filter(|started| *started > receipt.timestamp) {
        problems.push(format!(
            "started_at {started} is after the end of the run, {}",
            receipt.timestamp
        ));
    }
    // These are bounded where they are found.
    problems.extend(receipt.problems());
    if problems.is_empty() {
        Check::pass(CheckName::Consistency, "receipt is coherent")
    } else {
        Check::fail(CheckName::Consistency, problems.join("; "))
    }
}

/// Tells whether a time lies further ahead of now than clocks differ.
pub(crate) fn is_ahead(time: Time, now: Time) -> bool {
    let ahead = time
        .timestamp()
        .as_second()
        .saturating_sub(now.timestamp().as_second());
    ahead > SKEW_SECONDS
}

fn require_all(outcome: &mut Outcome, options: &Options, stamp: Option<&Stamp>) {
    let mut required = options.require.clone();
    let mut unmet = Vec::new();
    if let Some(policy) = &options.policy {
        for requirement in policy.requirements() {
            if !required.contains(&requirement) {
                required.push(requirement);
            }
        }
    }
    for requirement in &required {
        let reason = match (requirement, &options.policy) {
            (Requirement::Policy(rule), Some(policy)) => {
                policy.missing(*rule, outcome, stamp, options.now)
            }
            _ => require::missing(requirement, outcome),
        };
        unmet.extend(reason.map(|reason| Unmet {
            requirement: requirement.clone(),
            reason,
        }));
    }
    outcome.policy = PolicyOutcome { required, unmet };
}

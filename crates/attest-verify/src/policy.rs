//! The policy file: what one recipient of receipts asks for beyond a pass. It can only refuse.
//!
//! `docs/reference/attest-verify-policy.md` describes the file. Its keys are closed, so that a
//! misspelt rule is an error and never a rule less.

mod read;

use std::collections::BTreeSet;
use std::fmt;

use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;

use crate::judge::is_ahead;
use crate::outcome::{CheckName, Outcome};
use crate::problems::short;
use crate::require::{Requirement, check_missing};
use crate::timestamp::Stamp;
use crate::trust::{KeyId, PublicKey};

pub use read::PolicyError;

/// Longest policy file in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// Steps that are told by name in a reason.
const TOLD: usize = 8;

/// A rule of the policy file that the words of `--require` do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A listed key signed, and it may vouch for every step.
    Signer,
    /// The receipt has exactly the expected steps.
    Steps,
    /// The receipt is not older than it may be.
    MaxAge,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signer => "signer",
            Self::Steps => "steps",
            Self::MaxAge => "max_age",
        })
    }
}

/// What one recipient asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    require: Vec<Requirement>,
    signers: Option<Vec<Signer>>,
    steps: Option<BTreeSet<String>>,
    max_age: Option<Age>,
}

/// A key, and the steps for which it may vouch; `None` is every step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Signer {
    key: KeyId,
    steps: Option<BTreeSet<String>>,
}

/// An age in the words of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Age {
    seconds: i64,
    text: String,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// It is too long, no TOML, has an unknown key or a value of another form, contradicts itself,
    /// or asks for nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        read::policy(bytes)
    }

    /// Returns everything that the file asks for.
    #[must_use]
    pub fn requirements(&self) -> Vec<Requirement> {
        let rules = [
            self.signers.as_ref().map(|_| Rule::Signer),
            self.steps.as_ref().map(|_| Rule::Steps),
            self.max_age.as_ref().map(|_| Rule::MaxAge),
        ];
        let rules = rules.into_iter().flatten().map(Requirement::Policy);
        self.require.iter().cloned().chain(rules).collect()
    }

    /// Returns why a rule is not met.
    pub(crate) fn missing(
        &self,
        rule: Rule,
        outcome: &Outcome,
        stamp: Option<&Stamp>,
        now: Time,
    ) -> Option<String> {
        let Some(receipt) = &outcome.receipt else {
            return Some("there is no receipt to judge".to_owned());
        };
        match rule {
            Rule::Signer => self.wrong_signer(outcome, receipt),
            Rule::Steps => self.other_steps(receipt),
            Rule::MaxAge => self.too_old(receipt, stamp, now),
        }
    }

    fn wrong_signer(&self, outcome: &Outcome, receipt: &Receipt) -> Option<String> {
        let signers = self.signers.as_ref()?;
        let name = CheckName::Signature;
        if let Some(reason) = check_missing(name, outcome.check(name)) {
            return Some(reason);
        }
        let key = outcome.signed_by.as_deref().unwrap_or_default();
        let Ok(key) = PublicKey::from_hex(key) else {
            return Some("nobody is known to have signed".to_owned());
        };
        let id = key.key_id();
        let Some(signer) = signers.iter().find(|signer| signer.key == id) else {
            return Some(format!("key {id} is not among the signers"));
        };
        let allowed = signer.steps.as_ref()?;
        let names = receipt.steps.iter().map(|step| step.name.as_str());
        let beyond: Vec<&str> = names.filter(|name| !allowed.contains(*name)).collect();
        (!beyond.is_empty()).then(|| format!("key {id} may not vouch for {}", named(&beyond)))
    }

    fn other_steps(&self, receipt: &Receipt) -> Option<String> {
        let expected = self.steps.as_ref()?;
        let names: BTreeSet<&str> = receipt
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        let missing: Vec<&str> = expected
            .iter()
            .map(String::as_str)
            .filter(|name| !names.contains(name))
            .collect();
        let beyond: Vec<&str> = names
            .into_iter()
            .filter(|name| !expected.contains(*name))
            .collect();
        let parts = [("missing", missing), ("not expected", beyond)];
        let told: Vec<String> = parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {}", named(&names)))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn too_old(&self, receipt: &Receipt, stamp: Option<&Stamp>, now: Time) -> Option<String> {
        let age = self.max_age.as_ref()?;
        let time = stamp.map_or(receipt.timestamp, |stamp| stamp.time);
        if is_ahead(time, now) {
            return Some(format!("the receipt is of {time}, which is yet to come"));
        }
        let seconds = now
            .timestamp()
            .as_second()
            .saturating_sub(time.timestamp().as_second());
        (seconds > age.seconds)
            .then(|| format!("the receipt is of {time}, more than {} ago", age.text))
    }
}

/// Names a few steps; a hostile receipt may have a great many.
fn named(steps: &[&str]) -> String {
    let mut told: Vec<String> = steps
        .iter()
        .take(TOLD)
        .map(|step| format!("step '{}'", short(step)))
        .collect();
    if steps.len() > TOLD {
        told.push(format!("{} more", steps.len() - TOLD));
    }
    told.join(", ")
}

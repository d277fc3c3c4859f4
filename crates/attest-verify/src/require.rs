//! What a caller can require beyond "no check failed".

use std::fmt;
use std::str::FromStr;

use attest_receipt::receipt::Decision;
use serde::{Serialize, Serializer};

use crate::outcome::{Check, CheckName, Execution, Outcome, PluginSummary, Status};
use crate::policy::Rule;

/// Something that must have been established for the verdict `pass`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// The signature check passed.
    Signature,
    /// The timestamp check passed.
    Timestamp,
    /// The recompute check passed.
    Recompute,
    /// The chain-linkage check passed; only archives have it.
    Linkage,
    /// A current trust bundle; never met here, since there are none.
    Trust,
    /// Every step ended with 0.
    Success,
    /// At least one record of a plugin, and each allows or warns.
    Plugins,
    /// A record of this plugin that allows or warns.
    Plugin(String),
    /// A rule of the policy file.
    Policy(Rule),
}

/// The names that are known elsewhere and have nothing here that could establish them.
const NO_SURFACE: [&str; 7] = [
    "sbom",
    "provenance",
    "revision",
    "identity",
    "capsule",
    "log-inclusion",
    "log-consistency",
];

const NAMES: [(&str, Requirement); 7] = [
    ("signature", Requirement::Signature),
    ("timestamp", Requirement::Timestamp),
    ("recompute", Requirement::Recompute),
    ("linkage", Requirement::Linkage),
    ("trust", Requirement::Trust),
    ("success", Requirement::Success),
    ("plugins", Requirement::Plugins),
];

/// Says why a name is no requirement here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequireError {
    /// No such name.
    #[error(
        "--require: unknown requirement '{}'; expected one of signature, timestamp, recompute, linkage, trust, success, plugins, plugin:NAME",
        bounded::text::visible(.0)
    )]
    Unknown(String),
    /// A name that nothing here can establish.
    #[error("--require: '{0}' has no check in this program, so it could never be met")]
    NoSurface(&'static str),
    /// A name that another command establishes.
    #[error("--require: '{name}' is checked by `{command}`, not here")]
    Elsewhere {
        /// The name.
        name: &'static str,
        /// The command.
        command: &'static str,
    },
    /// No such name where statements are imported.
    #[error(
        "--require: unknown requirement '{}'; expected one of signature, timestamp, artifacts, trust, success, plugins, plugin:NAME",
        bounded::text::visible(.0)
    )]
    UnknownOfImport(String),
    /// A name for a plugin that no plugin can have.
    #[error("--require: a plugin's name is 1 to 32 of a-z, 0-9 and '-', not '{}'", bounded::text::visible(.0))]
    PluginName(String),
}

impl Requirement {
    /// Reads the values of `--require`: names with commas between them; a name counts once.
    ///
    /// # Errors
    /// The first name that is no requirement here.
    pub fn parse<T: AsRef<str>>(values: &[T]) -> Result<Vec<Self>, RequireError> {
        let mut required = Vec::new();
        for value in values {
            for name in value.as_ref().split(',') {
                let requirement = name.trim().parse()?;
                if !required.contains(&requirement) {
                    required.push(requirement);
                }
            }
        }
        Ok(required)
    }
}

impl FromStr for Requirement {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Self, RequireError> {
        if let Some(name) = NO_SURFACE.into_iter().find(|name| *name == text) {
            return Err(RequireError::NoSurface(name));
        }
        if text == "artifacts" {
            return Err(RequireError::Elsewhere {
                name: "artifacts",
                command: "attest import",
            });
        }
        if let Some(name) = text.strip_prefix("plugin:") {
            return if is_plugin_name(name) {
                Ok(Self::Plugin(name.to_owned()))
            } else {
                Err(RequireError::PluginName(name.to_owned()))
            };
        }
        NAMES
            .into_iter()
            .find_map(|(name, requirement)| (name == text).then_some(requirement))
            .ok_or_else(|| RequireError::Unknown(text.to_owned()))
    }
}

/// `[a-z0-9-]{1,32}`, as plugins are declared.
pub(crate) fn is_plugin_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(name) => write!(f, "plugin:{name}"),
            Self::Policy(rule) => write!(f, "policy:{rule}"),
            other => {
                let name = NAMES
                    .into_iter()
                    .find_map(|(name, requirement)| (requirement == *other).then_some(name));
                f.write_str(name.unwrap_or_default())
            }
        }
    }
}

impl Serialize for Requirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns why a requirement is not met; rules of a policy file are judged with the file.
pub(crate) fn missing(requirement: &Requirement, outcome: &Outcome) -> Option<String> {
    let by_check = |name| check_missing(name, outcome.check(name));
    match requirement {
        Requirement::Signature => by_check(CheckName::Signature),
        Requirement::Timestamp => by_check(CheckName::Timestamp),
        Requirement::Recompute => by_check(CheckName::Recompute),
        Requirement::Linkage => by_check(CheckName::ChainLinkage),
        Requirement::Trust => {
            Some("trust material is none; a current trust bundle is required".to_owned())
        }
        Requirement::Success => not_successful(outcome.execution),
        Requirement::Plugins => plugins_missing(&outcome.plugins),
        Requirement::Plugin(name) => plugin_missing(name, &outcome.plugins),
        Requirement::Policy(_) => None,
    }
}

pub(crate) fn linkage_missing(check: Option<&Check>) -> Option<String> {
    check_missing(CheckName::ChainLinkage, check)
}

pub(crate) fn check_missing(name: CheckName, check: Option<&Check>) -> Option<String> {
    let Some(check) = check else {
        return Some(format!("no {name} check on this surface"));
    };
    match check.status {
        Status::Pass => None,
        Status::Fail => Some(format!("{name} check failed: {}", check.detail)),
        Status::Skipped => Some(format!("{name} check not performed: {}", check.detail)),
    }
}

pub(crate) fn not_successful(execution: Execution) -> Option<String> {
    match execution {
        Execution::Success => None,
        Execution::Failure(failed) => Some(format!(
            "the receipt records a failure with {failed} failed step(s)"
        )),
        Execution::Unknown => Some("there is no receipt that records an outcome".to_owned()),
    }
}

fn plugins_missing(records: &[PluginSummary]) -> Option<String> {
    if records.is_empty() {
        return Some("the receipt has no record of a plugin".to_owned());
    }
    records.iter().find_map(objection)
}

pub(crate) fn plugin_missing(name: &str, records: &[PluginSummary]) -> Option<String> {
    match records.iter().find(|record| record.name == name) {
        Some(record) => objection(record),
        None => Some(format!("the receipt has no record of a plugin '{name}'")),
    }
}

fn objection(record: &PluginSummary) -> Option<String> {
    let became = match record.decision {
        Decision::Allow | Decision::Warn => return None,
        Decision::Deny => "denied the run",
        Decision::Error => "failed",
        Decision::Skipped => "was never asked",
    };
    Some(format!("plugin '{}' {became}", record.name))
}

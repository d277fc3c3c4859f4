//! The policy: rules over what a run is asked to do and what it did.
//!
//! `docs/reference/attest-policy.md` describes the file. Its keys are closed, so that a misspelt
//! rule is an error and never a rule less.

mod read;

use attest_plugin_protocol::{Decision, Hook, PipelinePayload, Severity};

use crate::pattern::Pattern;

pub use read::PolicyError;

/// Longest policy file in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// Most rules of a policy.
pub const MAX_RULES: usize = 256;

/// What an operator asks of every run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    digest: String,
    pub(crate) rules: Vec<Rule>,
}

/// One rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) decision: Decision,
    pub(crate) severity: Severity,
    /// The author's own words, told with every finding.
    pub(crate) message: Option<String>,
    pub(crate) kind: Kind,
}

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Step(StepRule),
    Command(CommandRule),
    Env(EnvRule),
    Output(OutputRule),
    Duration(DurationRule),
}

/// Steps that have to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepRule {
    pub(crate) required: Vec<Pattern>,
    /// Whether each needs the one before.
    pub(crate) ordered: bool,
    pub(crate) if_unknown: Decision,
}

/// Commands that may run, and commands that may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandRule {
    pub(crate) steps: Selector,
    /// Empty: whatever is not denied.
    pub(crate) allow: Vec<Pattern>,
    pub(crate) deny: Vec<Pattern>,
}

/// Variables that no step may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnvRule {
    pub(crate) steps: Selector,
    pub(crate) forbidden: Vec<Pattern>,
}

/// Outputs that are declared and made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputRule {
    pub(crate) steps: Selector,
    pub(crate) required: Vec<Pattern>,
    pub(crate) if_unknown: Decision,
}

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DurationRule {
    pub(crate) steps: Selector,
    pub(crate) step_secs: Option<u64>,
    pub(crate) total_secs: Option<u64>,
    pub(crate) if_unknown: Decision,
}

/// The steps that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    Every,
    Named(Vec<Pattern>),
}

impl Selector {
    pub(crate) fn has(&self, step: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Named(patterns) => crate::pattern::first(patterns, step).is_some(),
        }
    }
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// It is too long, no TOML, has an unknown key or a value of another form, contradicts itself,
    /// or has no rule. The error has the line.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        read::policy(bytes)
    }

    /// Returns the rules whose `steps` match none of these. In a policy for several pipelines that
    /// is how it should be; where a name is misspelt it is a rule less. A rule about outputs is
    /// broken then, so it is not among them.
    pub(crate) fn idle<'a>(&'a self, pipeline: &PipelinePayload) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| {
            let steps = match &rule.kind {
                Kind::Command(rule) => &rule.steps,
                Kind::Env(rule) => &rule.steps,
                Kind::Duration(rule) => &rule.steps,
                Kind::Step(_) | Kind::Output(_) => return false,
            };
            let found = pipeline.steps.iter().any(|step| steps.has(&step.name));
            *steps != Selector::Every && !found
        })
    }

    /// Returns the BLAKE3 of the file's bytes with `blake3:` in front.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl Kind {
    /// Returns the name of the table.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Step(_) => "step",
            Self::Command(_) => "command",
            Self::Env(_) => "env",
            Self::Output(_) => "output",
            Self::Duration(_) => "duration",
        }
    }

    /// Returns the hooks whose payload says something about the rule.
    pub(crate) fn hooks(&self) -> &'static [Hook] {
        use Hook::{PipelineValidate, ReceiptFinalize, StepPost, StepPre};
        match self {
            Self::Step(_) => &[PipelineValidate, ReceiptFinalize],
            Self::Command(_) => &[PipelineValidate, StepPre],
            Self::Env(_) => &[PipelineValidate],
            Self::Output(_) => &[PipelineValidate, StepPre, ReceiptFinalize],
            Self::Duration(rule) if rule.step_secs.is_none() => &[ReceiptFinalize],
            Self::Duration(_) => &[StepPost, ReceiptFinalize],
        }
    }
}

#[cfg(test)]
mod tests;

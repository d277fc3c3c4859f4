//! Evidence: bounded records that bind what a Worker did to one attempt, without any raw output.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bounded::GitSha;
use serde::{Serialize, Serializer};
use strict_json::{Element, FieldError, Fields, Layout, Limits, parse_object, to_forge_frame};

use crate::{CodingTask, DomainError, EvidenceId, ExecutionLimits, Refused};

/// Most records of a batch, and of an attempt.
pub const MAX_RECORDS: usize = 34;
/// Longest encoded batch.
pub const MAX_BATCH_BYTES: usize = 96 * 1024;
/// The only text that an output may have.
pub const REDACTED: &str = "[REDACTED]";

/// Time that a record may be longer than its limit: ending a process takes a moment.
const GRACE: Duration = Duration::from_secs(1);
/// Most git commands that a phase of git work may be made of.
const GIT_COMMANDS_PER_PHASE: u32 = 16;

macro_rules! names {
    ($(#[$doc:meta])* $type:ident, $field:literal { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant,)+ }

        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = DomainError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == text)
                    .ok_or_else(|| DomainError::rule($field, "is unknown"))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

names! {
    /// The part of an attempt that a record is about.
    Phase, "phase" {
        /// Acceptance of the task and making of the workspace.
        Preparation = "preparation",
        /// The plugin's session.
        Plugin = "plugin",
        /// What the plugin left in the workspace.
        WorkspaceValidation = "workspace_validation",
        /// One declared check.
        ScopedCheck = "scoped_check",
        /// Making of the candidate.
        CandidateCommit = "candidate_commit",
        /// Removal of the workspace.
        Cleanup = "cleanup",
    }
}

names! {
    /// What happened; each belongs to one phase.
    Reason, "reason" {
        /// The workspace could not be prepared.
        PreparationFailed = "preparation_failed",
        /// The task cannot be taken.
        InvalidTask = "invalid_task",
        /// The repository cannot be used.
        InvalidRepository = "invalid_repository",
        /// The private directories could not be made.
        RuntimeSetupFailed = "runtime_setup_failed",
        /// The worktree could not be made.
        WorktreeSetupFailed = "worktree_setup_failed",
        /// The plugin failed in a way that no other reason names.
        PluginFailed = "plugin_failed",
        /// The plugin could not be started.
        PluginStartFailed = "plugin_start_failed",
        /// The plugin broke the protocol, was cancelled or ran out of time.
        PluginProtocolFailed = "plugin_protocol_failed",
        /// The plugin reported a failure.
        PluginReportedFailure = "plugin_reported_failure",
        /// The plugin changed nothing.
        NoChanges = "no_changes",
        /// The plugin changed what it must not.
        InvalidWorkspaceChange = "invalid_workspace_change",
        /// A check passed.
        ScopedCheckPassed = "scoped_check_passed",
        /// A check failed.
        ScopedCheckFailed = "scoped_check_failed",
        /// A check ran out of time.
        ScopedCheckTimeout = "scoped_check_timeout",
        /// The candidate could not be made.
        CandidateCommitFailed = "candidate_commit_failed",
        /// The workspace could not be removed.
        CleanupFailed = "cleanup_failed",
    }
}

impl Reason {
    /// Returns the phase that the reason belongs to.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::PreparationFailed
            | Self::InvalidTask
            | Self::InvalidRepository
            | Self::RuntimeSetupFailed
            | Self::WorktreeSetupFailed => Phase::Preparation,
            Self::PluginFailed
            | Self::PluginStartFailed
            | Self::PluginProtocolFailed
            | Self::PluginReportedFailure => Phase::Plugin,
            Self::NoChanges | Self::InvalidWorkspaceChange => Phase::WorkspaceValidation,
            Self::ScopedCheckPassed | Self::ScopedCheckFailed | Self::ScopedCheckTimeout => {
                Phase::ScopedCheck
            }
            Self::CandidateCommitFailed => Phase::CandidateCommit,
            Self::CleanupFailed => Phase::Cleanup,
        }
    }
}

/// What is said of an output: that there was none, or that there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Nothing was printed, or nothing is said.
    Empty,
    /// Something was printed and is not kept.
    Redacted {
        /// More was printed than the limit allows.
        truncated: bool,
    },
}

/// One record. Serializes to its canonical form, which is the form of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceRecord {
    /// Names the record within its attempt; a repeat of the same record is harmless.
    pub evidence_id: EvidenceId,
    /// What happened, and with it the phase.
    pub reason: Reason,
    /// Index of the declared check; there exactly for checks.
    pub check_index: Option<u16>,
    /// Exit code of the check, if it is known.
    pub exit_code: Option<u8>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What is said of the output.
    pub output: Output,
    /// The base of the task.
    pub base_sha: GitSha,
    /// The candidate that the record speaks of.
    pub candidate_sha: Option<GitSha>,
}

impl EvidenceRecord {
    /// Decodes one record and applies the rules that need no context.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let evidence_id = fields.parse("evidence_id")?;
        let phase: Phase = fields.parse("phase")?;
        let reason: Reason = fields.parse("reason")?;
        if reason.phase() != phase {
            let rule = format!("does not belong to the phase `{phase}`");
            return Err(FieldError::invalid(fields.path_of("reason"), rule));
        }
        let check_index = small(&mut fields, "check_index")?;
        let exit_code = small(&mut fields, "exit_code")?;
        let duration_ms = fields.u64("duration_ms")?;
        let output = decode_output(&mut fields)?;
        let base_sha = fields.parse("base_sha")?;
        let candidate_sha = fields.opt_parse("candidate_sha")?;
        let is_check = phase == Phase::ScopedCheck;
        if check_index.is_some() != is_check {
            let rule = "must be there for a check, and only for a check";
            return Err(FieldError::invalid(fields.path_of("check_index"), rule));
        }
        if exit_code.is_some() && !is_check {
            return Err(FieldError::invalid(
                fields.path_of("exit_code"),
                "is for checks only",
            ));
        }
        let unsuccessful = matches!(
            reason,
            Reason::ScopedCheckFailed | Reason::ScopedCheckTimeout
        );
        if unsuccessful && candidate_sha.is_some() {
            let rule = "must be absent where a check did not pass";
            return Err(FieldError::invalid(fields.path_of("candidate_sha"), rule));
        }
        fields.end()?;
        Ok(Self {
            evidence_id,
            reason,
            check_index,
            exit_code,
            duration_ms,
            output,
            base_sha,
            candidate_sha,
        })
    }

    /// Reads a canonical form back and refuses every other spelling of the same record.
    ///
    /// # Errors
    /// The text is not the canonical form of a record.
    pub fn from_canonical(text: &str) -> Result<Self, DomainError> {
        let limits = Limits {
            bytes: MAX_BATCH_BYTES,
            depth: 2,
        };
        let object = parse_object(text.as_bytes(), &limits, Layout::Compact)?;
        let record = Self::from_fields(object.fields("evidence"))?;
        if record.canonical() != text {
            return Err(DomainError::rule("evidence", "must be in canonical form"));
        }
        Ok(record)
    }

    /// Returns the phase.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.reason.phase()
    }

    /// Returns the canonical form.
    #[must_use]
    pub fn canonical(&self) -> String {
        String::from_utf8_lossy(&to_forge_frame(self)).into_owned()
    }
}

impl Serialize for EvidenceRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (output, truncated) = match self.output {
            Output::Empty => (None, false),
            Output::Redacted { truncated } => (Some(REDACTED), truncated),
        };
        WireRecord {
            evidence_id: &self.evidence_id,
            phase: self.phase(),
            reason: self.reason,
            check_index: self.check_index,
            exit_code: self.exit_code,
            duration_ms: self.duration_ms,
            output,
            output_redacted: output.is_some(),
            output_truncated: truncated,
            base_sha: &self.base_sha,
            candidate_sha: self.candidate_sha.as_ref(),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct WireRecord<'a> {
    evidence_id: &'a EvidenceId,
    phase: Phase,
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_index: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_redacted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_truncated: bool,
    base_sha: &'a GitSha,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a GitSha>,
}

/// What a batch is judged against.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceContext<'a> {
    /// The task of the attempt.
    pub task: &'a CodingTask,
    /// The limits of the attempt's own policy.
    pub limits: &'a ExecutionLimits,
}

/// 1 to 34 records that arrive together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EvidenceBatch(Vec<EvidenceRecord>);

impl EvidenceBatch {
    /// Makes a batch of 1 to [`MAX_RECORDS`] records with an id each.
    ///
    /// # Errors
    /// The batch is empty, too long, too large, or names a record twice.
    pub fn new(records: Vec<EvidenceRecord>) -> Result<Self, DomainError> {
        if records.is_empty() || records.len() > MAX_RECORDS {
            return Err(DomainError::rule(
                "evidence",
                format!("must hold 1 to {MAX_RECORDS} records"),
            ));
        }
        let ids: std::collections::BTreeSet<&EvidenceId> =
            records.iter().map(|record| &record.evidence_id).collect();
        if ids.len() != records.len() {
            return Err(DomainError::rule("evidence", "must name each record once"));
        }
        let batch = Self(records);
        if to_forge_frame(&batch).len() > MAX_BATCH_BYTES {
            return Err(DomainError::rule(
                "evidence",
                format!("must be at most {MAX_BATCH_BYTES} bytes"),
            ));
        }
        Ok(batch)
    }

    /// Decodes the array of an evidence message; `path` is its name in messages.
    ///
    /// # Errors
    /// Names the record and field that break a rule.
    pub fn from_elements(path: &str, elements: Vec<Element>) -> Result<Self, FieldError> {
        let records = elements
            .into_iter()
            .map(|element| EvidenceRecord::from_fields(element.object()?))
            .collect::<Result<_, _>>()?;
        Self::new(records).map_err(|error| FieldError::invalid(path, error.to_string()))
    }

    /// Applies the rules that need the task and the policy of the attempt.
    ///
    /// # Errors
    /// Names the record and what it breaks.
    pub fn check(&self, context: &EvidenceContext<'_>) -> Result<(), DomainError> {
        for (index, record) in self.0.iter().enumerate() {
            let broken = |field: &str, rule: &str| {
                DomainError::rule(format!("evidence[{index}].{field}"), rule)
            };
            if record.base_sha != *context.task.base_sha() {
                return Err(broken("base_sha", "must be the base of the task"));
            }
            let checks = context.task.tests().len();
            if record
                .check_index
                .is_some_and(|check| usize::from(check) >= checks)
            {
                return Err(broken(
                    "check_index",
                    "must be below the number of declared checks",
                ));
            }
            if u128::from(record.duration_ms) > longest(record.phase(), context.limits).as_millis()
            {
                return Err(broken(
                    "duration_ms",
                    "is longer than the policy of the attempt allows",
                ));
            }
        }
        Ok(())
    }

    /// Returns the records.
    #[must_use]
    pub fn records(&self) -> &[EvidenceRecord] {
        &self.0
    }
}

/// Tells whether stored evidence lets a candidate be accepted: none names another commit, and
/// every check names this one.
///
/// # Errors
/// A record disagrees.
pub fn agrees_with_candidate<'a>(
    records: impl IntoIterator<Item = &'a EvidenceRecord>,
    candidate: &GitSha,
) -> Result<(), Refused> {
    let disagrees = |record: &EvidenceRecord| match &record.candidate_sha {
        Some(named) => named != candidate,
        None => record.phase() == Phase::ScopedCheck,
    };
    if records.into_iter().any(disagrees) {
        return Err(Refused::EvidenceDisagrees);
    }
    Ok(())
}

/// Returns the longest honest duration of a phase under a policy.
///
/// Phases of git work are several commands with a limit each, so theirs is the larger of the
/// plugin's limit and a fixed number of git limits.
fn longest(phase: Phase, limits: &ExecutionLimits) -> Duration {
    let limit = match phase {
        Phase::ScopedCheck => limits.check_timeout,
        Phase::Cleanup => limits.cleanup_timeout,
        Phase::Plugin => limits.plugin_timeout,
        Phase::Preparation | Phase::WorkspaceValidation | Phase::CandidateCommit => limits
            .plugin_timeout
            .max(limits.git_timeout.saturating_mul(GIT_COMMANDS_PER_PHASE)),
    };
    limit.saturating_add(GRACE)
}

fn small<T: TryFrom<u64>>(fields: &mut Fields, name: &str) -> Result<Option<T>, FieldError> {
    let Some(value) = fields.opt_u64(name)? else {
        return Ok(None);
    };
    T::try_from(value)
        .map(Some)
        .map_err(|_| FieldError::invalid(fields.path_of(name), "is too large"))
}

fn decode_output(fields: &mut Fields) -> Result<Output, FieldError> {
    let output = fields.opt_text("output")?.unwrap_or_default();
    let redacted = fields.opt_bool("output_redacted")?.unwrap_or_default();
    let truncated = fields.opt_bool("output_truncated")?.unwrap_or_default();
    match (output.as_str(), redacted) {
        ("", false) if !truncated => Ok(Output::Empty),
        (REDACTED, true) => Ok(Output::Redacted { truncated }),
        _ => {
            let rule = "must be empty without flags, or `[REDACTED]` with `output_redacted`";
            Err(FieldError::invalid(fields.path_of("output"), rule))
        }
    }
}

#[cfg(test)]
mod tests;

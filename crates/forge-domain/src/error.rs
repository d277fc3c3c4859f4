//! Why a record was not accepted, and why a machine refused an edge.

use strict_json::{FieldError, JsonError};

use crate::{AttemptStatus, JobStatus};

/// A value from outside breaks a rule of its record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// A field is absent, unknown or of the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The text is not the strict JSON that it must be.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field has the right type and breaks a rule.
    #[error("`{field}` {rule}")]
    Rule {
        /// The field, by its name on the wire.
        field: String,
        /// What it must be, as the rest of a sentence.
        rule: String,
    },
}

impl DomainError {
    /// Names a field and the rule that it breaks.
    pub(crate) fn rule(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Rule {
            field: field.into(),
            rule: rule.into(),
        }
    }
}

/// A machine refuses to take an edge; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The edge does not exist from this state.
    #[error("a job that is `{from}` cannot {edge}")]
    IllegalEdge {
        /// The state that the job is in.
        from: JobStatus,
        /// What was asked for, as the rest of a sentence.
        edge: &'static str,
    },
    /// The attempt is not the live one of its job.
    #[error("the attempt is not the live attempt of its job")]
    Superseded,
    /// Another session holds the lease.
    #[error("another session holds the lease")]
    Fenced,
    /// The lease is over.
    #[error("the deadline of the lease has passed")]
    DeadlinePassed,
    /// The lease still runs.
    #[error("the deadline of the lease has not passed")]
    NotExpired,
    /// The time of the next attempt has not come.
    #[error("the next attempt is not due")]
    NotDue,
    /// The attempt ended with another result.
    #[error("the attempt is `{status}` with another result, which is immutable")]
    Immutable {
        /// How the attempt ended.
        status: AttemptStatus,
    },
    /// A text job got a candidate, or a coding job a text.
    #[error("a {kind} job does not accept this kind of result")]
    WrongKind {
        /// The kind of the job.
        kind: crate::JobKind,
    },
    /// Stored evidence speaks of another candidate.
    #[error("stored evidence does not agree with this candidate")]
    EvidenceDisagrees,
    /// The stored parts of a run do not fit together.
    #[error("the run is inconsistent: {0}")]
    Inconsistent(&'static str),
}

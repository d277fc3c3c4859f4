//! How an operation ends: a result of its kind, or a failure category.

use std::fmt;
use std::str::FromStr;

use bounded::{BoundError, CommitSubject, ReportText};

use crate::Output;
use crate::capability::Capability;
use crate::limits::{REPORT_CHANGE_BYTES, REPORT_CHANGES, REPORT_SUMMARY_BYTES};

/// What a successful operation brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The output of a `text` operation.
    Text(Output),
    /// The end of a `workspace_edit` operation; the edit itself is in the workspace.
    Workspace {
        /// A proposal for the subject of the commit.
        subject: Option<CommitSubject>,
        /// What the plugin says about its own work. Nothing in it is checked by anybody.
        report: Option<Report>,
    },
}

impl Outcome {
    /// Returns the capability of the operation that ends like this.
    pub fn operation(&self) -> Capability {
        match self {
            Self::Text(_) => Capability::Text,
            Self::Workspace { .. } => Capability::WorkspaceEdit,
        }
    }
}

/// A plugin's own account of an edit: one summary and 1 to 12 changes, each one trimmed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    summary: ReportText<REPORT_SUMMARY_BYTES>,
    changes: Vec<ReportText<REPORT_CHANGE_BYTES>>,
}

impl Report {
    /// Checks both parts.
    pub fn new(
        summary: impl Into<String>,
        changes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidReport> {
        let summary = ReportText::new(summary).map_err(InvalidReport::Summary)?;
        let mut checked = Vec::new();
        for (index, change) in changes.into_iter().enumerate() {
            // The count is checked while reading, so that a long list costs nothing.
            if index == REPORT_CHANGES {
                return Err(InvalidReport::ChangeCount);
            }
            let change = ReportText::new(change);
            checked.push(change.map_err(|error| InvalidReport::Change { index, error })?);
        }
        if checked.is_empty() {
            return Err(InvalidReport::ChangeCount);
        }
        Ok(Self {
            summary,
            changes: checked,
        })
    }

    /// Returns the summary.
    pub fn summary(&self) -> &str {
        self.summary.as_str()
    }

    /// Iterates over the changes.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.changes.iter().map(ReportText::as_str)
    }
}

/// Says why a report is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReport {
    /// The summary breaks a rule.
    #[error("summary {0}")]
    Summary(BoundError),
    /// A change breaks a rule.
    #[error("changes[{index}] {error}")]
    Change {
        /// Position of the change, from 0.
        index: usize,
        /// The rule.
        error: BoundError,
    },
    /// No change at all, or too many.
    #[error("changes must have 1 to 12 entries")]
    ChangeCount,
}

/// Why a plugin could not do what it was asked. The host owns what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureCategory {
    /// The request makes no sense to the plugin.
    InvalidRequest,
    /// The plugin cannot do such a request in principle.
    Incompatible,
    /// The plugin tried and failed.
    ExecutionFailed,
    /// The plugin stopped because the host asked for it.
    Cancelled,
}

impl FailureCategory {
    /// All categories, in the order of the protocol.
    pub const ALL: [Self; 4] = [
        Self::InvalidRequest,
        Self::Incompatible,
        Self::ExecutionFailed,
        Self::Cancelled,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Incompatible => "incompatible",
            Self::ExecutionFailed => "execution_failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for FailureCategory {
    type Err = UnknownCategory;

    fn from_str(text: &str) -> Result<Self, UnknownCategory> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str() == text)
            .ok_or(UnknownCategory)
    }
}

/// Says that a failure category is none of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is none of invalid_request, incompatible, execution_failed, cancelled")]
pub struct UnknownCategory;

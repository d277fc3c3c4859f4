//! How a Worker ends an attempt.

use std::fmt;
use std::str::FromStr;

use bounded::GitSha;
use serde::Serialize;

use crate::{AgentReport, DomainError};

/// Why a job failed, as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The Worker cannot take the task.
    InvalidTask,
    /// A declared check failed.
    ScopedTestFailed,
    /// The attempt failed, another one may not.
    ExecutionFailed,
    /// No attempt is left.
    MaxAttemptsExceeded,
    /// The owner cancelled the job.
    Cancelled,
}

impl FailureCode {
    const ALL: [Self; 5] = [
        Self::InvalidTask,
        Self::ScopedTestFailed,
        Self::ExecutionFailed,
        Self::MaxAttemptsExceeded,
        Self::Cancelled,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidTask => "invalid_task",
            Self::ScopedTestFailed => "scoped_test_failed",
            Self::ExecutionFailed => "execution_failed",
            Self::MaxAttemptsExceeded => "max_attempts_exceeded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for FailureCode {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
            .ok_or_else(|| DomainError::rule("failure_code", "is unknown"))
    }
}

/// Whether another attempt may follow a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// No attempt follows.
    Terminal,
    /// An attempt follows if one is left.
    Retryable,
}

impl Disposition {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Retryable => "retryable",
        }
    }
}

impl fmt::Display for Disposition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Disposition {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "terminal" => Ok(Self::Terminal),
            "retryable" => Ok(Self::Retryable),
            _ => Err(DomainError::rule(
                "disposition",
                "must be `terminal` or `retryable`",
            )),
        }
    }
}

/// A failure that a Worker may report; the disposition follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerFailure {
    /// The Worker cannot take the task.
    InvalidTask,
    /// A declared check failed.
    ScopedTestFailed,
    /// Anything else went wrong.
    ExecutionFailed,
}

impl WorkerFailure {
    /// Returns the code of the failure.
    #[must_use]
    pub const fn code(self) -> FailureCode {
        match self {
            Self::InvalidTask => FailureCode::InvalidTask,
            Self::ScopedTestFailed => FailureCode::ScopedTestFailed,
            Self::ExecutionFailed => FailureCode::ExecutionFailed,
        }
    }

    /// Returns whether another attempt may follow.
    #[must_use]
    pub const fn disposition(self) -> Disposition {
        match self {
            Self::InvalidTask | Self::ScopedTestFailed => Disposition::Terminal,
            Self::ExecutionFailed => Disposition::Retryable,
        }
    }
}

impl fmt::Display for WorkerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code().fmt(formatter)
    }
}

impl FromStr for WorkerFailure {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [
            Self::InvalidTask,
            Self::ScopedTestFailed,
            Self::ExecutionFailed,
        ]
        .into_iter()
        .find(|failure| failure.code().as_str() == text)
        .ok_or_else(|| {
            DomainError::rule(
                "error",
                "must be invalid_task, scoped_test_failed or execution_failed",
            )
        })
    }
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// A text job answered; the text may be empty.
    Text {
        /// The output of the plugin.
        result: String,
    },
    /// A coding job made a candidate commit.
    Candidate {
        /// The commit.
        sha: GitSha,
        /// What the plugin says about it.
        report: Option<AgentReport>,
    },
    /// The attempt failed.
    Failed(WorkerFailure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_reports_three_failures_and_no_other() {
        for (name, disposition) in [
            ("invalid_task", "terminal"),
            ("scoped_test_failed", "terminal"),
            ("execution_failed", "retryable"),
        ] {
            let failure: WorkerFailure = name.parse().unwrap();
            assert_eq!(
                (failure.to_string().as_str(), failure.disposition().as_str()),
                (name, disposition)
            );
        }
        for name in [
            "",
            "max_attempts_exceeded",
            "cancelled",
            "delivery_failed",
            "Invalid_task",
        ] {
            assert!(name.parse::<WorkerFailure>().is_err(), "{name}");
        }
    }

    #[test]
    fn codes_round_trip() {
        for code in FailureCode::ALL {
            assert_eq!(code.as_str().parse::<FailureCode>().unwrap(), code);
        }
        assert!("unknown".parse::<FailureCode>().is_err());
    }
}

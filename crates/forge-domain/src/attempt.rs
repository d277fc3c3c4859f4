//! One attempt: live while a slot holds its lease, then finished for good.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bounded::GitSha;
use jiff::Timestamp;
use serde::Serialize;

use crate::lease::{after, extended_deadline};
use crate::{
    AgentReport, AttemptId, Completion, Disposition, DomainError, FailureCode, Generation, Refused,
    SlotId, WorkerFailure,
};

/// The name of an attempt's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// A slot holds the lease.
    Leased,
    /// The Worker delivered a result.
    Succeeded,
    /// The Worker reported a failure that ends the job.
    TerminalFailed,
    /// The Worker reported a failure that another attempt may mend.
    RetryableFailed,
    /// The lease ran out.
    Expired,
    /// The owner cancelled the job.
    Cancelled,
}

impl AttemptStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Leased,
        Self::Succeeded,
        Self::TerminalFailed,
        Self::RetryableFailed,
        Self::Expired,
        Self::Cancelled,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Succeeded => "succeeded",
            Self::TerminalFailed => "terminal_failed",
            Self::RetryableFailed => "retryable_failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for AttemptStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for AttemptStatus {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| DomainError::rule("status", "is not the status of an attempt"))
    }
}

/// An attempt whose lease a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveAttempt {
    pub(crate) id: AttemptId,
    pub(crate) ordinal: u16,
    pub(crate) slot: SlotId,
    pub(crate) generation: Generation,
    pub(crate) leased_at: Timestamp,
    pub(crate) deadline: Timestamp,
}

impl LiveAttempt {
    /// Rebuilds an attempt from what a store kept of it.
    ///
    /// # Errors
    /// The ordinal is 0.
    pub fn restore(
        id: AttemptId,
        ordinal: u16,
        slot: SlotId,
        generation: Generation,
        leased_at: Timestamp,
        deadline: Timestamp,
    ) -> Result<Self, Refused> {
        if ordinal == 0 {
            return Err(Refused::Inconsistent("an attempt has the ordinal 0"));
        }
        Ok(Self {
            id,
            ordinal,
            slot,
            generation,
            leased_at,
            deadline,
        })
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> &AttemptId {
        &self.id
    }

    /// Returns the ordinal within the job, from 1.
    #[must_use]
    pub const fn ordinal(&self) -> u16 {
        self.ordinal
    }

    /// Returns the slot that holds the lease.
    #[must_use]
    pub const fn slot(&self) -> &SlotId {
        &self.slot
    }

    /// Returns the session that holds the lease.
    #[must_use]
    pub const fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Returns when the lease was granted.
    #[must_use]
    pub const fn leased_at(&self) -> Timestamp {
        self.leased_at
    }

    /// Returns when the lease ends, unless a heartbeat comes before.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        self.deadline
    }

    pub(crate) fn extend(&mut self, now: Timestamp, ttl: Duration) {
        self.deadline = extended_deadline(self.deadline, now, ttl);
    }

    /// A clock that was set back while nobody served must not make a lease immortal.
    pub(crate) fn clamp(&mut self, now: Timestamp, ttl: Duration) -> bool {
        let latest = after(now, ttl);
        let changes = self.deadline > latest;
        if changes {
            self.deadline = latest;
        }
        changes
    }

    pub(crate) fn finish(self, end: AttemptEnd, now: Timestamp) -> FinishedAttempt {
        FinishedAttempt {
            id: self.id,
            ordinal: self.ordinal,
            end,
            completed_at: now.max(self.leased_at),
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// A text job answered.
    Text {
        /// The output of the plugin.
        result: String,
    },
    /// A coding job made a candidate.
    Candidate {
        /// The commit.
        sha: GitSha,
        /// What the plugin says about it.
        report: Option<AgentReport>,
    },
    /// The Worker reported a failure.
    Failed(WorkerFailure),
    /// The lease ran out.
    Expired,
    /// The owner cancelled the job.
    Cancelled,
}

impl AttemptEnd {
    /// Returns the name of the state.
    #[must_use]
    pub const fn status(&self) -> AttemptStatus {
        match self {
            Self::Text { .. } | Self::Candidate { .. } => AttemptStatus::Succeeded,
            Self::Failed(failure) => match failure.disposition() {
                Disposition::Terminal => AttemptStatus::TerminalFailed,
                Disposition::Retryable => AttemptStatus::RetryableFailed,
            },
            Self::Expired => AttemptStatus::Expired,
            Self::Cancelled => AttemptStatus::Cancelled,
        }
    }

    /// Returns the code and disposition of a failure that is recorded with the attempt.
    #[must_use]
    pub const fn failure(&self) -> Option<(FailureCode, Disposition)> {
        match self {
            Self::Text { .. } | Self::Candidate { .. } | Self::Expired => None,
            Self::Failed(failure) => Some((failure.code(), failure.disposition())),
            Self::Cancelled => Some((FailureCode::Cancelled, Disposition::Terminal)),
        }
    }

    /// Accepts the identical result again, and no other: what is terminal is immutable.
    ///
    /// # Errors
    /// The attempt ended in another way.
    pub fn repeats(&self, completion: &Completion) -> Result<(), Refused> {
        if Self::from(completion.clone()) == *self {
            Ok(())
        } else {
            Err(Refused::Immutable {
                status: self.status(),
            })
        }
    }
}

impl From<Completion> for AttemptEnd {
    fn from(completion: Completion) -> Self {
        match completion {
            Completion::Text { result } => Self::Text { result },
            Completion::Candidate { sha, report } => Self::Candidate { sha, report },
            Completion::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// An attempt that ended; it has no method that changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedAttempt {
    id: AttemptId,
    ordinal: u16,
    end: AttemptEnd,
    completed_at: Timestamp,
}

impl FinishedAttempt {
    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> &AttemptId {
        &self.id
    }

    /// Returns the ordinal within the job, from 1.
    #[must_use]
    pub const fn ordinal(&self) -> u16 {
        self.ordinal
    }

    /// Returns how it ended.
    #[must_use]
    pub const fn end(&self) -> &AttemptEnd {
        &self.end
    }

    /// Returns when it ended.
    #[must_use]
    pub const fn completed_at(&self) -> Timestamp {
        self.completed_at
    }
}

/// The state of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// A slot holds its lease.
    Live(LiveAttempt),
    /// It ended.
    Finished(FinishedAttempt),
}

impl AttemptState {
    /// Returns the name of the state.
    #[must_use]
    pub const fn status(&self) -> AttemptStatus {
        match self {
            Self::Live(_) => AttemptStatus::Leased,
            Self::Finished(attempt) => attempt.end.status(),
        }
    }
}

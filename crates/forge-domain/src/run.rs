//! A run: one job and its attempts as one machine.
//!
//! The live attempt is inside the state [`JobState::Leased`], so a second one cannot exist. A
//! transition consumes the run and returns a [`Step`]: the run after it, the attempt that it
//! ended, and the journal entries. What a transition refuses has no effect.

mod hand_over;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bounded::GitSha;
use jiff::Timestamp;
use serde::Serialize;

use crate::lease::after;
use crate::{
    AttemptEnd, AttemptId, Completion, Disposition, DomainError, Event, FailureCode,
    FinishedAttempt, Generation, JobKind, LiveAttempt, Refused, ResolvedPolicy, RetryRule, SlotId,
};

/// The name of a job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waits for its first attempt.
    Pending,
    /// An attempt is live.
    Leased,
    /// Waits for its next attempt.
    RetryWait,
    /// Has its result.
    Succeeded,
    /// Has failed.
    Failed,
    /// Its owner cancelled it.
    Cancelled,
}

impl JobStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Leased,
        Self::RetryWait,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::RetryWait => "retry_wait",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Tells whether nothing can change any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for JobStatus {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| DomainError::rule("status", "is not the status of a job"))
    }
}

/// The state of a job, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Waits for its first attempt.
    Pending,
    /// An attempt is live.
    Leased(LiveAttempt),
    /// Waits for its next attempt.
    RetryWait {
        /// When the next attempt is due; written once, when the last one ended.
        retry_at: Timestamp,
    },
    /// Has its result.
    Succeeded {
        /// The candidate of a coding job.
        candidate: Option<GitSha>,
    },
    /// Has failed.
    Failed {
        /// Why.
        code: FailureCode,
    },
    /// Its owner cancelled it.
    Cancelled,
}

impl JobState {
    /// Returns the name of the state.
    #[must_use]
    pub const fn status(&self) -> JobStatus {
        match self {
            Self::Pending => JobStatus::Pending,
            Self::Leased(_) => JobStatus::Leased,
            Self::RetryWait { .. } => JobStatus::RetryWait,
            Self::Succeeded { .. } => JobStatus::Succeeded,
            Self::Failed { .. } => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }

    /// Returns why the job failed, for jobs that did.
    #[must_use]
    pub const fn failure(&self) -> Option<FailureCode> {
        match self {
            Self::Failed { code } => Some(*code),
            Self::Cancelled => Some(FailureCode::Cancelled),
            Self::Pending | Self::Leased(_) | Self::RetryWait { .. } | Self::Succeeded { .. } => {
                None
            }
        }
    }
}

/// A slot that takes a job, and the id that its attempt will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Id of the new attempt.
    pub attempt: AttemptId,
    /// The slot.
    pub slot: SlotId,
    /// The live session of the slot.
    pub generation: Generation,
}

/// Who speaks for an attempt: a message counts only from the session that holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The attempt.
    pub attempt: AttemptId,
    /// The slot that the message came through.
    pub slot: SlotId,
    /// The session that the message came through.
    pub generation: Generation,
}

/// What a transition did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The run after it.
    pub run: Run,
    /// The attempt that it ended.
    pub finished: Option<FinishedAttempt>,
    /// Entries for the journal, in order.
    pub events: Vec<Event>,
}

/// One job with its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    kind: JobKind,
    lease_ttl: Duration,
    retry: RetryRule,
    attempts: u16,
    state: JobState,
}

impl Run {
    /// Starts the run of a job that has just been accepted.
    #[must_use]
    pub fn submit(kind: JobKind, policy: &ResolvedPolicy) -> Step {
        let run = Self {
            kind,
            lease_ttl: policy.lease_ttl(),
            retry: policy.retry_rule(),
            attempts: 0,
            state: JobState::Pending,
        };
        Step {
            run,
            finished: None,
            events: vec![Event::Submitted],
        }
    }

    /// Rebuilds a run from what a store kept of it; `attempts` counts the live one too.
    ///
    /// # Errors
    /// State and number of attempts do not fit together.
    pub fn restore(
        kind: JobKind,
        policy: &ResolvedPolicy,
        attempts: u16,
        state: JobState,
    ) -> Result<Self, Refused> {
        let most = policy.max_attempts();
        let fits = match &state {
            JobState::Pending => attempts == 0,
            JobState::Leased(live) => live.ordinal == attempts && attempts <= most,
            JobState::RetryWait { .. } => (1..most).contains(&attempts),
            JobState::Succeeded { candidate } => {
                (1..=most).contains(&attempts) && candidate.is_some() == (kind == JobKind::Coding)
            }
            JobState::Failed { .. } => (1..=most).contains(&attempts),
            JobState::Cancelled => attempts <= most,
        };
        if !fits {
            return Err(Refused::Inconsistent(
                "its state and its number of attempts do not fit together",
            ));
        }
        Ok(Self {
            kind,
            lease_ttl: policy.lease_ttl(),
            retry: policy.retry_rule(),
            attempts,
            state,
        })
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> &JobState {
        &self.state
    }

    /// Returns the name of the state.
    #[must_use]
    pub const fn status(&self) -> JobStatus {
        self.state.status()
    }

    /// Returns how many attempts there have been, the live one included.
    #[must_use]
    pub const fn attempts(&self) -> u16 {
        self.attempts
    }

    /// Returns the live attempt.
    #[must_use]
    pub const fn live(&self) -> Option<&LiveAttempt> {
        match &self.state {
            JobState::Leased(live) => Some(live),
            JobState::Pending
            | JobState::RetryWait { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled => None,
        }
    }

    /// Gives the job to a slot: from `pending`, or from `retry_wait` once it is due.
    ///
    /// # Errors
    /// The job is in another state, or not due.
    pub fn lease(self, grant: Grant, now: Timestamp) -> Result<Step, Refused> {
        match &self.state {
            JobState::Pending => {}
            JobState::RetryWait { retry_at } if *retry_at <= now => {}
            JobState::RetryWait { .. } => return Err(Refused::NotDue),
            other => return Err(illegal(other, "be leased")),
        }
        let ordinal = self.attempts.saturating_add(1);
        let lease_expires = after(now, self.lease_ttl);
        let event = Event::Leased {
            attempt: grant.attempt,
            ordinal,
            lease_expires,
        };
        let live = LiveAttempt {
            id: grant.attempt,
            ordinal,
            slot: grant.slot,
            generation: grant.generation,
            leased_at: now,
            deadline: lease_expires,
        };
        let run = Self {
            attempts: ordinal,
            state: JobState::Leased(live),
            ..self
        };
        Ok(Step {
            run,
            finished: None,
            events: vec![event],
        })
    }

    /// Tells whether a message of `holder` counts: it holds the live lease, strictly before the
    /// deadline.
    ///
    /// # Errors
    /// It does not.
    pub fn authorize(&self, holder: &Holder, now: Timestamp) -> Result<&LiveAttempt, Refused> {
        let live = self.live().ok_or(Refused::Superseded)?;
        if live.id != holder.attempt {
            return Err(Refused::Superseded);
        }
        if live.slot != holder.slot || live.generation != holder.generation {
            return Err(Refused::Fenced);
        }
        if now >= live.deadline {
            return Err(Refused::DeadlinePassed);
        }
        Ok(live)
    }

    /// Prolongs the lease to max(its deadline, `now` + TTL).
    ///
    /// # Errors
    /// The message does not count, see [`Run::authorize`].
    pub fn heartbeat(mut self, holder: &Holder, now: Timestamp) -> Result<Self, Refused> {
        self.authorize(holder, now)?;
        if let JobState::Leased(live) = &mut self.state {
            live.extend(now, self.lease_ttl);
        }
        Ok(self)
    }

    /// Ends the live attempt with the Worker's result.
    ///
    /// # Errors
    /// The message does not count, or the result is of the other kind of job.
    pub fn complete(
        self,
        holder: &Holder,
        completion: Completion,
        now: Timestamp,
    ) -> Result<Step, Refused> {
        self.authorize(holder, now)?;
        let fits = match &completion {
            Completion::Text { .. } => self.kind == JobKind::Legacy,
            Completion::Candidate { .. } => self.kind == JobKind::Coding,
            Completion::Failed(_) => true,
        };
        if !fits {
            return Err(Refused::WrongKind { kind: self.kind });
        }
        self.end(AttemptEnd::from(completion), "end an attempt", now)
    }

    /// Ends the live attempt because its deadline has come; the attempt counts.
    ///
    /// # Errors
    /// No attempt is live, or its deadline lies ahead.
    pub fn expire(self, now: Timestamp) -> Result<Step, Refused> {
        if self.live().is_some_and(|live| now < live.deadline) {
            return Err(Refused::NotExpired);
        }
        self.end(AttemptEnd::Expired, "lose its lease", now)
    }

    /// Ends the job on its owner's wish, whatever it waits for.
    ///
    /// # Errors
    /// The job has ended.
    pub fn cancel(self, now: Timestamp) -> Result<Step, Refused> {
        match &self.state {
            JobState::Pending | JobState::RetryWait { .. } => {
                let run = Self {
                    state: JobState::Cancelled,
                    ..self
                };
                Ok(Step {
                    run,
                    finished: None,
                    events: vec![Event::Cancelled { attempt: None }],
                })
            }
            JobState::Leased(_) => self.end(AttemptEnd::Cancelled, "be cancelled", now),
            other => Err(illegal(other, "be cancelled")),
        }
    }

    /// Makes the next attempt due now.
    ///
    /// # Errors
    /// The job does not wait for another attempt.
    pub fn retry_now(self, now: Timestamp) -> Result<Step, Refused> {
        let JobState::RetryWait { retry_at } = &self.state else {
            return Err(illegal(&self.state, "be retried at once"));
        };
        let retry_at = (*retry_at).min(now);
        let run = Self {
            state: JobState::RetryWait { retry_at },
            ..self
        };
        Ok(Step {
            run,
            finished: None,
            events: vec![Event::RetryRequested { retry_at }],
        })
    }

    /// The one place where a live attempt ends.
    fn end(self, end: AttemptEnd, edge: &'static str, now: Timestamp) -> Result<Step, Refused> {
        let JobState::Leased(live) = self.state else {
            return Err(illegal(&self.state, edge));
        };
        let (id, ordinal) = (live.id, live.ordinal);
        let mut events = Vec::with_capacity(2);
        let state = match &end {
            AttemptEnd::Text { .. } => JobState::Succeeded { candidate: None },
            AttemptEnd::Candidate { sha, .. } => JobState::Succeeded {
                candidate: Some(*sha),
            },
            AttemptEnd::Cancelled => JobState::Cancelled,
            AttemptEnd::Failed(failure) if failure.disposition() == Disposition::Terminal => {
                JobState::Failed {
                    code: failure.code(),
                }
            }
            AttemptEnd::Failed(failure) => {
                events.push(Event::RetryableFailed {
                    attempt: id,
                    ordinal,
                    code: failure.code(),
                });
                retry_or_fail(&self.retry, ordinal, now)
            }
            AttemptEnd::Expired => {
                events.push(Event::LeaseExpired {
                    attempt: id,
                    ordinal,
                    lease_expires: live.deadline,
                });
                retry_or_fail(&self.retry, ordinal, now)
            }
        };
        events.extend(match &state {
            JobState::Succeeded { candidate } => Some(Event::Succeeded {
                candidate: *candidate,
            }),
            JobState::RetryWait { retry_at } => Some(Event::RetryScheduled {
                attempt: id,
                ordinal,
                retry_at: *retry_at,
            }),
            JobState::Failed { code } => {
                let attempt = (*code == FailureCode::MaxAttemptsExceeded).then_some((id, ordinal));
                Some(Event::Failed {
                    attempt,
                    code: *code,
                })
            }
            JobState::Cancelled => Some(Event::Cancelled {
                attempt: Some((id, ordinal)),
            }),
            JobState::Pending | JobState::Leased(_) => None,
        });
        let finished = Some(live.finish(end, now));
        Ok(Step {
            run: Self { state, ..self },
            finished,
            events,
        })
    }
}

fn retry_or_fail(retry: &RetryRule, ordinal: u16, now: Timestamp) -> JobState {
    retry.next(ordinal, now).map_or(
        JobState::Failed {
            code: FailureCode::MaxAttemptsExceeded,
        },
        |retry_at| JobState::RetryWait { retry_at },
    )
}

const fn illegal(from: &JobState, edge: &'static str) -> Refused {
    Refused::IllegalEdge {
        from: from.status(),
        edge,
    }
}

#[cfg(test)]
mod tests;

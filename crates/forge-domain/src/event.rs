//! The journal of a job: what happened, in the words that operators search for.

use bounded::GitSha;
use jiff::Timestamp;

use crate::{AttemptId, Disposition, DomainError, FailureCode, NotAccepting};

/// One entry of the journal; stored as a kind and a detail line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The job was accepted.
    Submitted,
    /// A slot got the lease.
    Leased {
        /// The attempt.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
        /// The first deadline.
        lease_expires: Timestamp,
    },
    /// The lease ran out.
    LeaseExpired {
        /// The attempt.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
        /// The deadline that passed.
        lease_expires: Timestamp,
    },
    /// The Worker reported a failure that another attempt may mend.
    RetryableFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
        /// Why.
        code: FailureCode,
    },
    /// Another attempt will follow.
    RetryScheduled {
        /// The attempt that ended.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
        /// When the next one is due.
        retry_at: Timestamp,
    },
    /// The owner asked for the next attempt now.
    RetryRequested {
        /// When the next one is due.
        retry_at: Timestamp,
    },
    /// The job failed; the attempt is named where its end left no attempt over.
    Failed {
        /// The last attempt and its ordinal.
        attempt: Option<(AttemptId, u16)>,
        /// Why.
        code: FailureCode,
    },
    /// The job succeeded.
    Succeeded {
        /// The candidate of a coding job.
        candidate: Option<GitSha>,
    },
    /// The owner cancelled the job.
    Cancelled {
        /// The attempt that this ended, and its ordinal.
        attempt: Option<(AttemptId, u16)>,
    },
    /// A Worker went on with its attempt over a new connection.
    Reattached {
        /// The attempt.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
    },
    /// A Worker gave back a lease that it had not begun; the attempt costs none.
    Withdrawn {
        /// The attempt.
        attempt: AttemptId,
        /// The ordinal that it had.
        ordinal: u16,
        /// Why the Worker takes no lease.
        reason: NotAccepting,
    },
    /// The Worker says that nothing of a cancelled attempt runs any more.
    Stopped {
        /// The attempt.
        attempt: AttemptId,
        /// Its ordinal.
        ordinal: u16,
    },
}

impl Event {
    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Leased { .. } => "leased",
            Self::LeaseExpired { .. } => "lease_expired",
            Self::RetryableFailed { .. } => "retryable_failed",
            Self::RetryScheduled { .. } => "retry_scheduled",
            Self::RetryRequested { .. } => "retry_requested",
            Self::Failed { .. } => "failed",
            Self::Succeeded { .. } => "succeeded",
            Self::Cancelled { .. } => "cancelled",
            Self::Reattached { .. } => "attempt_reattached",
            Self::Withdrawn { .. } => "attempt_withdrawn",
            Self::Stopped { .. } => "attempt_stopped",
        }
    }

    /// Returns the detail line.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Submitted => "job accepted".to_owned(),
            Self::Leased {
                attempt,
                ordinal,
                lease_expires,
            }
            | Self::LeaseExpired {
                attempt,
                ordinal,
                lease_expires,
            } => {
                format!("attempt={attempt} ordinal={ordinal} lease_expires={lease_expires}")
            }
            Self::RetryableFailed {
                attempt,
                ordinal,
                code,
            } => {
                format!(
                    "attempt={attempt} ordinal={ordinal} disposition=retryable failure_code={code}"
                )
            }
            Self::RetryScheduled {
                attempt,
                ordinal,
                retry_at,
            } => {
                format!("attempt={attempt} ordinal={ordinal} retry_at={retry_at}")
            }
            Self::RetryRequested { retry_at } => format!("retry_at={retry_at}"),
            Self::Failed {
                attempt: None,
                code,
            } => format!("failure_code={code}"),
            Self::Failed {
                attempt: Some((attempt, ordinal)),
                code,
            } => terminal(attempt, *ordinal, *code),
            Self::Succeeded { candidate: None } => "result stored".to_owned(),
            Self::Succeeded {
                candidate: Some(sha),
            } => format!("candidate_sha={sha}"),
            Self::Cancelled { attempt: None } => format!("failure_code={}", FailureCode::Cancelled),
            Self::Cancelled {
                attempt: Some((attempt, ordinal)),
            } => terminal(attempt, *ordinal, FailureCode::Cancelled),
            Self::Reattached { attempt, ordinal } | Self::Stopped { attempt, ordinal } => {
                format!("attempt={attempt} ordinal={ordinal}")
            }
            Self::Withdrawn {
                attempt,
                ordinal,
                reason,
            } => format!("attempt={attempt} ordinal={ordinal} reason={reason}"),
        }
    }

    /// Reads an entry back from its kind and detail line.
    ///
    /// # Errors
    /// The entry is not one that [`Event::kind`] and [`Event::detail`] write.
    pub fn parse(kind: &str, detail: &str) -> Result<Self, DomainError> {
        let broken = || DomainError::rule("event", format!("has an unknown form: `{kind}`"));
        let event = parse(kind, detail).ok_or_else(broken)?;
        if event.detail() == detail {
            Ok(event)
        } else {
            Err(broken())
        }
    }
}

fn terminal(attempt: &AttemptId, ordinal: u16, code: FailureCode) -> String {
    format!(
        "attempt={attempt} ordinal={ordinal} disposition={} failure_code={code}",
        Disposition::Terminal
    )
}

fn parse(kind: &str, detail: &str) -> Option<Event> {
    let value = |key: &str| {
        detail
            .split(' ')
            .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
            .map(|(_, value)| value)
    };
    let attempt = || value("attempt")?.parse::<AttemptId>().ok();
    let ordinal = || value("ordinal")?.parse::<u16>().ok();
    let time = |key: &str| value(key)?.parse::<Timestamp>().ok();
    let code = || value("failure_code")?.parse::<FailureCode>().ok();
    Some(match kind {
        "submitted" => Event::Submitted,
        "leased" => Event::Leased {
            attempt: attempt()?,
            ordinal: ordinal()?,
            lease_expires: time("lease_expires")?,
        },
        "lease_expired" => Event::LeaseExpired {
            attempt: attempt()?,
            ordinal: ordinal()?,
            lease_expires: time("lease_expires")?,
        },
        "retryable_failed" => Event::RetryableFailed {
            attempt: attempt()?,
            ordinal: ordinal()?,
            code: code()?,
        },
        "retry_scheduled" => Event::RetryScheduled {
            attempt: attempt()?,
            ordinal: ordinal()?,
            retry_at: time("retry_at")?,
        },
        "retry_requested" => Event::RetryRequested {
            retry_at: time("retry_at")?,
        },
        "failed" => Event::Failed {
            attempt: attempt().zip(ordinal()),
            code: code()?,
        },
        "succeeded" => Event::Succeeded {
            candidate: value("candidate_sha").and_then(|sha| sha.parse().ok()),
        },
        "cancelled" => Event::Cancelled {
            attempt: attempt().zip(ordinal()),
        },
        "attempt_reattached" => Event::Reattached {
            attempt: attempt()?,
            ordinal: ordinal()?,
        },
        "attempt_withdrawn" => Event::Withdrawn {
            attempt: attempt()?,
            ordinal: ordinal()?,
            reason: value("reason")?.parse().ok()?,
        },
        "attempt_stopped" => Event::Stopped {
            attempt: attempt()?,
            ordinal: ordinal()?,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_words_of_the_protocol_and_round_trip() {
        let attempt: AttemptId = "b".repeat(32).parse().unwrap();
        let time: Timestamp = "2026-11-30T12:00:00.5Z".parse().unwrap();
        let sha: GitSha = "1".repeat(40).parse().unwrap();
        let id = &attempt;
        let entries = [
            (Event::Submitted, "submitted", "job accepted".to_owned()),
            (
                Event::Leased {
                    attempt,
                    ordinal: 1,
                    lease_expires: time,
                },
                "leased",
                format!("attempt={id} ordinal=1 lease_expires=2026-11-30T12:00:00.5Z"),
            ),
            (
                Event::LeaseExpired {
                    attempt,
                    ordinal: 2,
                    lease_expires: time,
                },
                "lease_expired",
                format!("attempt={id} ordinal=2 lease_expires=2026-11-30T12:00:00.5Z"),
            ),
            (
                Event::RetryableFailed {
                    attempt,
                    ordinal: 1,
                    code: FailureCode::ExecutionFailed,
                },
                "retryable_failed",
                format!(
                    "attempt={id} ordinal=1 disposition=retryable failure_code=execution_failed"
                ),
            ),
            (
                Event::RetryScheduled {
                    attempt,
                    ordinal: 1,
                    retry_at: time,
                },
                "retry_scheduled",
                format!("attempt={id} ordinal=1 retry_at=2026-11-30T12:00:00.5Z"),
            ),
            (
                Event::RetryRequested { retry_at: time },
                "retry_requested",
                "retry_at=2026-11-30T12:00:00.5Z".to_owned(),
            ),
            (
                Event::Failed {
                    attempt: None,
                    code: FailureCode::InvalidTask,
                },
                "failed",
                "failure_code=invalid_task".to_owned(),
            ),
            (
                Event::Failed {
                    attempt: Some((attempt, 3)),
                    code: FailureCode::MaxAttemptsExceeded,
                },
                "failed",
                format!(
                    "attempt={id} ordinal=3 disposition=terminal failure_code=max_attempts_exceeded"
                ),
            ),
            (
                Event::Succeeded { candidate: None },
                "succeeded",
                "result stored".to_owned(),
            ),
            (
                Event::Succeeded {
                    candidate: Some(sha),
                },
                "succeeded",
                format!("candidate_sha={sha}"),
            ),
            (
                Event::Cancelled { attempt: None },
                "cancelled",
                "failure_code=cancelled".to_owned(),
            ),
            (
                Event::Cancelled {
                    attempt: Some((attempt, 1)),
                },
                "cancelled",
                format!("attempt={id} ordinal=1 disposition=terminal failure_code=cancelled"),
            ),
            (
                Event::Reattached {
                    attempt,
                    ordinal: 2,
                },
                "attempt_reattached",
                format!("attempt={id} ordinal=2"),
            ),
            (
                Event::Withdrawn {
                    attempt,
                    ordinal: 1,
                    reason: NotAccepting::DiskLow,
                },
                "attempt_withdrawn",
                format!("attempt={id} ordinal=1 reason=disk_low"),
            ),
            (
                Event::Stopped {
                    attempt,
                    ordinal: 1,
                },
                "attempt_stopped",
                format!("attempt={id} ordinal=1"),
            ),
        ];
        for (event, kind, detail) in entries {
            assert_eq!((event.kind(), event.detail()), (kind, detail.clone()));
            assert_eq!(Event::parse(kind, &detail).unwrap(), event);
        }
        for (kind, detail) in [
            ("submitted", ""),
            ("leased", "attempt=x"),
            ("unknown", ""),
            ("succeeded", "candidate_sha=zz"),
        ] {
            assert!(Event::parse(kind, detail).is_err(), "{kind} {detail}");
        }
    }
}

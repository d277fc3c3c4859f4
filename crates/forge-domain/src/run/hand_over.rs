//! A lease over the end of a connection, of a Gate, and back to the queue.

use jiff::Timestamp;

use super::{Holder, JobState, Run, Step};
use crate::{Event, NotAccepting, Refused};

impl Run {
    /// Gives the live attempt to a new session of its slot, so that the old one is fenced. Its
    /// deadline stays.
    ///
    /// # Errors
    /// The attempt is not live, its deadline has passed, or the slot is another one.
    pub fn reattach(mut self, holder: &Holder, now: Timestamp) -> Result<Step, Refused> {
        let live = match &mut self.state {
            JobState::Leased(live) if live.id == holder.attempt => live,
            _ => return Err(Refused::Superseded),
        };
        if live.slot != holder.slot {
            return Err(Refused::Fenced);
        }
        if now >= live.deadline {
            return Err(Refused::DeadlinePassed);
        }
        live.generation = holder.generation;
        let event = Event::Reattached {
            attempt: live.id,
            ordinal: live.ordinal,
        };
        Ok(Step {
            run: self,
            finished: None,
            events: vec![event],
        })
    }

    /// Takes back a lease that the Worker has not begun: the job waits as before it, and the
    /// attempt never was one.
    ///
    /// # Errors
    /// The message does not count, see [`Run::authorize`].
    pub fn withdraw(
        self,
        holder: &Holder,
        reason: NotAccepting,
        now: Timestamp,
    ) -> Result<Step, Refused> {
        let live = self.authorize(holder, now)?;
        let event = Event::Withdrawn {
            attempt: live.id,
            ordinal: live.ordinal,
            reason,
        };
        let attempts = self.attempts.saturating_sub(1);
        let state = if attempts == 0 {
            JobState::Pending
        } else {
            JobState::RetryWait { retry_at: now }
        };
        Ok(Step {
            run: Self {
                attempts,
                state,
                ..self
            },
            finished: None,
            events: vec![event],
        })
    }

    /// Brings the deadline of a live lease to at most `now` + TTL, after a time without a Gate.
    /// Tells whether that changed it.
    pub fn clamp_deadline(&mut self, now: Timestamp) -> bool {
        match &mut self.state {
            JobState::Leased(live) => live.clamp(now, self.lease_ttl),
            JobState::Pending
            | JobState::RetryWait { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled => false,
        }
    }

    /// Brings the time of the next attempt to at most one whole pause from `now`, after a time
    /// without a Gate in which its clock may have been set back. Tells whether that changed it.
    pub fn clamp_retry(&mut self, now: Timestamp) -> bool {
        let latest = self.retry.next(self.attempts, now);
        match (&mut self.state, latest) {
            (JobState::RetryWait { retry_at }, Some(latest)) if latest < *retry_at => {
                *retry_at = latest;
                true
            }
            _ => false,
        }
    }

    /// Gives a live lease at least its whole TTL from `now`: time in which no Gate served does
    /// not count. Tells whether that changed it.
    pub fn grant_grace(&mut self, now: Timestamp) -> bool {
        let ttl = self.lease_ttl;
        match &mut self.state {
            JobState::Leased(live) => {
                let before = live.deadline;
                live.extend(now, ttl);
                live.deadline != before
            }
            JobState::Pending
            | JobState::RetryWait { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled => false,
        }
    }
}

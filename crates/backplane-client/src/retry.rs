//! When to try again: a machine without a clock. `now` is a duration since any fixed instant.
//!
//! ```text
//! ready --attempt--> in flight --failed--> waiting --attempt, when it is time--> in flight
//! in flight --failed for good, or too late--> over
//! ```

use std::time::Duration;

use crate::transport::{Fault, Method};

/// How often, how long between, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; none of them is made with 0.
    pub attempts: u32,
    /// The waits before the second attempt, the third and so on; the last one repeats.
    pub delays: Vec<Duration>,
    /// The time that all attempts and waits share.
    pub deadline: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            delays: vec![Duration::from_millis(100), Duration::from_millis(250)],
            deadline: Duration::from_secs(30),
        }
    }
}

/// What an attempt failed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A status that is no success, and the wait that the provider asks for.
    Status(u16, Option<Duration>),
    /// No answer.
    Transport(Fault),
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait until this `now`, looking out for a cancellation, then ask for the next attempt.
    WaitUntil(Duration),
    /// The failure stands.
    GiveUp(GaveUp),
}

/// Why the failure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaveUp {
    /// Trying again would give the same, or could do a thing twice.
    Final,
    /// All attempts are made.
    Attempts,
    /// The wait would end behind the deadline.
    Deadline,
}

/// An attempt that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Which one, from 1.
    pub number: u32,
    /// How long it may take.
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting(Duration),
    InFlight,
    Over,
}

/// The attempts of one request.
#[derive(Debug, Clone)]
pub struct Retry {
    policy: RetryPolicy,
    method: Method,
    end: Duration,
    made: u32,
    state: State,
}

impl Retry {
    /// Starts the shared deadline.
    pub fn new(policy: RetryPolicy, method: Method, now: Duration) -> Self {
        let end = now.saturating_add(policy.deadline);
        Self {
            policy,
            method,
            end,
            made: 0,
            state: State::Waiting(now),
        }
    }

    /// Allows the next attempt, or says that it is too early, one too many or too late.
    pub fn attempt(&mut self, now: Duration) -> Option<Attempt> {
        let State::Waiting(until) = self.state else {
            return None;
        };
        if now < until {
            return None;
        }
        let time = self.end.saturating_sub(now);
        if time.is_zero() || self.made >= self.policy.attempts {
            self.state = State::Over;
            return None;
        }
        self.made += 1;
        self.state = State::InFlight;
        let number = self.made;
        Some(Attempt { number, time })
    }

    /// Takes the failure of the attempt that is in flight.
    pub fn failed(&mut self, failure: Failure, now: Duration) -> Next {
        let next = self.judge(failure, now);
        self.state = match next {
            Next::WaitUntil(until) => State::Waiting(until),
            Next::GiveUp(_) => State::Over,
        };
        next
    }

    fn judge(&self, failure: Failure, now: Duration) -> Next {
        if self.state != State::InFlight || !self.may_repeat(failure) {
            return Next::GiveUp(GaveUp::Final);
        }
        if self.made >= self.policy.attempts {
            return Next::GiveUp(GaveUp::Attempts);
        }
        let asked = match failure {
            Failure::Status(_, asked) => asked.unwrap_or_default(),
            Failure::Transport(_) => Duration::ZERO,
        };
        // A provider may ask for more patience than ours, never for less.
        let until = now.saturating_add(self.delay().max(asked));
        if until >= self.end {
            return Next::GiveUp(GaveUp::Deadline);
        }
        Next::WaitUntil(until)
    }

    /// Tells whether the failure may pass, and whether what was asked may be done once more: unless
    /// the method is idempotent, the provider has to have said that nothing was done.
    fn may_repeat(&self, failure: Failure) -> bool {
        let once_more = self.method.is_idempotent();
        match failure {
            Failure::Status(429 | 503, _) => true,
            Failure::Status(500..=599, _) => once_more,
            Failure::Status(_, _) => false,
            Failure::Transport(fault) => once_more && fault.is_temporary(),
        }
    }

    fn delay(&self) -> Duration {
        let delays = &self.policy.delays;
        let index = usize::try_from(self.made)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let delay = delays.get(index).or(delays.last());
        delay.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;

//! A transport that tries again, over one that tries once.

use std::time::Duration;

use crate::retry::{Failure, Next, Retry, RetryPolicy};
use crate::transport::{Answer, Cancel, Fault, Request, Transport, TransportError};

/// The time that a [`Retrying`] lives in.
pub trait Clock {
    /// Returns the time since an instant that stays the same.
    fn now(&self) -> Duration;

    /// Returns at `until`, or soon after `cancel` says so: it is to look every 25 ms at the latest.
    fn wait(&self, until: Duration, cancel: &dyn Cancel);
}

/// Gives each request a few attempts under one deadline.
#[derive(Debug, Clone)]
pub struct Retrying<T, C> {
    once: T,
    clock: C,
    policy: RetryPolicy,
}

impl<T, C> Retrying<T, C>
where
    T: Fn(&Request, Duration, &dyn Cancel) -> Result<Answer, TransportError>,
    C: Clock,
{
    /// Wraps what sends an attempt within the time that it is given.
    pub fn new(once: T, clock: C, policy: RetryPolicy) -> Self {
        Self {
            once,
            clock,
            policy,
        }
    }
}

impl<T, C> Transport for Retrying<T, C>
where
    T: Fn(&Request, Duration, &dyn Cancel) -> Result<Answer, TransportError>,
    C: Clock,
{
    fn send(&self, request: &Request, cancel: &dyn Cancel) -> Result<Answer, TransportError> {
        let policy = self.policy.clone();
        let mut retry = Retry::new(policy, request.method(), self.clock.now());
        let mut last = Err(too_late());
        loop {
            if cancel.is_cancelled() {
                return Err(TransportError::new(Fault::Cancelled, "cancelled"));
            }
            let Some(attempt) = retry.attempt(self.clock.now()) else {
                return last;
            };
            let answer = (self.once)(request, attempt.time, cancel);
            let failure = match &answer {
                Ok(Answer { status, .. }) if *status < 400 => return answer,
                Ok(answer) => Failure::Status(answer.status, answer.retry_after),
                Err(error) => Failure::Transport(error.fault()),
            };
            last = answer;
            match retry.failed(failure, self.clock.now()) {
                Next::WaitUntil(until) => self.clock.wait(until, cancel),
                Next::GiveUp(_) => return last,
            }
        }
    }
}

fn too_late() -> TransportError {
    TransportError::new(Fault::TimedOut, "no attempt was left to make")
}

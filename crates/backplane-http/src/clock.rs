//! The time that a transport lives in. Tests give it one that they move themselves.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A wait that is going on.
pub type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The time that a transport lives in.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the time since an instant that stays the same.
    fn now(&self) -> Duration;

    /// Waits until [`Clock::now`] is `until`.
    fn wait(&self, until: Duration) -> Wait<'_>;

    /// Returns the time of day, which `Retry-After` may be a date in.
    fn wall(&self) -> Timestamp;
}

/// The clocks of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts at zero.
    #[must_use]
    pub fn new() -> Self {
        let start = Instant::now();
        Self { start }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&self, until: Duration) -> Wait<'_> {
        let left = until.saturating_sub(self.now());
        Box::pin(tokio::time::sleep(left))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }
}

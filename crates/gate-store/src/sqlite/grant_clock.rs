//! The time at which a lease is granted.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// The clock that a grant is stamped by; without one, by the time at which it was asked for.
#[derive(Clone, Default)]
pub(super) struct GrantClock(Option<Arc<dyn Fn() -> Timestamp + Send + Sync>>);

impl GrantClock {
    pub(super) fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(clock)))
    }

    /// The time now, and never before a claim was asked for.
    pub(super) fn at_least(&self, asked: Timestamp) -> Timestamp {
        match &self.0 {
            Some(clock) => clock().max(asked),
            None => asked,
        }
    }
}

impl fmt::Debug for GrantClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GrantClock")
    }
}

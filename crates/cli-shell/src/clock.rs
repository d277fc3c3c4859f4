//! The time of day for everything above floor 3.
//!
//! It is read from the machine once, at the first call, and then follows the monotonic clock: a
//! step of the wall clock neither expires a lease nor makes one immortal. It never goes backwards.

use std::sync::OnceLock;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

static START: OnceLock<(Timestamp, Instant)> = OnceLock::new();

/// Returns the wall time at the first call plus the monotonic time since then.
#[must_use]
pub fn now() -> Timestamp {
    let (wall, steady) = START.get_or_init(|| (Timestamp::now(), instant()));
    let elapsed = SignedDuration::try_from(steady.elapsed()).unwrap_or(SignedDuration::MAX);
    wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
}

/// Returns the monotonic clock's reading, for measuring how long something took.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that asks the machine for the time"
)]
pub fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r06_never_goes_backwards() {
        let readings: Vec<_> = (0..1_000).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }

    #[test]
    fn starts_at_the_wall_clock() {
        let apart = Timestamp::now().duration_since(now()).abs();
        assert!(apart < SignedDuration::from_secs(60), "{apart:?} apart");
    }
}

//! The arithmetic of leases: how far a heartbeat reaches and when the next attempt is due.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// When a lost attempt is followed by another one: the algorithm `exponential-v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRule {
    /// Delay after the first attempt.
    pub base: Duration,
    /// No delay is longer.
    pub max_delay: Duration,
    /// Attempts that a job may have in all.
    pub max_attempts: u16,
}

impl RetryRule {
    /// Returns when the attempt after `ordinal` is due, or nothing if `ordinal` was the last.
    #[must_use]
    pub fn next(&self, ordinal: u16, now: Timestamp) -> Option<Timestamp> {
        (ordinal < self.max_attempts)
            .then(|| after(now, retry_delay(self.base, ordinal, self.max_delay)))
    }
}

/// Computes min(`base` × 2^(`ordinal` − 1), `max`), saturating.
#[must_use]
pub fn retry_delay(base: Duration, ordinal: u16, max: Duration) -> Duration {
    let factor = 1u32
        .checked_shl(u32::from(ordinal.saturating_sub(1)))
        .unwrap_or(u32::MAX);
    base.saturating_mul(factor).min(max)
}

/// Returns the deadline that a heartbeat at `now` leaves: never an earlier one.
#[must_use]
pub fn extended_deadline(deadline: Timestamp, now: Timestamp, ttl: Duration) -> Timestamp {
    deadline.max(after(now, ttl))
}

/// Adds, and stays at the end of time instead of passing it.
pub(crate) fn after(now: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay)
        .ok()
        .and_then(|delay| now.checked_add(delay).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn delays_double_and_end_at_the_maximum() {
        let second = Duration::from_secs(1);
        let delays: Vec<u64> = (1..=5)
            .map(|ordinal| retry_delay(second, ordinal, DAY).as_secs())
            .collect();
        assert_eq!(delays, [1, 2, 4, 8, 16]);
        assert_eq!(retry_delay(second, 17, DAY).as_secs(), 65_536);
        for ordinal in [18, 32, 33, 34, 100, u16::MAX] {
            assert_eq!(retry_delay(second, ordinal, DAY), DAY, "{ordinal}");
        }
        assert_eq!(retry_delay(DAY, 1, DAY), DAY);
        assert_eq!(retry_delay(DAY, 100, DAY), DAY);
        // A base of 1 ms passes 2^32 before it passes the maximum: it must not wrap.
        assert_eq!(retry_delay(Duration::from_millis(1), 40, DAY), DAY);
    }

    #[test]
    fn the_last_ordinal_has_no_successor() {
        let rule = RetryRule {
            base: Duration::from_secs(1),
            max_delay: DAY,
            max_attempts: 2,
        };
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(rule.next(1, now).unwrap().as_second(), 1);
        assert_eq!(rule.next(2, now), None);
    }

    #[test]
    fn a_heartbeat_never_shortens_a_lease() {
        let now = Timestamp::from_second(1_000).unwrap();
        let far = Timestamp::from_second(2_000).unwrap();
        assert_eq!(extended_deadline(far, now, Duration::from_secs(30)), far);
        assert_eq!(
            extended_deadline(now, now, Duration::from_secs(30)).as_second(),
            1_030
        );
        assert_eq!(after(Timestamp::MAX, DAY), Timestamp::MAX);
    }
}

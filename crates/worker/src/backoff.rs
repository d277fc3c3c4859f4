//! The pause before a slot connects again, with jitter: 100 ms at first, never over 5 s.
//!
//! A Worker that finds no Gate when it starts doubles its pauses. One whose good connection was
//! lost is one of many: every Worker of a Gate that restarts loses its own in the same instant.
//! It spreads the first attempt over a second and lets its pauses grow slowly from there, since
//! quick short retries, and long ones that only some have reached, both end in a crowd at the
//! moment the Gate is back.
//!
//! Pure: it sleeps nowhere and draws no randomness; both belong to the slot that asks.

use std::time::Duration;

/// The longest first pause after an attempt to connect that failed.
pub(crate) const FIRST: Duration = Duration::from_millis(100);
/// No pause is longer than this.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);
/// A connection that proved itself is dialled again within this time.
pub(crate) const SPREAD_AFTER_LOSS: Duration = Duration::from_secs(1);
/// A connection that stayed open this long has proved itself even if it never carried a lease.
pub(crate) const PROVED_BY_AGE: Duration = LONGEST;

/// How the last attempt to serve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The connection carried a lease or an ack, or stayed open for a while, and then was lost.
    Proved,
    /// There was no connection, or it ended before it was good for anything.
    Unproved,
}

/// The state of one slot.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// The longest pause that the next fruitless attempt may be followed by.
    ceiling: Duration,
    growth: Growth,
}

#[derive(Debug, Clone, Copy)]
enum Growth {
    Double,
    Fifth,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            ceiling: FIRST,
            growth: Growth::Double,
        }
    }
}

impl Backoff {
    /// The pause to make now. `random` is any uniformly drawn number.
    pub(crate) fn next_delay(&mut self, ended: Ended, random: u64) -> Duration {
        match ended {
            Ended::Proved => {
                *self = Self {
                    ceiling: SPREAD_AFTER_LOSS,
                    growth: Growth::Fifth,
                };
                between(Duration::ZERO, SPREAD_AFTER_LOSS, random)
            }
            Ended::Unproved => {
                let delay = between(self.ceiling / 2, self.ceiling, random);
                let grown = match self.growth {
                    Growth::Double => self.ceiling.saturating_mul(2),
                    Growth::Fifth => self.ceiling.saturating_mul(6) / 5,
                };
                self.ceiling = grown.min(LONGEST);
                delay
            }
        }
    }
}

/// Maps `random` onto `low..=high`.
fn between(low: Duration, high: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX - 1);
    low.saturating_add(Duration::from_nanos(random % (nanos.saturating_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small deterministic generator (xorshift64*), so that the figures below never vary.
    struct Draw(u64);
    impl Draw {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
        }
    }

    #[test]
    fn pauses_double_from_100_ms_to_5_s_and_stay_there() {
        let mut backoff = Backoff::default();
        let ceilings = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];
        for ceiling in ceilings.map(Duration::from_millis) {
            let mut twin = Backoff {
                ceiling: backoff.ceiling,
                growth: backoff.growth,
            };
            let span = u64::try_from((ceiling / 2).as_nanos()).unwrap();
            assert_eq!(twin.next_delay(Ended::Unproved, span), ceiling);
            assert_eq!(backoff.next_delay(Ended::Unproved, 0), ceiling / 2);
        }
        for _ in 0..100 {
            assert!(backoff.next_delay(Ended::Unproved, u64::MAX) <= LONGEST);
        }
    }

    #[test]
    fn success_resets_the_pause() {
        let mut backoff = Backoff::default();
        for _ in 0..10 {
            backoff.next_delay(Ended::Unproved, 1);
        }
        assert!(backoff.next_delay(Ended::Proved, u64::MAX) <= SPREAD_AFTER_LOSS);
        assert!(backoff.next_delay(Ended::Unproved, u64::MAX) <= SPREAD_AFTER_LOSS);
    }

    #[test]
    fn a_gate_that_accepts_and_drops_at_once_is_not_hammered() {
        let mut backoff = Backoff::default();
        let total: Duration = (0..20)
            .map(|_| backoff.next_delay(Ended::Unproved, 0))
            .sum();
        assert!(total > Duration::from_secs(30), "{total:?}");
    }

    /// 200 Workers lose their Gate in one instant; it is back after `outage`. Counts the
    /// connects in each 100 ms from the first to the last of them.
    fn peak_over_mean(outage: Duration, seed: u64) -> f64 {
        let mut draw = Draw(seed);
        let mut connects = Vec::new();
        for _ in 0..200 {
            let mut backoff = Backoff::default();
            let mut at = backoff.next_delay(Ended::Proved, draw.next());
            while at < outage {
                at += backoff.next_delay(Ended::Unproved, draw.next());
            }
            connects.push(at.as_millis());
        }
        let first = connects.iter().min().copied().unwrap_or_default();
        let last = connects.iter().max().copied().unwrap_or_default();
        let buckets = usize::try_from((last - first) / 100 + 1).unwrap();
        let mut count = vec![0u32; buckets];
        for at in connects {
            count[usize::try_from((at - first) / 100).unwrap()] += 1;
        }
        let peak = f64::from(count.iter().max().copied().unwrap_or_default());
        peak / (200.0 / f64::from(u32::try_from(buckets).unwrap()))
    }

    #[test]
    fn r18_two_hundred_workers_come_back_without_a_peak() {
        for outage in [
            1, 50, 300, 800, 1000, 1500, 2000, 3000, 5000, 10_000, 20_000, 120_000,
        ] {
            let runs = 40;
            let sum: f64 = (1..=runs)
                .map(|seed| peak_over_mean(Duration::from_millis(outage), seed * 7919))
                .sum();
            let mean = sum / f64::from(u32::try_from(runs).unwrap());
            assert!(mean < 3.0, "outage {outage} ms: peak over mean {mean:.2}");
        }
    }
}

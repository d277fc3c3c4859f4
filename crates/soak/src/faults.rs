//! What is done to whom, and when: a schedule that follows from the seed.

use std::fmt;
use std::time::Duration;

use crate::random::Random;

/// How many Workers there are.
pub(crate) const WORKERS: usize = 2;

/// How long a lease lives in this appliance, in milliseconds.
pub(crate) const LEASE_TTL_MS: u64 = 2_000;

/// A program of the appliance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The Gate.
    Gate,
    /// A Worker, by its index.
    Worker(usize),
}

impl Target {
    /// Every program.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Gate).chain((0..WORKERS).map(Self::Worker))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate => f.write_str("gate"),
            Self::Worker(index) => write!(f, "worker-{}", index + 1),
        }
    }
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; it is started again after this time.
    Kill {
        /// How long it is away.
        away: Duration,
    },
    /// SIGSTOP; SIGCONT follows after this time.
    Freeze {
        /// How long it stands still.
        still: Duration,
    },
}

/// One entry of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    /// The time since the entry before it.
    pub(crate) after: Duration,
    /// Whom it is for; it is skipped if that program is away.
    pub(crate) target: Target,
    /// What is done.
    pub(crate) fault: Fault,
}

/// The schedule, which never ends.
#[derive(Debug)]
pub(crate) struct Schedule(Random);

impl Schedule {
    /// The schedule of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::branch(seed, 1))
    }
}

impl Iterator for Schedule {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let random = &mut self.0;
        let after = random.millis(200, 2_000);
        let target = match random.below(5) {
            0 | 1 => Target::Gate,
            _ => Target::Worker(usize::try_from(random.below(WORKERS as u64)).unwrap_or_default()),
        };
        // Most come back while leases live, some only when all of them have run out.
        let time = if random.one_in(4) {
            random.millis(LEASE_TTL_MS, 2 * LEASE_TTL_MS)
        } else {
            random.millis(0, 1_000)
        };
        let fault = if random.one_in(5) {
            Fault::Freeze { still: time }
        } else {
            Fault::Kill { away: time }
        };
        Some(Planned {
            after,
            target,
            fault,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_the_whole_schedule() {
        let take = |seed| Schedule::new(seed).take(50).collect::<Vec<_>>();
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn every_program_is_killed_and_stopped_within_a_minute() {
        for seed in 0..20 {
            let mut time = Duration::ZERO;
            let minute: Vec<_> = Schedule::new(seed)
                .take_while(|planned| {
                    time += planned.after;
                    time < Duration::from_secs(60)
                })
                .collect();
            for target in Target::all() {
                let kills = minute.iter().filter(|planned| {
                    planned.target == target && matches!(planned.fault, Fault::Kill { .. })
                });
                assert!(kills.count() >= 3, "seed {seed}: {target}");
            }
        }
    }
}

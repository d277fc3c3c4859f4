//! A small generator whose numbers follow from a seed (SplitMix64).

use std::time::Duration;

/// The generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator for one purpose, so that how often one is asked changes no other.
    pub(crate) fn branch(seed: u64, purpose: u64) -> Self {
        let mut root = Self(seed ^ purpose.wrapping_mul(0xA24B_AED4_963E_E407));
        Self(root.next())
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in `times` times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A time of `low` to `high` milliseconds.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(low + self.below(high.saturating_sub(low) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_number_and_another_seed_decides_others() {
        let draw = |seed: u64, purpose: u64| {
            let mut random = Random::branch(seed, purpose);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(8, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
    }

    #[test]
    fn times_stay_within_their_bounds() {
        let mut random = Random::branch(3, 0);
        for _ in 0..1000 {
            let time = random.millis(5, 9).as_millis();
            assert!((5..=9).contains(&time), "{time}");
        }
    }
}

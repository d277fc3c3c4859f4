//! Pools as their owner sees them: what waits in each, and whether it gives out work.

use std::fmt;
use std::str::FromStr;

use forge_domain::{AttemptStatus, FailureCode, PoolId, SlotId};
use jiff::Timestamp;

/// Most characters of a reason.
const MAX_REASON: usize = 200;
/// How far a place in a queue is counted.
pub const MAX_AHEAD: u32 = 1000;

/// Why the owner has paused a pool: 1 to 200 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseReason(String);

/// A text is no reason for a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX_REASON} characters without control characters")]
pub struct BadPauseReason;

impl PauseReason {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PauseReason {
    type Err = BadPauseReason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=MAX_REASON).contains(&text.chars().count());
        if fits && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadPauseReason)
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A pool gives out no work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Since when; pausing again does not change it.
    pub since: Timestamp,
    /// Why, in the owner's words.
    pub reason: Option<PauseReason>,
}

/// What asking for a pause did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The pool was paused before.
    pub repeated: bool,
    /// The pause that is in force now.
    pub pause: Pause,
}

/// A pool with jobs that have not ended, or that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// The pool.
    pub pool: PoolId,
    /// Whether it gives out no work.
    pub pause: Option<Pause>,
    /// Jobs that a slot could have now.
    pub ready: u32,
    /// When the oldest of them was accepted.
    pub oldest: Option<Timestamp>,
    /// Jobs whose next attempt is not due yet.
    pub retrying: u32,
    /// Jobs that a slot has.
    pub leased: u32,
}

impl PoolView {
    /// A pool in which nothing waits.
    #[must_use]
    pub const fn empty(pool: PoolId) -> Self {
        Self {
            pool,
            pause: None,
            ready: 0,
            oldest: None,
            retrying: 0,
            leased: 0,
        }
    }
}

/// How many jobs a slot would get first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// So many, counted up to [`MAX_AHEAD`].
    pub jobs: u32,
    /// There are more.
    pub more: bool,
}

/// Where a job that waits stands, from one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// The jobs before it, unless it waits for its next attempt.
    pub ahead: Option<Ahead>,
    /// Whether its pool gives out no work.
    pub pause: Option<Pause>,
    /// How its last attempt ended.
    pub last: Option<(AttemptStatus, Option<FailureCode>)>,
    /// The connected slots of its pool.
    pub slots: Vec<PoolSlot>,
}

/// A connected slot of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSlot {
    /// The slot.
    pub slot: SlotId,
    /// It has an attempt.
    pub working: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert!("x".repeat(200).parse::<PauseReason>().is_ok());
        assert!("ü".repeat(200).parse::<PauseReason>().is_ok());
        for bad in ["", "a\nb", "\u{7}", &"x".repeat(201)] {
            assert_eq!(bad.parse::<PauseReason>(), Err(BadPauseReason), "{bad:?}");
        }
    }
}

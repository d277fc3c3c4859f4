//! Live activity: which stage an attempt is in, for display only, never stored.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::DomainError;

/// The name under which activity is negotiated.
pub const ACTIVITY_VERSION: &str = "live_activity/v1";
/// Most activity messages of an attempt.
pub const MAX_ACTIVITIES: u8 = 4;

/// A stage of an attempt, in the order in which stages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The plugin has started.
    Analyzing,
    /// The plugin works.
    Editing,
    /// Declared checks run.
    Testing,
    /// The candidate is made.
    PreparingResult,
}

impl Stage {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analyzing => "analyzing",
            Self::Editing => "editing",
            Self::Testing => "testing",
            Self::PreparingResult => "preparing_result",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Stage {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [
            Self::Analyzing,
            Self::Editing,
            Self::Testing,
            Self::PreparingResult,
        ]
        .into_iter()
        .find(|stage| stage.as_str() == text)
        .ok_or_else(|| {
            DomainError::rule(
                "stage",
                "must be analyzing, editing, testing or preparing_result",
            )
        })
    }
}

/// One activity message of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// 1 for the first message of the attempt, then one more each.
    pub sequence: u8,
    /// The stage that has begun.
    pub stage: Stage,
}

/// What an attempt has reported; accepts the next sequence number with a later stage only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActivityTrack {
    last: Option<Activity>,
    /// What was reported before is not known; the next message is the first that counts.
    resumed: bool,
}

impl ActivityTrack {
    /// Goes on with an attempt whose earlier messages are not known any more: the next message
    /// may have any number that its stage leaves room for.
    #[must_use]
    pub const fn resumed() -> Self {
        Self {
            last: None,
            resumed: true,
        }
    }

    /// Accepts a message that goes strictly forward.
    ///
    /// # Errors
    /// The sequence number is not the next one, or the stage is not later.
    pub fn accept(&mut self, activity: Activity) -> Result<(), DomainError> {
        if self.resumed {
            // Stages go strictly forward, so the n-th message is of the n-th stage or a later one.
            let latest = activity.stage as u8 + 1;
            if !(1..=latest).contains(&activity.sequence) {
                return Err(DomainError::rule("sequence", "must fit its stage"));
            }
            *self = Self {
                last: Some(activity),
                resumed: false,
            };
            return Ok(());
        }
        let (sequence, stage) = self
            .last
            .map_or((0, None), |last| (last.sequence, Some(last.stage)));
        if activity.sequence != sequence.saturating_add(1) || activity.sequence > MAX_ACTIVITIES {
            return Err(DomainError::rule(
                "sequence",
                "must be one more than the last",
            ));
        }
        if stage.is_some_and(|stage| activity.stage <= stage) {
            return Err(DomainError::rule("stage", "must be later than the last"));
        }
        self.last = Some(activity);
        Ok(())
    }

    /// Makes the next message for a stage, or nothing if the stage is not later than the last.
    pub fn advance(&mut self, stage: Stage) -> Option<Activity> {
        let sequence = self.last.map_or(0, |last| last.sequence).checked_add(1)?;
        let activity = Activity { sequence, stage };
        self.accept(activity).ok()?;
        Some(activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_go_strictly_forward_and_may_be_skipped() {
        let mut track = ActivityTrack::default();
        let message = |sequence, stage| Activity { sequence, stage };
        assert!(track.accept(message(2, Stage::Analyzing)).is_err());
        assert!(track.accept(message(0, Stage::Analyzing)).is_err());
        track.accept(message(1, Stage::Editing)).unwrap();
        assert!(track.accept(message(2, Stage::Editing)).is_err());
        assert!(track.accept(message(2, Stage::Analyzing)).is_err());
        assert!(track.accept(message(1, Stage::Testing)).is_err());
        track.accept(message(2, Stage::PreparingResult)).unwrap();
        assert!(track.accept(message(3, Stage::PreparingResult)).is_err());
    }

    #[test]
    fn a_sender_drops_what_does_not_go_forward() {
        let mut track = ActivityTrack::default();
        let stages = [
            Stage::Analyzing,
            Stage::Analyzing,
            Stage::Testing,
            Stage::Editing,
            Stage::PreparingResult,
        ];
        let sent: Vec<u8> = stages
            .into_iter()
            .filter_map(|stage| track.advance(stage))
            .map(|sent| sent.sequence)
            .collect();
        assert_eq!(sent, [1, 2, 3]);
    }

    #[test]
    fn a_resumed_track_accepts_any_number_that_fits_the_stage_once() {
        let message = |sequence, stage| Activity { sequence, stage };
        for (sequence, stage) in [
            (0, Stage::Testing),
            (2, Stage::Analyzing),
            (5, Stage::PreparingResult),
        ] {
            let refused = ActivityTrack::resumed().accept(message(sequence, stage));
            assert!(refused.is_err(), "{sequence} {stage}");
        }
        let mut track = ActivityTrack::resumed();
        track.accept(message(2, Stage::Testing)).unwrap();
        assert!(track.accept(message(2, Stage::Testing)).is_err());
        assert!(track.accept(message(4, Stage::PreparingResult)).is_err());
        track.accept(message(3, Stage::PreparingResult)).unwrap();
    }

    #[test]
    fn names_round_trip() {
        for name in ["analyzing", "editing", "testing", "preparing_result"] {
            assert_eq!(name.parse::<Stage>().unwrap().to_string(), name);
        }
        assert!("Analyzing".parse::<Stage>().is_err());
    }
}

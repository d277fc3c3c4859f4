//! What a plugin says on the way.

use std::fmt;
use std::str::FromStr;

use crate::ProgressText;

/// One progress frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Position in the session: 1, 2, 3, … up to 128.
    pub sequence: u32,
    /// How far the plugin is; stages may repeat and go back.
    pub stage: Stage,
    /// A text for the people on the host's side; may be empty.
    pub text: ProgressText,
}

/// How far a plugin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The operation has begun.
    Started,
    /// The work is going on.
    Working,
    /// The result is being made.
    Finalizing,
}

impl Stage {
    /// All stages, in the order of the protocol.
    pub const ALL: [Self; 3] = [Self::Started, Self::Working, Self::Finalizing];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Working => "working",
            Self::Finalizing => "finalizing",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Stage {
    type Err = UnknownStage;

    fn from_str(text: &str) -> Result<Self, UnknownStage> {
        Self::ALL
            .into_iter()
            .find(|stage| stage.as_str() == text)
            .ok_or(UnknownStage)
    }
}

/// Says that a stage is none of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is none of started, working, finalizing")]
pub struct UnknownStage;

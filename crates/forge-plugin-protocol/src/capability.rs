//! The six capabilities and lists of them. The set is closed: an unknown name is an error.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// What a plugin can do, or which frames and fields it takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// The operation `text`.
    Text,
    /// The operation `workspace_edit`.
    WorkspaceEdit,
    /// `progress` frames from the plugin.
    Progress,
    /// The `cancel` frame from the host.
    Cancel,
    /// `commit_subject` in the result of `workspace_edit`.
    CommitSubject,
    /// `summary` and `changes` in the result of `workspace_edit`.
    AgentReport,
}

impl Capability {
    /// All capabilities, in the order of the protocol.
    pub const ALL: [Self; 6] = [
        Self::Text,
        Self::WorkspaceEdit,
        Self::Progress,
        Self::Cancel,
        Self::CommitSubject,
        Self::AgentReport,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::WorkspaceEdit => "workspace_edit",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::CommitSubject => "commit_subject",
            Self::AgentReport => "agent_report",
        }
    }

    /// Tells whether this names an operation rather than a feature.
    pub fn is_operation(self) -> bool {
        matches!(self, Self::Text | Self::WorkspaceEdit)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Capability {
    type Err = InvalidCapabilities;

    fn from_str(text: &str) -> Result<Self, InvalidCapabilities> {
        Self::ALL
            .into_iter()
            .find(|capability| capability.as_str() == text)
            .ok_or(InvalidCapabilities::Unknown)
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Capabilities without duplicates, at least one of them an operation; the order is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Capabilities(Vec<Capability>);

impl Capabilities {
    /// Checks a list.
    pub fn new(list: impl IntoIterator<Item = Capability>) -> Result<Self, InvalidCapabilities> {
        let mut kept = Vec::new();
        for capability in list {
            if kept.contains(&capability) {
                return Err(InvalidCapabilities::Duplicate(capability));
            }
            kept.push(capability);
        }
        if kept.iter().any(|capability| capability.is_operation()) {
            Ok(Self(kept))
        } else {
            Err(InvalidCapabilities::NoOperation)
        }
    }

    /// Tells whether a capability is in the list.
    pub fn contains(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// Iterates over the list in its order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }

    /// Returns those that are also in `offer`, in the order of `self`.
    pub fn selected_from(&self, offer: &Self) -> Result<Self, InvalidCapabilities> {
        Self::new(self.iter().filter(|capability| offer.contains(*capability)))
    }
}

/// Says why a list of capabilities is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCapabilities {
    /// A name outside of the closed set.
    #[error("is none of text, workspace_edit, progress, cancel, commit_subject, agent_report")]
    Unknown,
    /// The same capability twice.
    #[error("capability `{0}` is listed twice")]
    Duplicate(Capability),
    /// Neither `text` nor `workspace_edit` is in the list, or in what both sides know.
    #[error("no operation (`text` or `workspace_edit`) is among the capabilities")]
    NoOperation,
    /// The operation that is to be run is not in the list.
    #[error("the operation `{0}` is not among the capabilities")]
    OperationMissing(Capability),
    /// Selected although the host did not offer it.
    #[error("capability `{0}` was not offered")]
    NotOffered(Capability),
}

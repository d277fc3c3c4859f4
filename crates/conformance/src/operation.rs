//! The operation that a plugin is tested for.

use std::fmt;

/// What the plugin under test performs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Operation {
    /// Text in, text out.
    #[default]
    Text,
    /// An edit of a workspace.
    WorkspaceEdit,
}

impl Operation {
    /// Returns the capability that stands for the operation on the wire.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::WorkspaceEdit => "workspace_edit",
        }
    }

    /// Returns what a session of the tool asks for.
    pub(crate) const fn task(self) -> &'static str {
        match self {
            Self::Text => "conformance",
            Self::WorkspaceEdit => "create answer.txt containing conformance followed by a newline",
        }
    }

    /// Returns the field of `execute` that carries the task's own text.
    #[must_use]
    pub const fn payload(self) -> &'static str {
        match self {
            Self::Text => "input",
            Self::WorkspaceEdit => "instruction",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.capability())
    }
}

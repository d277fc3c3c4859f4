//! What a host asks for: the payload of `execute`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bounded::BoundError;

use crate::capability::Capability;
use crate::limits::{TIMEOUT_MS, WORKSPACE_BYTES};
use crate::{Input, Instruction};

/// One operation; a fresh plugin process handles exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Turn a text into a text.
    Text {
        /// The text to work on; may be empty.
        input: Input,
    },
    /// Edit the files below a directory.
    WorkspaceEdit {
        /// The directory.
        workspace: WorkspacePath,
        /// What to do there.
        instruction: Instruction,
        /// How long the host waits for the whole session.
        timeout_ms: TimeoutMs,
    },
}

impl Operation {
    /// Makes a `text` operation.
    pub fn text(input: impl Into<String>) -> Result<Self, InvalidOperation> {
        let input = Input::new(input).map_err(InvalidOperation::Input)?;
        Ok(Self::Text { input })
    }

    /// Makes a `workspace_edit` operation; parts of a millisecond are dropped.
    pub fn workspace_edit(
        workspace: impl AsRef<str>,
        instruction: impl Into<String>,
        timeout: Duration,
    ) -> Result<Self, InvalidOperation> {
        let workspace = workspace.as_ref().parse()?;
        let instruction = Instruction::new(instruction).map_err(InvalidOperation::Instruction)?;
        let timeout_ms = TimeoutMs::new(timeout.as_millis())?;
        Ok(Self::WorkspaceEdit {
            workspace,
            instruction,
            timeout_ms,
        })
    }

    /// Returns the capability that a plugin must select to run this.
    pub fn capability(&self) -> Capability {
        match self {
            Self::Text { .. } => Capability::Text,
            Self::WorkspaceEdit { .. } => Capability::WorkspaceEdit,
        }
    }
}

/// An absolute path of 1 to 4 096 bytes without NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkspacePath {
    type Err = InvalidOperation;

    fn from_str(text: &str) -> Result<Self, InvalidOperation> {
        if text.starts_with('/') && text.len() <= WORKSPACE_BYTES && !text.contains('\0') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidOperation::Workspace)
        }
    }
}

impl AsRef<str> for WorkspacePath {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A time limit of 1 to 86 400 000 milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeoutMs(u32);

impl TimeoutMs {
    /// Checks a number of milliseconds.
    pub fn new(milliseconds: impl TryInto<u32>) -> Result<Self, InvalidOperation> {
        match milliseconds.try_into() {
            Ok(value) if (1..=TIMEOUT_MS).contains(&value) => Ok(Self(value)),
            _ => Err(InvalidOperation::Timeout),
        }
    }

    /// Returns the milliseconds.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns the limit as a duration.
    pub fn duration(self) -> Duration {
        Duration::from_millis(u64::from(self.0))
    }
}

/// Says why an operation cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOperation {
    /// The input has too many bytes.
    #[error("input {0}")]
    Input(BoundError),
    /// The workspace is no absolute path, too long, or holds a NUL.
    #[error("must be an absolute path of at most 4096 bytes without NUL")]
    Workspace,
    /// The instruction is empty or has too many bytes.
    #[error("instruction {0}")]
    Instruction(BoundError),
    /// The timeout is out of range.
    #[error("must be 1 to 86400000 milliseconds")]
    Timeout,
}

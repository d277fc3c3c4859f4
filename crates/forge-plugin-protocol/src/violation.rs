//! How the other side broke the protocol, with the bytes that did it.
//!
//! Foreign bytes appear only escaped and cut, so that a message is safe to print anywhere.

use std::fmt;

use bounded::text::visible_bytes;
use strict_json::{FieldError, JsonError};

use crate::capability::{Capability, InvalidCapabilities};
use crate::host::PluginExit;

/// A broken rule and the first bytes that broke it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    violation: Violation,
    offending: Option<String>,
}

impl ProtocolError {
    /// Describes a violation that no particular bytes show.
    pub(crate) fn silent(violation: Violation) -> Self {
        Self {
            violation,
            offending: None,
        }
    }

    /// Describes a violation by a line; the excerpt starts where the JSON went wrong.
    pub(crate) fn in_line(violation: impl Into<Violation>, line: &[u8]) -> Self {
        let violation = violation.into();
        let offset = match &violation {
            Violation::Json(error) => error.offset().unwrap_or(0),
            _ => 0,
        };
        // An error at the very end shows the line, for want of bytes after it.
        let bytes = line
            .get(offset..)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(line);
        Self {
            violation,
            offending: Some(excerpt(bytes)),
        }
    }

    /// Returns the rule.
    pub fn violation(&self) -> &Violation {
        &self.violation
    }

    /// Returns the first offending bytes, escaped and cut.
    pub fn offending(&self) -> Option<&str> {
        self.offending.as_deref()
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.offending {
            None => self.violation.fmt(formatter),
            Some(bytes) => write!(formatter, "{}; offending bytes: `{bytes}`", self.violation),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// The rules that a peer can break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// More bytes than a frame may have.
    #[error("a frame is longer than 1048576 bytes")]
    FrameTooLong,
    /// The stream ended inside of a frame.
    #[error("the last frame has no line feed")]
    Unterminated,
    /// A line without content.
    #[error("a blank line is no frame")]
    BlankLine,
    /// A line that ends with CR LF.
    #[error("a frame ends with a line feed alone, not with a carriage return before it")]
    CarriageReturn,
    /// The line is not one compact JSON object.
    #[error("a frame is not one compact JSON object: {0}")]
    Json(JsonError),
    /// A field is missing, unknown, or has a value that is not allowed.
    #[error("invalid `{kind}` frame: {error}")]
    Field {
        /// The type of the frame.
        kind: &'static str,
        /// What is wrong with which field.
        error: FieldError,
    },
    /// The fields that every frame has are wrong.
    #[error("invalid frame: {0}")]
    Envelope(FieldError),
    /// The version is not `v1`.
    #[error("the protocol version must be `v1`")]
    Version,
    /// The id is not that of the session.
    #[error("the frame has the id of another session")]
    OtherId,
    /// A frame that may not come now.
    #[error("expected {expected}, got a frame of type `{found}`")]
    UnexpectedType {
        /// What may come now.
        expected: &'static str,
        /// What came, escaped and cut.
        found: String,
    },
    /// Capabilities that cannot be offered or selected.
    #[error("invalid `{kind}` frame: {error}")]
    Capabilities {
        /// The type of the frame.
        kind: &'static str,
        /// What is wrong with the list.
        error: InvalidCapabilities,
    },
    /// A limit that is not the one of the protocol.
    #[error("invalid `initialize` frame: limit `{name}` must be {expected}")]
    Limit {
        /// The limit.
        name: &'static str,
        /// Its only value.
        expected: u64,
    },
    /// A frame or field whose capability was not selected.
    #[error("`{what}` needs the capability `{capability}`, which was not selected")]
    NotNegotiated {
        /// The frame type or field.
        what: &'static str,
        /// The capability.
        capability: Capability,
    },
    /// An operation that was not selected.
    #[error("the operation `{0}` was not selected")]
    OperationNotSelected(Capability),
    /// Progress numbers with a gap, a repetition, or a wrong start.
    #[error("progress sequence must be {expected}")]
    Sequence {
        /// The only number that may come now.
        expected: u32,
    },
    /// More progress frames than allowed.
    #[error("more than 128 progress frames")]
    TooManyProgressFrames,
    /// A report with only one of its two fields.
    #[error("`summary` and `changes` come together or not at all")]
    HalfReport,
    /// Bytes after the terminal frame, or after a `cancel`.
    #[error("nothing may follow {0}")]
    TrailingBytes(&'static str),
    /// The stream ended before the session did.
    #[error("{who} closed the stream before {missing}")]
    EarlyEnd {
        /// Who closed it.
        who: &'static str,
        /// What had yet to come.
        missing: &'static str,
    },
    /// The plugin ended before the session did.
    #[error("the plugin ended ({exit}) before {missing}")]
    EarlyExit {
        /// How it ended.
        exit: PluginExit,
        /// What had yet to come.
        missing: &'static str,
    },
    /// The plugin sent its terminal frame and did not end cleanly.
    #[error("the plugin ended with {0} after its terminal frame, instead of exit 0")]
    UncleanExit(PluginExit),
    /// The plugin sent its terminal frame and did not end in time.
    #[error("the plugin did not {missing} within 250 ms of {since}")]
    CloseTimeout {
        /// What it did not do.
        missing: &'static str,
        /// What started the window.
        since: &'static str,
    },
    /// The plugin wrote more than it may, standard error included.
    #[error("the plugin wrote more than its output limit")]
    OutputLimit,
    /// The session was concluded before the plugin had finished.
    #[error("the session was given up before the plugin had finished")]
    Abandoned,
}

// Written by hand: a derived conversion would make the cause a source, and the message has it.
impl From<JsonError> for Violation {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl From<FieldError> for Violation {
    fn from(error: FieldError) -> Self {
        Self::Envelope(error)
    }
}

/// Most bytes that a message repeats.
const EXCERPT_BYTES: usize = 64;

/// Escapes the first bytes; an ellipsis says that more follow.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match bytes.get(..EXCERPT_BYTES) {
        Some(start) if bytes.len() > EXCERPT_BYTES => {
            // A character that the cut splits would look like invalid bytes.
            let cut = (0..4).find_map(|back| {
                let shorter = start.get(..EXCERPT_BYTES - back)?;
                std::str::from_utf8(shorter).is_ok().then_some(shorter)
            });
            format!("{}…", visible_bytes(cut.unwrap_or(start)))
        }
        _ => visible_bytes(bytes),
    }
}

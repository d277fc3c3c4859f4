//! How the other side broke the protocol, with the bytes that did it.
//!
//! Foreign bytes appear only escaped and cut, so that a message is safe to print anywhere.

use std::fmt;

use bounded::text::visible_bytes;
use strict_json::{FieldError, JsonError};

use crate::annotation::InvalidAnnotation;

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
    #[must_use]
    pub fn violation(&self) -> &Violation {
        &self.violation
    }

    /// Returns the first offending bytes, escaped and cut.
    #[must_use]
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
    /// More bytes than a message may have (seed 4).
    #[error("a message is longer than 1048576 bytes")]
    TooLong,
    /// The stream ended inside of a message (seed 4).
    #[error("the last message has no line feed")]
    Unterminated,
    /// The line is not one JSON object (seed 4).
    #[error("a line is not one JSON object: {0}")]
    Json(JsonError),
    /// The same key twice, at any depth (ours).
    #[error("invalid message: {0}")]
    DuplicateKey(JsonError),
    /// A field is missing or has a value that is not allowed.
    #[error("invalid message: {0}")]
    Field(FieldError),
    /// `v` is not 1 (seed 6).
    #[error("field `v` must be 1")]
    Version,
    /// An answer with another id than its request (seed 6), or a request whose id does not rise.
    #[error("field `id` must be {expected}")]
    Id {
        /// What it must be.
        expected: String,
    },
    /// A message that may not come now.
    #[error("expected {expected}, got a message of kind `{found}`")]
    Kind {
        /// What may come now.
        expected: &'static str,
        /// What came, escaped and cut.
        found: String,
    },
    /// Bytes while no request is open (seed 5).
    #[error("wrote to stdout while no request was open")]
    Unsolicited,
    /// More findings than allowed (seed 6.4).
    #[error("a verdict has more than 256 findings")]
    TooManyFindings,
    /// An annotation that no receipt may hold.
    #[error("{0}")]
    Annotation(InvalidAnnotation),
    /// A hook that the plugin never announced (seed 3.1).
    #[error("the plugin did not announce the hook `{0}`")]
    NotAnnounced(String),
    /// The stream ended before `shutdown`.
    #[error("the input ended without `shutdown`")]
    EarlyEnd,
}

// Written by hand: a derived conversion would make the cause a source, and the message has it.
impl From<JsonError> for Violation {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::DuplicateKey { .. } => Self::DuplicateKey(error),
            other => Self::Json(other),
        }
    }
}

impl From<FieldError> for Violation {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
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

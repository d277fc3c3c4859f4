//! What can be wrong with a document or with one of its fields.
//!
//! Messages quote foreign keys only in escaped and shortened form, so that they are safe to print.

use std::fmt::Write as _;

/// Says why bytes are not the one JSON document that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The input is longer than the limit; nothing of it was read.
    #[error("{actual} bytes are more than the {limit} allowed")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// The input is not UTF-8.
    #[error("invalid UTF-8 at byte {offset}")]
    InvalidUtf8 {
        /// Where the first invalid sequence starts.
        offset: usize,
    },
    /// The input starts with a byte order mark.
    #[error("a byte order mark is not allowed")]
    ByteOrderMark,
    /// The input holds no value at all.
    #[error("empty input where a JSON value was expected")]
    Empty,
    /// White space outside of strings in a compact document.
    #[error("white space outside of a string at byte {offset}; compact JSON is required")]
    NotCompact {
        /// Where the white space is.
        offset: usize,
    },
    /// A byte that JSON does not allow there.
    #[error("malformed JSON at byte {offset}: expected {expected}")]
    Syntax {
        /// Where the unexpected byte is, or the length of the input when it ended too early.
        offset: usize,
        /// What could have stood there.
        expected: &'static str,
    },
    /// A control character in a string that is not written as an escape.
    #[error("unescaped control character in a string at byte {offset}")]
    ControlCharacter {
        /// Where the character is.
        offset: usize,
    },
    /// A `\u` escape for half of a surrogate pair.
    #[error("unpaired surrogate escape at byte {offset}")]
    LoneSurrogate {
        /// Where the escape starts.
        offset: usize,
    },
    /// A number beyond the range of a double.
    #[error("number out of range at byte {offset}")]
    NumberOutOfRange {
        /// Where the number starts.
        offset: usize,
    },
    /// Two members of one object have the same key after unescaping.
    #[error("duplicate key {}", quoted(key))]
    DuplicateKey {
        /// The key, unescaped.
        key: String,
    },
    /// Objects and arrays are nested deeper than allowed.
    #[error("nested deeper than {limit} levels at byte {offset}")]
    TooDeep {
        /// Levels that are allowed.
        limit: usize,
        /// Where the first level too many opens.
        offset: usize,
    },
    /// Something follows the value.
    #[error("data after the end of the value at byte {offset}")]
    TrailingData {
        /// Where it starts.
        offset: usize,
    },
    /// The value is not an object.
    #[error("expected an object, found {found}")]
    NotAnObject {
        /// The kind of the value.
        found: &'static str,
    },
}

impl JsonError {
    /// Returns the byte at which the input went wrong, where there is one.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::InvalidUtf8 { offset }
            | Self::NotCompact { offset }
            | Self::Syntax { offset, .. }
            | Self::ControlCharacter { offset }
            | Self::LoneSurrogate { offset }
            | Self::NumberOutOfRange { offset }
            | Self::TooDeep { offset, .. }
            | Self::TrailingData { offset } => Some(*offset),
            Self::TooLong { .. }
            | Self::ByteOrderMark
            | Self::Empty
            | Self::DuplicateKey { .. }
            | Self::NotAnObject { .. } => None,
        }
    }
}

/// Says which field of a document is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// A required field is absent.
    #[error("field `{path}` is missing")]
    Missing {
        /// The field.
        path: String,
    },
    /// A field is `null`, which never stands for absent.
    #[error("field `{path}` must not be null; omit it or give it a value")]
    Null {
        /// The field.
        path: String,
    },
    /// A field has a value of another type.
    #[error("field `{path}` must be {expected}, not {found}")]
    WrongType {
        /// The field.
        path: String,
        /// The type that was expected.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// A field has the right type and a value that is not allowed.
    #[error("field `{path}`: {reason}")]
    Invalid {
        /// The field.
        path: String,
        /// Why the value is refused.
        reason: String,
    },
    /// A field that the document must not have.
    #[error("unknown field `{path}`")]
    Unknown {
        /// The field, its name escaped and shortened.
        path: String,
    },
}

impl FieldError {
    /// Makes an [`FieldError::Invalid`], for rules that span several fields.
    pub fn invalid(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            path: path.into(),
            reason: reason.into(),
        }
    }

    /// Returns the path of the field that is wrong.
    pub fn path(&self) -> &str {
        match self {
            Self::Missing { path }
            | Self::Null { path }
            | Self::WrongType { path, .. }
            | Self::Invalid { path, .. }
            | Self::Unknown { path } => path,
        }
    }
}

/// Longest foreign key that a message repeats, in characters.
const SHOWN_KEY: usize = 64;

/// Makes a foreign key safe to print: escapes what does not print and cuts what is too long.
pub(crate) fn shown(key: &str) -> String {
    let mut out = String::new();
    for (index, c) in key.chars().enumerate() {
        if index == SHOWN_KEY {
            out.push('…');
            break;
        }
        // Quotes need no escape inside backticks; everything that does not print does.
        if c == '"' || c == '\'' {
            out.push(c);
        } else {
            let _infallible = write!(out, "{}", c.escape_debug());
        }
    }
    out
}

fn quoted(key: &str) -> String {
    format!("`{}`", shown(key))
}

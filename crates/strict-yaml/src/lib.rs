//! YAML, read strictly: one document, no aliases, anchors, tags or merge keys, no key twice.
//!
//! The events are libyaml's, as the tools that write receipts use it; what this crate adds is
//! refusal. A scalar keeps its text and whether it was plain, so that the caller decides where a
//! text is wanted.
//!
//! - Bytes are UTF-8 without a byte order mark. A raw carriage return is refused wherever it
//!   stands: lines end in a line feed, so that no second spelling of a file has the same value.
//! - One `---` may stand in front. Directives, `...` and a second document are refused; comments
//!   and blank lines are white space.
//! - A document without any content is a plain `null`, so that the caller says what it misses.

mod build;
mod events;
mod fed;
mod preflight;

pub use build::{duplicate, shown};
pub use preflight::{line_at, text};

/// Deepest nesting that is read, whatever the limits say: callers recurse over the tree.
pub const MAX_DEPTH: usize = 512;

/// Most values (scalars, sequences, mappings) of one document: what bounds memory when the
/// document is made of very short ones.
pub const MAX_VALUES: usize = 2 << 20;

/// Limits that are checked before and while a document is read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest document in bytes.
    pub bytes: usize,
    /// Deepest nesting of sequences and mappings; at most [`MAX_DEPTH`].
    pub depth: usize,
}

/// A value with the place where it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its line, from 1.
    pub line: usize,
}

/// A value of a document, nothing resolved.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A scalar: its text, and whether it stood there without quotes or a block indicator.
    Scalar {
        /// The text, unescaped and unfolded.
        text: String,
        /// Whether it was plain, so that `1`, `true` and `null` may be more than text.
        plain: bool,
    },
    /// A sequence.
    Sequence(Vec<Node>),
    /// A mapping in the order of the document; keys are scalars, each once.
    Mapping(Vec<(String, Node)>),
}

/// Says why bytes are no document that is read here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlError {
    /// More bytes than allowed; nothing was read.
    #[error("{actual} bytes are more than the {limit} allowed")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// Malformed, or something that is refused here.
    #[error("line {line}: {reason}")]
    Refused {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

impl YamlError {
    /// Makes a refusal.
    pub fn refused(line: usize, reason: impl Into<String>) -> Self {
        Self::Refused {
            line,
            reason: reason.into(),
        }
    }
}

/// Reads one document.
///
/// # Errors
/// What is malformed, too much, or refused here, with its line.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Node, YamlError> {
    read(text(bytes, limits.bytes)?, limits)
}

/// Reads the text of one document that [`text`] has judged.
///
/// # Errors
/// As [`parse`].
pub fn read(text: &str, limits: &Limits) -> Result<Node, YamlError> {
    let limits = Limits {
        depth: limits.depth.min(MAX_DEPTH),
        ..*limits
    };
    preflight::yaml(text)?;
    events::read(text, &limits)
}

/// What is said of a document with more than [`MAX_VALUES`].
pub fn too_many() -> String {
    format!("more than {MAX_VALUES} values")
}

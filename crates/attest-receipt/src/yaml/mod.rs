//! YAML, read strictly: one document, no aliases, anchors, tags or merge keys, no key twice.
//!
//! The events are libyaml's, as the tools that write receipts use it; what this module adds is
//! refusal. A scalar keeps its text and whether it was plain, so that the caller decides where a
//! text is wanted; [`Node::into_json`] resolves plain scalars for documents that are typed.
//!
//! A document whose first byte other than white space is `{` is read as strict JSON first; only
//! what is no JSON by its syntax is then tried as YAML. What follows a whole value is refused and
//! not tried: JSON has no comments, and a text with U+2028 in it would be another one in YAML.
//!
//! Decided here, for both kinds of document:
//!
//! - Bytes are UTF-8 without a byte order mark. A raw carriage return is refused wherever it
//!   stands: lines end in a line feed, so that no second spelling of a file has the same value.
//! - One `---` may stand in front. Directives, `...`, a second document and bytes after the JSON
//!   value are refused; comments and blank lines are white space.
//! - A document without any content is a plain `null`, so that the caller says what it misses.

mod build;
mod events;
mod fed;
mod json;
mod preflight;
mod resolve;

use strict_json::Json;

/// Most values (scalars, sequences, mappings) of one document: what bounds memory when the
/// document is made of very short ones.
pub const MAX_VALUES: usize = 2 << 20;

/// Limits that are checked before and while a document is read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest document in bytes.
    pub bytes: usize,
    /// Deepest nesting of sequences and mappings; at most [`strict_json::MAX_DEPTH`].
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
    fn refused(line: usize, reason: impl Into<String>) -> Self {
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
    let text = preflight::text(bytes, limits.bytes)?;
    let limits = Limits {
        depth: limits.depth.min(strict_json::MAX_DEPTH),
        ..*limits
    };
    if let Some(read) = json::read(text, &limits) {
        return read;
    }
    preflight::yaml(text)?;
    events::read(text, &limits)
}

impl Node {
    /// Resolves plain scalars (lowercase `true`, `false` and `null`, numbers of JSON's grammar)
    /// and makes the strict tree; every other plain scalar is text.
    ///
    /// Text, too, is what some readers of YAML resolve and the writers of receipts do not quote:
    /// `yes`, `012`, `1_000`, `12:30`, dates, numbers beyond every range.
    ///
    /// # Errors
    /// A plain scalar that the original's reader resolves to something other than text: `True`,
    /// `~`, nothing at all, `0x1f`, `+1`, `.5`, `.inf`.
    pub fn into_json(self) -> Result<Json, YamlError> {
        resolve::node(self)
    }
}

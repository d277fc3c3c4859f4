//! YAML, read strictly: one document, no aliases, anchors, tags or merge keys, no key twice.
//!
//! The reader is that of `strict-yaml`. A scalar keeps its text and whether it was plain, so that
//! the caller decides where a text is wanted; [`IntoJson::into_json`] resolves plain scalars for
//! documents that are typed.
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

mod json;
mod resolve;

use strict_json::Json;
pub use strict_yaml::{Limits, MAX_VALUES, Node, Value, YamlError};

/// Reads one document.
///
/// # Errors
/// What is malformed, too much, or refused here, with its line.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Node, YamlError> {
    let text = strict_yaml::text(bytes, limits.bytes)?;
    let limits = Limits {
        depth: limits.depth.min(strict_json::MAX_DEPTH),
        ..*limits
    };
    if let Some(read) = json::read(text, &limits) {
        return read;
    }
    strict_yaml::read(text, &limits)
}

/// A document that is typed.
pub trait IntoJson {
    /// Resolves plain scalars (lowercase `true`, `false` and `null`, numbers of JSON's grammar)
    /// and makes the strict tree; every other plain scalar is text.
    ///
    /// Text, too, is what some readers of YAML resolve and the writers of receipts do not quote:
    /// `yes`, `012`, `1_000`, `12:30`, dates, numbers beyond every range.
    ///
    /// # Errors
    /// A plain scalar that the original's reader resolves to something other than text: `True`,
    /// `~`, nothing at all, `0x1f`, `+1`, `.5`, `.inf`.
    fn into_json(self) -> Result<Json, YamlError>;
}

impl IntoJson for Node {
    fn into_json(self) -> Result<Json, YamlError> {
        resolve::node(self)
    }
}

//! A document's frontmatter and what follows it.

use std::borrow::Cow;

use strict_yaml::{Limits, YamlError};

/// Longest frontmatter in bytes, and its deepest nesting.
pub(crate) const LIMITS: Limits = Limits {
    bytes: 256 * 1024,
    depth: 32,
};

/// The two parts of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// What stands between the delimiters.
    pub head: &'a str,
    /// What follows the line end of the closing one.
    pub body: &'a str,
}

/// Splits a document; `None` says that it has no frontmatter. One byte order mark may stand in
/// front; nothing else may.
pub(crate) fn split(content: &str) -> Option<Parts<'_>> {
    let text = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_delimiter(line))?;
    let mut end = first.len();
    for line in lines {
        if is_delimiter(line) {
            return Some(Parts {
                head: text.get(first.len()..end)?,
                body: text.get(end + line.len()..)?,
            });
        }
        end += line.len();
    }
    None
}

fn is_delimiter(line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.trim_end_matches([' ', '\t']) == "---"
}

/// Reads what stands between the delimiters.
pub(crate) fn read(head: &str) -> Result<strict_json::Json, YamlError> {
    // A frontmatter may end its lines either way; the strict reader knows one.
    let head = match head.contains("\r\n") {
        true => Cow::Owned(head.replace("\r\n", "\n")),
        false => Cow::Borrowed(head),
    };
    crate::scalar::json(strict_yaml::parse(head.as_bytes(), &LIMITS)?)
}

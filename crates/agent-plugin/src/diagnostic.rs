//! What was found in a package, and where.

use serde::Serialize;

use crate::Code;

/// Most diagnostics of one load; the last one then says that more were found.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// Longest foreign text that a message repeats, in characters.
const SHOWN: usize = 64;

/// Longest part of a JSON pointer, in characters. A thousand findings below one long name would
/// otherwise hold it a thousand times.
const PART: usize = 256;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is rejected, disabled or skipped.
    Error,
    /// Everything loads that can.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How much it weighs.
    pub severity: Severity,
    /// What it is about.
    pub code: Code,
    /// The file, relative to the package; a member in it follows `#` as a JSON pointer, of which a
    /// name beyond 256 characters is cut and ends in `…`.
    pub path: String,
    /// What is wrong, for people.
    pub message: String,
}

impl Diagnostic {
    /// Makes an error.
    pub fn error(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            path: path.into(),
            message: message.into(),
        }
    }

    /// Makes a warning.
    pub fn warning(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, path, message)
        }
    }
}

/// The findings of one load, bounded.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Diagnostic>,
    errors: usize,
}

impl Report {
    pub(crate) fn push(&mut self, found: Diagnostic) {
        self.errors += usize::from(found.severity == Severity::Error);
        match self.found.len().cmp(&(MAX_DIAGNOSTICS - 1)) {
            std::cmp::Ordering::Less => self.found.push(found),
            std::cmp::Ordering::Equal => self.found.push(Diagnostic {
                severity: found.severity,
                ..Diagnostic::error(Code::LimitExceeded, "", "more was found than is listed")
            }),
            std::cmp::Ordering::Greater => self.weigh_last(found.severity),
        }
    }

    /// An error that is not listed still makes the last line an error.
    fn weigh_last(&mut self, severity: Severity) {
        if let Some(last) = self.found.last_mut() {
            last.severity = last.severity.min(severity);
        }
    }

    pub(crate) fn error(&mut self, code: Code, path: &str, message: impl Into<String>) {
        self.push(Diagnostic::error(code, path, message));
    }

    pub(crate) fn warning(&mut self, code: Code, path: &str, message: impl Into<String>) {
        self.push(Diagnostic::warning(code, path, message));
    }

    /// Counts the errors so far, listed or not.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }
}

/// Joins a path and one more part of a JSON pointer; a part that is too long is cut.
pub(crate) fn member(path: &str, key: &str) -> String {
    let mark = if path.contains('#') { "" } else { "#" };
    let (key, cut) = match key.char_indices().nth(PART) {
        Some((end, _)) => (key.get(..end).unwrap_or_default(), "…"),
        None => (key, ""),
    };
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{path}{mark}/{key}{cut}")
}

/// Makes foreign text safe to print: escapes what does not print and cuts what is too long.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

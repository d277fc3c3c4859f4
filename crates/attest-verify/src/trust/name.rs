//! The name that people give to a key.

use std::fmt;

use bounded::text::{has_control_or_format, is_trimmed};

use super::error::KeyError;

/// The name of a key that is generated or imported here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

impl KeyName {
    /// The greatest length in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// It is empty, too long, has white space at an end, or characters that are invisible or that
    /// make a path.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let refused = |reason| Err(KeyError::Name(reason));
        if text.is_empty() {
            return refused("is not empty");
        }
        if text.len() > Self::MAX_BYTES {
            return refused("has at most 128 bytes");
        }
        if !is_trimmed(text) {
            return refused("neither begins nor ends with white space");
        }
        if has_control_or_format(text) {
            return refused("has no control or formatting characters");
        }
        if text.contains(['/', '\\']) {
            return refused("has no `/` and no `\\`");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_visible_and_no_paths() {
        for good in [
            "a",
            "ci-master",
            "Release Team 2026",
            "clé",
            &"n".repeat(128),
        ] {
            assert_eq!(KeyName::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            " a",
            "a\n",
            "a\tb",
            "a\0b",
            "\u{1b}[2J",
            "a\u{202e}b",
            "a\u{200b}b",
            "a/b",
            "..\\b",
            &"n".repeat(129),
        ] {
            let error = KeyName::new(bad).unwrap_err();
            assert!(matches!(error, KeyError::Name(_)), "{bad:?}: {error}");
        }
    }
}

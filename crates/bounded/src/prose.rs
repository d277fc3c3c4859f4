//! Texts bounded in bytes, and the stricter ones that people read: subjects and reports.

use serde::{Deserialize, Serialize};

use crate::error::{BoundError, check_length};
use crate::text::{first_control_or_format, is_trimmed};
use crate::text_type::text_traits;

/// A text of `MIN` to `MAX` bytes of UTF-8, whatever its characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoundedText<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> BoundedText<MIN, MAX> {
    /// Checks the length and keeps the text.
    pub fn new(text: impl Into<String>) -> Result<Self, BoundError> {
        let text = text.into();
        check_length(&text, MIN, MAX)?;
        Ok(Self(text))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_traits!([const MIN: usize, const MAX: usize] BoundedText<MIN, MAX>);

/// One line that people read: 1 to `MAX` bytes, trimmed, no control or format characters, no line
/// or paragraph separators.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReportText<const MAX: usize>(String);

impl<const MAX: usize> ReportText<MAX> {
    /// Checks the rules and keeps the text.
    pub fn new(text: impl Into<String>) -> Result<Self, BoundError> {
        let text = text.into();
        check_length(&text, 1, MAX)?;
        if !is_trimmed(&text) {
            return Err(BoundError::Untrimmed);
        }
        match first_control_or_format(&text) {
            None => Ok(Self(text)),
            Some(character) => Err(BoundError::ControlOrFormat { character }),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_traits!([const MAX: usize] ReportText<MAX>);

/// The subject of a commit: one trimmed line of 1 to 256 bytes.
pub type CommitSubject = ReportText<256>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_count_bytes_not_characters() {
        assert!(BoundedText::<1, 4>::new("€a").is_ok());
        assert_eq!(
            BoundedText::<1, 4>::new("€€"),
            Err(BoundError::Length {
                min: 1,
                max: 4,
                actual: 6
            })
        );
        assert!(BoundedText::<1, 4>::new("").is_err());
        assert!(BoundedText::<0, 4>::new("").is_ok());
        assert!(CommitSubject::new("é".repeat(128)).is_ok());
        assert!(CommitSubject::new(format!("{}a", "é".repeat(128))).is_err());
    }

    #[test]
    fn subjects_are_one_trimmed_line() {
        for good in [
            "feat: x",
            "-n",
            "#1",
            "\"quoted\"",
            "a\u{a0}b",
            "a\u{e000}b",
            "a\u{378}b",
        ] {
            assert!(CommitSubject::new(good).is_ok(), "{good:?}");
        }
        for bad in [" a", "a ", "\u{a0}a", "a\u{3000}", "\u{2003}"] {
            assert_eq!(
                CommitSubject::new(bad),
                Err(BoundError::Untrimmed),
                "{bad:?}"
            );
        }
        let inside = [
            '\n',
            '\r',
            '\t',
            '\0',
            '\u{7f}',
            '\u{85}',
            '\u{ad}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{2028}',
            '\u{2029}',
            '\u{e0001}',
            '\u{600}',
        ];
        for character in inside {
            assert_eq!(
                CommitSubject::new(format!("a{character}b")),
                Err(BoundError::ControlOrFormat { character })
            );
        }
    }

    #[test]
    fn serde_goes_through_the_rule() {
        assert!(serde_json::from_str::<CommitSubject>(r#""a\u202eb""#).is_err());
        let subject: CommitSubject = serde_json::from_str(r#""fine""#).unwrap();
        assert_eq!(serde_json::to_string(&subject).unwrap(), r#""fine""#);
    }
}

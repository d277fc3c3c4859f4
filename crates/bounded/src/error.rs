//! Why a text is refused. Messages never repeat the text itself: it may be long, or a secret.

/// Says which rule a value breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundError {
    /// Too short or too long, counted in bytes of UTF-8.
    #[error("must be {min} to {max} bytes long, not {actual}")]
    Length {
        /// Fewest bytes that are allowed.
        min: usize,
        /// Most bytes that are allowed.
        max: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// Not the hexadecimal form of an id.
    #[error("must be exactly {digits} lowercase hexadecimal digits")]
    Hex {
        /// Digits that the id has.
        digits: usize,
    },
    /// Characters or their order do not follow the pattern.
    #[error("must match `{pattern}`")]
    Pattern {
        /// The pattern, as a regular expression.
        pattern: &'static str,
    },
    /// White space at one of the ends.
    #[error("must not start or end with white space")]
    Untrimmed,
    /// A character that could hide or reorder text, or break the line.
    #[error("must not contain the control or format character U+{:04X}", u32::from(*.character))]
    ControlOrFormat {
        /// The first such character.
        character: char,
    },
    /// Not a branch name that git takes.
    #[error("is no valid branch name: {reason}")]
    Branch {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// Not a duration such as `1h2m3.5s`.
    #[error("is no valid duration (such as `1h2m3.5s` or `250ms`): {reason}")]
    Duration {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// Not the name or address of an author.
    #[error("is no valid author {part}: {reason}")]
    Author {
        /// `name` or `email`.
        part: &'static str,
        /// The rule that it breaks.
        reason: &'static str,
    },
}

/// Checks a length in bytes.
pub(crate) fn check_length(text: &str, min: usize, max: usize) -> Result<(), BoundError> {
    let actual = text.len();
    if (min..=max).contains(&actual) {
        Ok(())
    } else {
        Err(BoundError::Length { min, max, actual })
    }
}

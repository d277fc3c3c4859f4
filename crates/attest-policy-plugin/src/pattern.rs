//! Patterns over names, paths and commands: one meaning of `*` everywhere.
//!
//! `*` stands for any characters, also `/` and line breaks, `?` for one, `[abc]` and `[!abc]` for
//! one of a set. Matching takes the whole text, tells cases apart and never backtracks beyond the
//! last `*`, so that hostile text costs no more than its length times the pattern's.

use glob::MatchOptions;

/// Longest pattern in bytes.
pub(crate) const MAX_BYTES: usize = 1_024;

/// What ends a command of a shell, begins another or leads its output elsewhere.
const OPERATORS: [char; 9] = [';', '&', '|', '<', '>', '(', ')', '`', '\n'];

/// What stands around a command without a meaning.
pub(crate) const AROUND_COMMANDS: [char; 3] = [' ', '\t', '\n'];

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: false,
    require_literal_leading_dot: false,
};

/// A pattern that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
    glob: glob::Pattern,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("is empty, which matches nothing")]
    Empty,
    #[error("has {0} bytes, {MAX_BYTES} are the limit")]
    TooLong(usize),
    #[error("has `**`; one `*` matches `/` as well")]
    TwoStars,
    #[error("has a `[` that nothing closes; write `[[]` for the character itself")]
    Bracket,
    #[error(
        "has {0:?} in brackets, which cannot be told from what a `*` stands for; write it outside of them"
    )]
    OperatorInSet(char),
    #[error("has a range that holds nothing; the lower end comes first")]
    Range,
    #[error("begins or ends with white space, which a command is compared without")]
    CommandEnds,
    #[error("has a `=`, which is in no name of a variable; values are not judged")]
    VariableName,
    #[error(
        "begins with `/`, `./` or `../` or ends with `/`; outputs are compared as in `out/app`"
    )]
    OutputEnds,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        if outside_of_sets(text).contains("**") {
            return Err(PatternError::TwoStars);
        }
        let glob = glob::Pattern::new(text).map_err(|_| PatternError::Bracket)?;
        if sets(text).iter().any(|set| has_empty_range(set)) {
            return Err(PatternError::Range);
        }
        let text = text.to_owned();
        Ok(Self { text, glob })
    }

    /// Reads a pattern of commands. One that could match none is a mistake: a rule that denies
    /// would deny nothing.
    pub(crate) fn of_command(text: &str) -> Result<Self, PatternError> {
        let pattern = Self::new(text)?;
        if text.trim_matches(AROUND_COMMANDS) != text {
            return Err(PatternError::CommandEnds);
        }
        Ok(pattern)
    }

    /// Reads a pattern of names of variables.
    pub(crate) fn of_variable(text: &str) -> Result<Self, PatternError> {
        if text.contains('=') {
            return Err(PatternError::VariableName);
        }
        Self::new(text)
    }

    /// Reads a pattern of declared outputs.
    pub(crate) fn of_output(text: &str) -> Result<Self, PatternError> {
        let begins = ["/", "./", "../"].iter().any(|it| text.starts_with(it));
        if begins || text.ends_with('/') {
            return Err(PatternError::OutputEnds);
        }
        Self::new(text)
    }

    /// Reads a pattern for [`Pattern::allows`].
    pub(crate) fn of_allowed(text: &str) -> Result<Self, PatternError> {
        let pattern = Self::of_command(text)?;
        let outside = outside_of_sets(text);
        let inside = |operator: &char| count(text, *operator) > count(&outside, *operator);
        match OPERATORS.into_iter().find(inside) {
            Some(operator) => Err(PatternError::OperatorInSet(operator)),
            None => Ok(pattern),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.glob.matches_with(text, OPTIONS)
    }

    /// Tells whether the command is the one that the author wrote down: nothing that `*`, `?` or a
    /// set stands for holds an operator of the shell. `make *` is no leave for `make; curl … | sh`.
    pub(crate) fn allows(&self, command: &str) -> bool {
        // Operators stand in the pattern literally, so equal numbers leave none for the rest.
        let literal = |operator: &char| count(command, *operator) == count(&self.text, *operator);
        self.matches(command) && OPERATORS.iter().all(literal)
    }
}

/// Tells whether the first of the patterns that matches exists.
pub(crate) fn first<'a>(patterns: &'a [Pattern], text: &str) -> Option<&'a Pattern> {
    patterns.iter().find(|pattern| pattern.matches(text))
}

fn count(text: &str, wanted: char) -> usize {
    text.matches(wanted).count()
}

/// The pattern with each `[…]` replaced by `[]`, as the glob crate finds them.
fn outside_of_sets(text: &str) -> String {
    apart(text).0
}

/// What stands in each `[…]`, without the `!`.
fn sets(text: &str) -> Vec<&str> {
    apart(text).1
}

fn apart(text: &str) -> (String, Vec<&str>) {
    let (mut outside, mut sets) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some((before, set)) = rest.split_once('[') {
        outside.push_str(before);
        outside.push_str("[]");
        let set = set.strip_prefix('!').unwrap_or(set);
        // The first member may be `]` itself.
        match set
            .char_indices()
            .skip(1)
            .find(|(_, letter)| *letter == ']')
        {
            Some((end, _)) => {
                sets.extend(set.get(..end));
                rest = set.get(end + 1..).unwrap_or_default();
            }
            None => return (outside, sets), // never closed: the glob crate refuses it
        }
    }
    outside.push_str(rest);
    (outside, sets)
}

/// Tells whether a set has a range such as `z-a`, read from the left as the glob crate does.
fn has_empty_range(set: &str) -> bool {
    let letters: Vec<char> = set.chars().collect();
    let mut rest = letters.as_slice();
    loop {
        rest = match rest {
            [low, '-', high, ..] if low > high => return true,
            [_, '-', _, more @ ..] | [_, more @ ..] => more,
            [] => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_case::test_case;

    #[test_case("make", "make", true)]
    #[test_case("make", "make all", false; "the whole text")]
    #[test_case("make *", "make -C a/b all", true; "a star crosses slashes")]
    #[test_case("a*c", "a\nb\nc", true; "and lines")]
    #[test_case("?", "é", true; "one character and not one byte")]
    #[test_case("[ab]c", "bc", true)]
    #[test_case("[!ab]c", "bc", false)]
    #[test_case("[[]x", "[x", true)]
    #[test_case("Make", "make", false; "cases differ")]
    #[test_case(".*", ".hidden", true)]
    #[test_case("*", ".hidden", true; "a dot is a character")]
    fn matching(pattern: &str, text: &str, matches: bool) {
        assert_eq!(Pattern::new(pattern).unwrap().matches(text), matches);
    }

    #[test_case("make *", "make all", true)]
    #[test_case("make *", "make; curl x | sh", false)]
    #[test_case("make *", "make all\ncurl x", false)]
    #[test_case("make *", "make `id`", false)]
    #[test_case("make *", "make $(id)", false)]
    #[test_case("make *", "make > /etc/passwd", false)]
    #[test_case("make *", "make & other", false)]
    #[test_case("make?all", "make;all", false; "not by a question mark either")]
    #[test_case("make[!a]all", "make;all", false; "nor by a set")]
    #[test_case("cat * | sort", "cat a b | sort", true; "an operator that was written down")]
    #[test_case("cat * | sort", "cat a | sh | sort", false; "and no second one")]
    #[test_case("*", "true && false", false; "not even by a star alone")]
    fn allowing(pattern: &str, command: &str, allows: bool) {
        assert_eq!(
            Pattern::of_allowed(pattern).unwrap().allows(command),
            allows
        );
    }

    #[test]
    fn what_is_no_pattern() {
        assert_eq!(Pattern::new(""), Err(PatternError::Empty));
        assert_eq!(Pattern::new("a**"), Err(PatternError::TwoStars));
        assert_eq!(Pattern::new("a[b"), Err(PatternError::Bracket));
        assert_eq!(Pattern::new("[]"), Err(PatternError::Bracket));
        assert!(Pattern::new(&"a".repeat(MAX_BYTES)).is_ok());
        assert_eq!(
            Pattern::new(&"a".repeat(MAX_BYTES + 1)),
            Err(PatternError::TooLong(MAX_BYTES + 1))
        );
        assert!(Pattern::new("[**]").unwrap().matches("*"));
        assert_eq!(
            Pattern::of_allowed("a[;x]"),
            Err(PatternError::OperatorInSet(';'))
        );
        assert_eq!(
            Pattern::of_allowed("a[!;]"),
            Err(PatternError::OperatorInSet(';'))
        );
        assert_eq!(
            Pattern::of_allowed("[]&]"),
            Err(PatternError::OperatorInSet('&'))
        );
    }

    #[test_case("[z-a]", true)]
    #[test_case("x[a-b9-0]", true; "the second range of a set")]
    #[test_case("x[!b-a]y", true; "turned round it would match everything")]
    #[test_case("[a-z]", false)]
    #[test_case("[a-a]", false)]
    #[test_case("[-a]", false)]
    #[test_case("[z-]", false)]
    #[test_case("[a-c-a]", false; "the second hyphen stands for itself")]
    #[test_case("z-a", false; "outside of a set")]
    #[test_case("[]-a]", false)]
    fn a_range_that_holds_nothing(pattern: &str, refused: bool) {
        let found = Pattern::new(pattern).err();
        assert_eq!(found, refused.then_some(PatternError::Range));
    }

    #[test]
    fn what_could_match_nothing_of_its_kind() {
        for text in [" make", "rm ", "\tmake", "make\n"] {
            let wrong = Some(PatternError::CommandEnds);
            assert_eq!(Pattern::of_command(text).err(), wrong, "{text:?}");
            assert_eq!(Pattern::of_allowed(text).err(), wrong, "{text:?}");
        }
        for text in ["LD_PRELOAD=*", "A=", "[A=]"] {
            let wrong = Some(PatternError::VariableName);
            assert_eq!(Pattern::of_variable(text).err(), wrong, "{text}");
        }
        for text in ["/out", "./out/app", "../out", "out/", "/", "./"] {
            let wrong = Some(PatternError::OutputEnds);
            assert_eq!(Pattern::of_output(text).err(), wrong, "{text}");
        }
        for text in ["*", ".*", "out/*", ".hidden/a", "..a", "."] {
            Pattern::of_output(text).unwrap();
        }
        Pattern::of_variable("LD_*").unwrap();
        Pattern::of_command("rm *").unwrap();
    }

    #[test]
    fn many_stars_over_long_text_are_no_trap() {
        let pattern = Pattern::new(&"*a".repeat(500)).unwrap();
        assert!(!pattern.matches(&"a".repeat(499)));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(100_000))));
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_an_error(text in ".{0,40}", subject in ".{0,40}") {
            if let Ok(pattern) = Pattern::of_allowed(&text) {
                // What is allowed matches, never the other way round.
                prop_assert!(!pattern.allows(&subject) || pattern.matches(&subject));
            }
        }

        #[test]
        fn what_stars_stand_for_has_no_operator(
            head in "[a-z]{1,5}", tail in "[a-z;|&<>()`\\n ]{0,12}",
        ) {
            let pattern = Pattern::of_allowed(&format!("{head}*")).unwrap();
            let free = !tail.contains(OPERATORS);
            let command = format!("{head}{tail}");
            prop_assert_eq!(pattern.allows(&command), free);
        }
    }
}

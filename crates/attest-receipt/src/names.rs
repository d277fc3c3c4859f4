//! Names of steps: what everybody who reads them can tell apart.
//!
//! A policy, a person and a program must mean the same step by the same name. So a name shows what
//! it is made of, and no two names of one document look like each other (UTS 39).

use std::collections::{BTreeMap, BTreeSet};

use unicode_security::confusable_detection::skeleton;

/// Says why a text is no name of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing of it can be seen.
    #[error("has a blank name")]
    Blank,
    /// It could forge a line.
    #[error("has a control character in its name")]
    Control,
    /// It could hide or turn round a part of the name.
    #[error("has the invisible character U+{:04X} in its name", u32::from(*.0))]
    Invisible(char),
}

/// Refuses a name that is blank or has a control, format or bidirectional character.
///
/// # Errors
/// Which of them it is.
pub fn check(name: &str) -> Result<(), NameError> {
    match bounded::text::first_control_or_format(name) {
        Some(c) if c.is_control() => Err(NameError::Control),
        Some(c) => Err(NameError::Invisible(c)),
        // The skeleton has no fillers and variation selectors any more.
        None if skeleton(name).all(is_blank) => Err(NameError::Blank),
        None => Ok(()),
    }
}

/// Returns the names that look like another one, each with one that it looks like.
///
/// Names look alike if their skeletons are the same, which covers every spelling of one text that
/// Unicode holds to be equal, or if they differ in white space alone. Two names of nothing but ASCII
/// are told apart by their characters: `l1` and `11` are usual names of different steps.
#[must_use]
pub fn alike<'a>(names: &BTreeSet<&'a str>) -> Vec<(&'a str, &'a str)> {
    if names.len() < 2 {
        return Vec::new();
    }
    let plain = names.iter().all(|name| name.is_ascii());
    let groups = grouped(names.iter().copied(), |name| {
        if plain {
            spaced(name.chars())
        } else {
            spaced(skeleton(name))
        }
    });
    let mut pairs = Vec::new();
    for group in groups.into_values() {
        if let Some(odd) = group.iter().find(|name| !name.is_ascii()) {
            let others = group.iter().filter(|name| *name != odd);
            pairs.extend(others.map(|name| (*name, *odd)));
        } else {
            for group in grouped(group.into_iter(), |name| spaced(name.chars())).values() {
                if let [first, others @ ..] = group.as_slice() {
                    pairs.extend(others.iter().map(|name| (*name, *first)));
                }
            }
        }
    }
    pairs
}

fn grouped<'a>(
    names: impl Iterator<Item = &'a str>,
    key: impl Fn(&str) -> [u8; 32],
) -> BTreeMap<[u8; 32], Vec<&'a str>> {
    let mut groups: BTreeMap<[u8; 32], Vec<&str>> = BTreeMap::new();
    for name in names {
        groups.entry(key(name)).or_default().push(name);
    }
    groups
}

/// Hashes a text with one space for white space between words and none around them. A skeleton may
/// be eleven times as long as its name, so it is kept nowhere.
fn spaced(text: impl Iterator<Item = char>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut piece = String::with_capacity(PIECE);
    let (mut begun, mut gap) = (false, false);
    for c in text {
        if is_blank(c) {
            gap = begun;
            continue;
        }
        if gap {
            piece.push(' ');
        }
        (begun, gap) = (true, false);
        piece.push(c);
        if piece.len() > PIECE - 8 {
            hasher.update(piece.as_bytes());
            piece.clear();
        }
    }
    hasher.update(piece.as_bytes());
    hasher.finalize().into()
}

/// How many bytes are hashed at once.
const PIECE: usize = 1024;

/// Tells whether a character is white space or looks like it: U+2800 is Braille without a dot.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

/// Makes a name safe to print and shows what it is made of: another alphabet is spelled in numbers.
pub(crate) fn spelled(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(SPELLED) {
        if c.is_ascii_graphic() || c == ' ' {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    if name.chars().nth(SPELLED).is_some() {
        out.push('…');
    }
    out
}

/// Longest name that a message spells, in characters.
const SPELLED: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&'static str]) -> Vec<(&'static str, &'static str)> {
        alike(&names.iter().copied().collect())
    }

    #[test]
    fn a08_a_name_shows_what_it_is_made_of() {
        for (name, error) in [
            ("", NameError::Blank),
            (" ", NameError::Blank),
            ("\u{a0}\u{3000}", NameError::Blank),
            ("\u{2800}", NameError::Blank),
            ("\u{3164}", NameError::Blank),
            ("\u{fe0f}", NameError::Blank),
            ("\t", NameError::Control),
            ("a\nb", NameError::Control),
            ("a\0", NameError::Control),
            ("a\u{85}", NameError::Control),
            ("a\u{200b}", NameError::Invisible('\u{200b}')),
            ("\u{202e}a", NameError::Invisible('\u{202e}')),
            ("a\u{2066}b", NameError::Invisible('\u{2066}')),
            ("a\u{61c}", NameError::Invisible('\u{61c}')),
            ("a\u{ad}b", NameError::Invisible('\u{ad}')),
            ("\u{feff}a", NameError::Invisible('\u{feff}')),
            ("a\u{2028}", NameError::Invisible('\u{2028}')),
            ("a\u{e0041}", NameError::Invisible('\u{e0041}')),
        ] {
            assert_eq!(check(name), Err(error), "{name:?}");
        }
        for name in [
            "a",
            "check it",
            "1st",
            "odd: names & numbers",
            "пуск",
            "e\u{301}",
            "\u{1f3d7}\u{fe0f} build",
            "-",
        ] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
        assert_eq!(
            NameError::Invisible('\u{ad}').to_string(),
            "has the invisible character U+00AD in its name"
        );
    }

    #[test]
    fn a08_names_that_look_alike_are_found() {
        for (one, other) in [
            ("build", "bu\u{456}ld"),
            ("lint", "\u{217c}int"),
            ("a", "\u{430}"),
            ("\u{e9}", "e\u{301}"),
            ("\u{212b}", "\u{c5}"),
            ("a b", "a\u{a0}b"),
            ("a", "a\u{fe0f}"),
            ("a", "a\u{3164}"),
            ("\u{440}\u{430}\u{443}", "pay"),
            ("m", "r\u{578}"),
            ("build", "build "),
            (" build", "build"),
            ("a b \u{430}", " a  b\u{2003}a "),
            ("a b", "a  b"),
            ("\u{430} b", "a  b"),
        ] {
            assert_eq!(pairs(&[one, other, "x"]).len(), 1, "{one} {other}");
        }
        let mut three = pairs(&["build", "bu\u{456}ld", "build ", "test"]);
        three.sort_unstable();
        assert_eq!(three, [("build", "bu\u{456}ld"), ("build ", "bu\u{456}ld")]);
    }

    #[test]
    fn a08_names_that_differ_for_every_reader_are_left_alone() {
        for names in [
            &["a", "A"][..],
            &["l1", "11", "I1", "O", "0", "rn", "m"],
            &["l1", "11", "пуск"],
            &["build", "build-2", "rebuild"],
            &["сборка", "тест", "test"],
            &["a b", "ab", "a-b"],
            &[],
        ] {
            assert_eq!(pairs(names), [], "{names:?}");
        }
    }

    #[test]
    fn a_name_is_spelled_so_that_the_difference_shows() {
        assert_eq!(spelled("bu\u{456}ld \u{1b}"), r"bu\u{456}ld \u{1b}");
        assert_eq!(spelled(&"a".repeat(101)).chars().count(), 101);
    }
}

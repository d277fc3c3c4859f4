//! Replaces the values of secret variables in whatever a step writes.
//!
//! Bytes are held back only while they could be the start of a value, so what comes in pieces is
//! found like what comes at once.

use std::collections::{BTreeMap, BTreeSet};

use bounded::text::visible_bytes;

/// Shorter values would turn up by chance everywhere; they are not replaced.
pub const SHORTEST: usize = 4;

/// The values that never leave a run.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Longest first, so that no value leaves its tail when another one is its start.
    patterns: Vec<Pattern>,
    first_bytes: BTreeSet<u8>,
    too_short: Vec<String>,
}

#[derive(Clone)]
struct Pattern {
    name: String,
    value: Vec<u8>,
    mark: Vec<u8>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets")
            .field("patterns", &self.patterns.len())
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// Collects names and values; one name may have several values. Of a value of several lines,
    /// each line is a value too, since programs print them apart; and so is what a value looks
    /// like once its control characters are visible, since messages are made so.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut names: BTreeMap<Vec<u8>, &str> = BTreeMap::new();
        let mut too_short = BTreeSet::new();
        for (name, value) in values {
            let value = value.trim_ascii();
            if value.len() < SHORTEST && !value.is_empty() {
                too_short.insert(name.to_owned());
            }
            let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            for part in std::iter::once(value).chain(lines) {
                if part.len() >= SHORTEST {
                    names.entry(part.to_vec()).or_insert(name);
                    let shown = visible_bytes(part).into_bytes();
                    names.entry(shown).or_insert(name);
                }
            }
        }
        let mut patterns: Vec<_> = names
            .into_iter()
            .map(|(value, name)| Pattern {
                name: name.to_owned(),
                value,
                mark: format!("[redacted {name}]").into_bytes(),
            })
            .collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.value.len()));
        let first_bytes = patterns
            .iter()
            .filter_map(|pattern| pattern.value.first().copied())
            .collect();
        Self {
            patterns,
            first_bytes,
            too_short: too_short.into_iter().collect(),
        }
    }

    /// Returns the names whose values are too short to be replaced.
    #[must_use]
    pub fn too_short(&self) -> &[String] {
        &self.too_short
    }

    /// Replaces every value in a whole text, which nothing was cut from.
    #[must_use]
    pub fn replace(&self, text: &str) -> String {
        if self.patterns.is_empty() {
            return text.to_owned();
        }
        let mut redactor = Redactor::new(self);
        let mut out = redactor.push(text.as_bytes());
        out.extend(redactor.decide(After::Nothing));
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Tells whether nothing is to be hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the name of a secret whose value stands in the text. The marks that stand for
    /// values are passed over: `[redacted KEY]` would give away a value of `redacted`.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<&str> {
        let mut from = 0;
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            // Most bytes start no mark.
            let mark = match rest.first() {
                Some(b'[') => self.patterns.iter().find(|p| rest.starts_with(&p.mark)),
                _ => None,
            };
            let Some(mark) = mark else {
                at += 1;
                continue;
            };
            let found = self.find_plain(text.get(from..at).unwrap_or_default());
            if found.is_some() {
                return found;
            }
            at += mark.mark.len();
            from = at;
        }
        self.find_plain(text.get(from..).unwrap_or_default())
    }

    fn find_plain(&self, text: &[u8]) -> Option<&str> {
        let places = (0..text.len()).filter_map(|at| text.get(at..));
        places
            .filter(|rest| {
                rest.first()
                    .is_some_and(|byte| self.first_bytes.contains(byte))
            })
            .find_map(|rest| self.patterns.iter().find(|p| rest.starts_with(&p.value)))
            .map(|pattern| pattern.name.as_str())
    }

    /// Says what stands at the start of `bytes`.
    fn look(&self, bytes: &[u8], after: After) -> Look<'_> {
        for pattern in &self.patterns {
            if bytes.starts_with(&pattern.value) {
                return Look::Secret(pattern, pattern.value.len());
            }
            if !pattern.value.starts_with(bytes) {
                continue;
            }
            match after {
                After::More => return Look::Undecided,
                After::Cut if gives_away(bytes.len(), pattern.value.len()) => {
                    let whole = self.patterns.iter().find(|whole| whole.value == bytes);
                    return Look::Secret(whole.unwrap_or(pattern), bytes.len());
                }
                After::Cut | After::Nothing => {}
            }
        }
        Look::Plain
    }
}

/// Tells whether the start of a value says too much of it: half of it, and no chance match.
const fn gives_away(start: usize, whole: usize) -> bool {
    start >= SHORTEST && start >= whole.div_ceil(2)
}

enum Look<'a> {
    Plain,
    Undecided,
    Secret(&'a Pattern, usize),
}

/// What follows the bytes at hand.
#[derive(Clone, Copy)]
enum After {
    /// More bytes may follow.
    More,
    /// The stream ended, perhaps in the middle of a value.
    Cut,
    /// The text is whole.
    Nothing,
}

/// Replaces values in a stream. Values that overlap are replaced together, by the marks of all.
#[derive(Debug)]
pub struct Redactor<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
    /// How many of the held bytes belong to values whose marks are written already.
    covered: usize,
    /// The last mark of the covered bytes.
    mark: &'a [u8],
}

impl<'a> Redactor<'a> {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            held: Vec::new(),
            covered: 0,
            mark: b"",
        }
    }

    /// Takes the next bytes and returns those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.secrets.patterns.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        self.decide(After::More)
    }

    /// Returns what was held back when the stream ends. A command that was killed may have written
    /// most of a value: a start of at least half of it, and of four bytes, is replaced too.
    pub fn finish(&mut self) -> Vec<u8> {
        self.decide(After::Cut)
    }

    fn decide(&mut self, after: After) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(rest) = self.held.get(at..)
            && let Some(first) = rest.first()
        {
            let look = if self.secrets.first_bytes.contains(first) {
                self.secrets.look(rest, after)
            } else {
                Look::Plain
            };
            match look {
                Look::Undecided => break,
                Look::Secret(pattern, length) if at + length > self.covered => {
                    // Marks follow each other only where another value goes on.
                    if at >= self.covered || self.mark != pattern.mark {
                        out.extend_from_slice(&pattern.mark);
                        self.mark = &pattern.mark;
                    }
                    self.covered = at + length;
                }
                Look::Plain if at >= self.covered => out.push(*first),
                Look::Secret(..) | Look::Plain => {}
            }
            at += 1;
        }
        self.held.drain(..at);
        self.covered = self.covered.saturating_sub(at);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(secrets: &Secrets, pieces: &[&str]) -> String {
        let mut redactor = Redactor::new(secrets);
        let mut out = Vec::new();
        for piece in pieces {
            out.extend(redactor.push(piece.as_bytes()));
        }
        out.extend(redactor.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_is_found_wherever_the_stream_is_cut() {
        let secrets = Secrets::new([("TOKEN", b"s3cr3t-s3cr3u".as_slice())]);
        let text = "a s3cr3t-s3cr3t-s3cr3u b s3cr3-";
        let whole = stream(&secrets, &[text]);
        assert_eq!(whole, "a s3cr3t-[redacted TOKEN] b s3cr3-");
        for first in 0..text.len() {
            for second in first..text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(stream(&secrets, &pieces), whole, "{pieces:?}");
            }
        }
    }

    #[test]
    fn the_longer_of_two_values_wins_also_when_it_comes_later() {
        let secrets = Secrets::new([("A", b"abcd".as_slice()), ("B", b"abcdef".as_slice())]);
        assert_eq!(stream(&secrets, &["abcd", "ef"]), "[redacted B]");
        assert_eq!(stream(&secrets, &["abcd", "eg"]), "[redacted A]eg");
        assert_eq!(stream(&secrets, &["abcd"]), "[redacted A]");
    }

    #[test]
    fn values_that_overlap_are_replaced_together_wherever_the_stream_is_cut() {
        let secrets = Secrets::new([("S1", b"abcdef".as_slice()), ("S2", b"defghi".as_slice())]);
        let both = "[redacted S1][redacted S2]";
        for (text, expected) in [
            ("xabcdefghiy", format!("x{both}y")),
            ("abcdefghabcdef", "[redacted S1]gh[redacted S1]".to_owned()),
            ("abcdefabcdef", "[redacted S1][redacted S1]".to_owned()),
            ("abcabcdefghi", format!("abc{both}")),
            ("abcdefdefghi", both.to_owned()),
        ] {
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(stream(&secrets, &pieces), expected, "{pieces:?}");
                }
            }
        }
    }

    #[test]
    fn a_value_that_overlaps_itself_is_one_and_is_not_held_for_ever() {
        let secrets = Secrets::new([("A", b"aaaa".as_slice())]);
        let mut redactor = Redactor::new(&secrets);
        let mut out = Vec::new();
        for _ in 0..1000 {
            out.extend(redactor.push(b"aaaaaaa"));
            assert!(redactor.held.len() < 4, "{}", redactor.held.len());
        }
        out.extend(redactor.push(b"aab"));
        out.extend(redactor.finish());
        assert_eq!(out, b"[redacted A]b");
    }

    #[test]
    fn a_start_of_a_value_at_the_end_is_replaced_if_it_is_half_of_it() {
        let secrets = Secrets::new([
            ("TOKEN", b"supersecretvalue".as_slice()),
            ("PIN", b"12345".as_slice()),
        ]);
        for (text, expected) in [
            ("a supersecretvalu", "a [redacted TOKEN]"),
            ("a supersec", "a [redacted TOKEN]"),
            ("a superse", "a superse"),
            ("a 1234", "a [redacted PIN]"),
            ("a 123", "a 123"),
            ("a supersecretvalux", "a supersecretvalux"),
        ] {
            assert_eq!(stream(&secrets, &[text]), expected);
            assert_eq!(
                stream(&secrets, &[&text[..3], &text[3..]]),
                expected,
                "{text}"
            );
            assert_eq!(secrets.replace(text), text);
        }
        let nested = Secrets::new([("A", b"abcd".as_slice()), ("B", b"abcdefgh".as_slice())]);
        assert_eq!(stream(&nested, &["abcdefg"]), "[redacted B]");
        assert_eq!(stream(&nested, &["abcdefgx"]), "[redacted A]efgx");
    }

    #[test]
    fn values_are_found_and_marks_are_none() {
        let secrets = Secrets::new([
            ("KEY", b"redacted".as_slice()),
            ("TOKEN", b"supersecret".as_slice()),
        ]);
        for (text, found) in [
            ("", None),
            ("supersecre", None),
            ("a/supersecret", Some("TOKEN")),
            ("[redacted TOKEN]", None),
            ("[redacted KEY]redacted[redacted TOKEN]", Some("KEY")),
            ("[redacted KEY] [redacted OTHER]", Some("KEY")),
            ("[redacted KEY][redacted KEY]", None),
        ] {
            assert_eq!(secrets.find(text.as_bytes()), found, "{text}");
        }
        assert!(!secrets.is_empty());
        assert!(Secrets::new([("PIN", b"123".as_slice())]).is_empty());
    }

    #[test]
    fn each_line_of_a_value_is_a_value() {
        let secrets = Secrets::new([("KEY", b"--begin--\n  body1\r\nx\n--end--\n".as_slice())]);
        assert_eq!(
            stream(&secrets, &["1: --begin--\n2: body1\n3: x\n"]),
            "1: [redacted KEY]\n2: [redacted KEY]\n3: x\n"
        );
        assert_eq!(
            stream(&secrets, &["--begin--\n  bo", "dy1\r\nx\n--end--\n"]),
            "[redacted KEY]\n"
        );
    }

    #[test]
    fn a_value_is_found_where_its_control_characters_are_visible() {
        let value = "pass\tw\u{202e}rd".as_bytes();
        let secrets = Secrets::new([("A", value), ("B", b"\xff\xfe\xfd\xfc")]);
        let said = visible_bytes(b"it is pass\tw\xe2\x80\xaerd or \xff\xfe\xfd\xfc!");
        assert_eq!(said, r"it is pass\u{9}w\u{202e}rd or \xff\xfe\xfd\xfc!");
        assert_eq!(
            secrets.replace(&said),
            "it is [redacted A] or [redacted B]!"
        );
    }

    #[test]
    fn a_value_that_is_too_short_is_named_and_left() {
        let secrets = Secrets::new([("PIN", b"123".as_slice()), ("NONE", b"".as_slice())]);
        assert_eq!(secrets.too_short(), ["PIN"]);
        assert_eq!(stream(&secrets, &["123"]), "123");
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let secrets = Secrets::new([("TOKEN", b"\xff\xfe\xfd\xfc".as_slice())]);
        let mut redactor = Redactor::new(&secrets);
        let mut out = redactor.push(b"\xff\xfe\xfd");
        assert_eq!(out, b"");
        out.extend(redactor.push(b"\x00\xff\xfe\xfd\xfc"));
        out.extend(redactor.finish());
        assert_eq!(out, b"\xff\xfe\xfd\x00[redacted TOKEN]");
    }

    #[test]
    fn a_whole_text_is_replaced() {
        let secrets = Secrets::new([("TOKEN", b"abcd".as_slice())]);
        assert_eq!(secrets.replace("xabcdxabc"), "x[redacted TOKEN]xabc");
        assert!(!format!("{secrets:?}").contains("abcd"));
    }
}

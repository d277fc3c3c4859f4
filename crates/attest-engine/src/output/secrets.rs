//! Replaces the values of secret variables in whatever a step writes.
//!
//! Bytes are held back only while they could be the start of a value, so what comes in pieces is
//! found like what comes at once.

use std::collections::{BTreeMap, BTreeSet};

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
    value: Vec<u8>,
    mark: String,
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
    /// each line is a value too, since programs print them apart.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut marks: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let mut too_short = BTreeSet::new();
        for (name, value) in values {
            let value = value.trim_ascii();
            if value.len() < SHORTEST && !value.is_empty() {
                too_short.insert(name.to_owned());
            }
            let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            for part in std::iter::once(value).chain(lines) {
                if part.len() >= SHORTEST {
                    marks
                        .entry(part.to_vec())
                        .or_insert_with(|| format!("[redacted {name}]"));
                }
            }
        }
        let mut patterns: Vec<_> = marks
            .into_iter()
            .map(|(value, mark)| Pattern { value, mark })
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

    /// Replaces every value in a whole text.
    #[must_use]
    pub fn replace(&self, text: &str) -> String {
        if self.patterns.is_empty() {
            return text.to_owned();
        }
        let mut redactor = Redactor::new(self);
        let mut out = redactor.push(text.as_bytes());
        out.extend(redactor.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Says what stands at the start of `bytes`.
    fn look(&self, bytes: &[u8], more_may_come: bool) -> Look<'_> {
        for pattern in &self.patterns {
            if bytes.starts_with(&pattern.value) {
                return Look::Secret(pattern);
            }
            if more_may_come && pattern.value.starts_with(bytes) {
                return Look::Undecided;
            }
        }
        Look::Plain
    }
}

enum Look<'a> {
    Plain,
    Undecided,
    Secret(&'a Pattern),
}

/// Replaces values in a stream.
#[derive(Debug)]
pub struct Redactor<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
}

impl<'a> Redactor<'a> {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            held: Vec::new(),
        }
    }

    /// Takes the next bytes and returns those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.secrets.patterns.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        self.decide(true)
    }

    /// Returns what was held back when the stream ends.
    pub fn finish(&mut self) -> Vec<u8> {
        self.decide(false)
    }

    fn decide(&mut self, more_may_come: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(rest) = self.held.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest
                .iter()
                .take_while(|byte| !self.secrets.first_bytes.contains(byte))
                .count();
            if plain > 0 {
                out.extend(rest.iter().take(plain));
                at += plain;
                continue;
            }
            match self.secrets.look(rest, more_may_come) {
                Look::Secret(pattern) => {
                    out.extend_from_slice(pattern.mark.as_bytes());
                    at += pattern.value.len();
                }
                Look::Undecided => break,
                Look::Plain => {
                    out.extend(rest.first());
                    at += 1;
                }
            }
        }
        self.held.drain(..at);
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
        let text = "a s3cr3t-s3cr3t-s3cr3u b s3cr3t-";
        let whole = stream(&secrets, &[text]);
        assert_eq!(whole, "a s3cr3t-[redacted TOKEN] b s3cr3t-");
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

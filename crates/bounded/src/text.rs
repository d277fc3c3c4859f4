//! Character classes, and foreign text made safe to show.

use std::error::Error;
use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Tells whether the text neither starts nor ends with Unicode `White_Space`.
pub fn is_trimmed(text: &str) -> bool {
    text.trim().len() == text.len()
}

/// Tells whether the text has a control (Cc) or format (Cf) character, U+2028 or U+2029.
pub fn has_control_or_format(text: &str) -> bool {
    first_control_or_format(text).is_some()
}

/// Returns the first control (Cc) or format (Cf) character, U+2028 or U+2029.
pub fn first_control_or_format(text: &str) -> Option<char> {
    text.chars().find(|c| is_control_or_format(*c))
}

/// Makes every character visible that could hide, reorder or break text: `\u{202e}` for U+202E.
pub fn visible(text: &str) -> String {
    shown(text, |_| false)
}

/// Does the same but keeps line feeds and tabs, for text of several lines.
pub fn visible_lines(text: &str) -> String {
    shown(text, |c| c == '\n' || c == '\t')
}

/// Does the same as [`visible`] for bytes; those that are not UTF-8 become `\xNN`.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            let _infallible = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Writes the same characters of a JSON text as `\uXXXX`, which changes no value: outside of ASCII
/// they stand in strings only, and so does U+007F. White space between values stays.
pub fn visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c >= '\u{7f}' && is_control_or_format(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the longest beginning of at most so many bytes that splits no character.
pub fn head(text: &str, bytes: usize) -> &str {
    let end = bytes.min(text.len());
    let whole = (0..=end).rev().find_map(|end| text.get(..end));
    whole.unwrap_or_default()
}

/// Returns the longest end of at most so many bytes that splits no character.
pub fn tail(text: &str, bytes: usize) -> &str {
    let from = text.len().saturating_sub(bytes);
    let whole = (from..=text.len()).find_map(|from| text.get(from..));
    whole.unwrap_or_default()
}

/// Does the same as [`tail`] for bytes: the rest of a character that the cut split is left out.
pub fn tail_bytes(bytes: &[u8], most: usize) -> &[u8] {
    let from = bytes.len().saturating_sub(most);
    let end = bytes.get(from..).unwrap_or_default();
    if from == 0 {
        return end;
    }
    // A character has at most three bytes after its first.
    let split = end.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80);
    end.get(split.count()..).unwrap_or_default()
}

/// Writes an error and its causes on one line: `cannot start: no such file`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _infallible = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

fn shown(text: &str, keep: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_or_format(c) && !keep(c) {
            let _infallible = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn is_control_or_format(c: char) -> bool {
    // The table look-up is for what is not ASCII; most text is.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoundError;

    #[test]
    fn what_hides_becomes_visible() {
        assert_eq!(
            visible("a\u{202e}b\nc\u{1b}[31m"),
            r"a\u{202e}b\u{a}c\u{1b}[31m"
        );
        assert_eq!(visible_lines("a\n\tb\rc"), "a\n\tb\\u{d}c");
        assert_eq!(visible("naïve €"), "naïve €");
        assert_eq!(visible_bytes(b"ok\xff\x00\xe2\x82"), r"ok\xff\u{0}\xe2\x82");
    }

    #[test]
    fn json_keeps_its_values_and_hides_nothing() {
        assert_eq!(
            visible_json("{\"a\u{202e}\": [\"\u{7f}\u{9b}\u{200b}\u{2028}\u{2066}\", \"\\n€\"]}\n"),
            "{\"a\\u202e\": [\"\\u007f\\u009b\\u200b\\u2028\\u2066\", \"\\n€\"]}\n"
        );
        assert_eq!(visible_json("\"\u{e0041}\""), r#""\udb40\udc41""#);
    }

    #[test]
    fn no_cut_splits_a_character() {
        for (bytes, start, end) in [
            (0, "", ""),
            (1, "", "b"),
            (2, "", "b"),
            (3, "€", "b"),
            (4, "€", "€b"),
            (5, "€", "€b"),
            (7, "€€b", "€€b"),
            (9, "€€b", "€€b"),
        ] {
            assert_eq!(head("€€b", bytes), start, "{bytes}");
            assert_eq!(tail("€€b", bytes), end, "{bytes}");
            assert_eq!(tail_bytes("€€b".as_bytes(), bytes), end.as_bytes());
        }
        // What is whole stays, and what is no character is not taken for the rest of one.
        assert_eq!(tail_bytes(b"\x80\x80", 2), b"\x80\x80");
        assert_eq!(tail_bytes(&[0x80; 9], 8), [0x80; 5]);
        assert_eq!(head("", 4), "");
    }

    #[test]
    fn causes_follow_their_error() {
        let cause = std::io::Error::other("no such file");
        assert_eq!(with_causes(&std::io::Error::other(cause)), "no such file");
        assert_eq!(with_causes(&Outer(BoundError::Untrimmed)), {
            "outer: must not start or end with white space"
        });
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] BoundError);

    #[test]
    fn classes_are_control_format_and_separators() {
        for c in [
            '\0', '\u{9f}', '\u{ad}', '\u{200b}', '\u{2028}', '\u{2029}', '\u{2066}',
        ] {
            assert!(has_control_or_format(&c.to_string()), "{c:?}");
        }
        for c in [
            ' ', '\u{a0}', '\u{3000}', '\u{e000}', '\u{378}', '\u{fe0f}', '\u{301}',
        ] {
            assert!(!has_control_or_format(&c.to_string()), "{c:?}");
        }
    }

    #[test]
    fn trimming_goes_by_white_space() {
        for text in ["", "a", "a b", "\u{200b}a"] {
            assert!(is_trimmed(text), "{text:?}");
        }
        for text in [" ", "a\u{85}", "\u{2028}a", "\u{1680}a", "a\u{202f}"] {
            assert!(!is_trimmed(text), "{text:?}");
        }
    }
}

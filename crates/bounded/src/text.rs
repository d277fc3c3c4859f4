//! Character classes, and foreign text made safe to show.

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

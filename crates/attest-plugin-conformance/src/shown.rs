//! Foreign bytes made fit for one line of a report: escaped, and cut where they are long.

use bounded::text::{tail_bytes, visible, visible_bytes, with_causes};

/// How many bytes of an output a reason quotes.
const HEAD: usize = 200;

/// How many bytes of the end of standard error a reason quotes.
const TAIL: usize = 300;

/// Quotes the beginning of an output.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..HEAD) {
        _ if bytes.is_empty() => "an empty line".to_owned(),
        Some(head) if bytes.len() > HEAD => {
            format!("`{}…` ({} bytes)", visible_bytes(head), bytes.len())
        }
        _ => format!("`{}`", visible_bytes(bytes)),
    }
}

/// Returns the end of standard error on one line, or nothing if it is blank.
pub(crate) fn tail(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii();
    let text = visible_bytes(tail_bytes(bytes, TAIL));
    let cut = if bytes.len() > TAIL { "…" } else { "" };
    (!bytes.is_empty()).then(|| format!("{cut}{text}"))
}

/// Shows a text that is not ours, cut if it is long.
pub(crate) fn text(text: &str) -> String {
    let short: String = text.chars().take(HEAD).collect();
    let cut = if short.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", visible(&short))
}

/// Writes an error and its causes on one line.
pub(crate) fn explain(error: &dyn std::error::Error) -> String {
    visible(&with_causes(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_show_is_escaped_and_what_is_long_is_cut() {
        assert_eq!(quoted(b""), "an empty line");
        assert_eq!(quoted(b"a\r\xff"), "`a\\u{d}\\xff`");
        assert_eq!(quoted(&[b'x'; HEAD]), format!("`{}`", "x".repeat(HEAD)));
        assert!(quoted(&[b'x'; HEAD + 1]).ends_with("…` (201 bytes)"));
        assert_eq!(tail(b" \n"), None);
        assert_eq!(tail(b"one\ntwo\n").unwrap(), "one\\u{a}two");
        assert_eq!(
            tail(&[b'x'; TAIL + 1]).unwrap(),
            format!("…{}", "x".repeat(TAIL))
        );
        // A character that the cut splits is left out, not shown as its last byte.
        let split = format!("{}x", "ü".repeat(TAIL));
        assert_eq!(
            tail(split.as_bytes()).unwrap(),
            format!("…{}x", "ü".repeat(TAIL / 2 - 1))
        );
        assert_eq!(text("ü\u{202e}"), "ü\\u{202e}");
        assert!(text(&"ü".repeat(HEAD + 1)).ends_with('…'));
    }
}

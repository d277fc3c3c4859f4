//! Texts of a receipt for people: every character visible, and no more than anybody reads.

use bounded::text::head;
use cli_shell::visible;

/// Longest text that is shown, in bytes. `--format json` has all of it.
pub(crate) const LONGEST: usize = 4096;

/// Returns the text, or its start and how much is missing.
pub(crate) fn shown(text: &str) -> String {
    let start = head(text, LONGEST);
    match text.len() - start.len() {
        0 => visible(start),
        1 => format!("{} [1 more byte]", visible(start)),
        more => format!("{} [{more} more bytes]", visible(start)),
    }
}

/// Returns both texts; long ones from shortly before the place where they differ.
pub(crate) fn shown_apart(a: &str, b: &str) -> (String, String) {
    /// What is shown of that which both have.
    const BEFORE: usize = 32;
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    if a.len().max(b.len()) <= LONGEST || same <= BEFORE {
        return (shown(a), shown(b));
    }
    // Up to there both have the same bytes, so that a boundary of one is one of the other.
    let start = head(a, same - BEFORE).len();
    let tail = |text: &str| {
        let tail = text.get(start..).unwrap_or_default();
        format!("[{start} bytes as there] {}", shown(tail))
    };
    (tail(a), tail(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_4_kib_is_cut_and_says_so() {
        let fits = "x".repeat(4096);
        assert_eq!(shown(&fits), fits);
        assert_eq!(shown(&format!("{fits}y")), format!("{fits} [1 more byte]"));
        assert_eq!(shown("a\u{202e}"), r"a\u{202e}");
        let wide = "€".repeat(5_000);
        assert_eq!(
            shown(&wide),
            format!("{} [{} more bytes]", "€".repeat(1365), 15_000 - 4095)
        );
    }

    #[test]
    fn a_difference_deep_in_a_text_is_seen() {
        let (a, b) = (
            format!("{}a", "€".repeat(5_000)),
            format!("{}bc", "€".repeat(5_000)),
        );
        let euros = "€".repeat(11);
        assert_eq!(
            shown_apart(&a, &b),
            (
                format!("[14967 bytes as there] {euros}a"),
                format!("[14967 bytes as there] {euros}bc")
            )
        );
        assert_eq!(shown_apart("a", "b"), ("a".to_owned(), "b".to_owned()));
        let (a, _) = shown_apart(&"x".repeat(5_000), "y");
        assert!(a.ends_with(" [904 more bytes]"), "{a}");
    }
}

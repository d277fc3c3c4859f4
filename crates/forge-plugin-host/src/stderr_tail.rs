//! The end of a plugin's stderr, kept in bounded space for the error message.

use std::collections::VecDeque;

use bounded::text::visible_bytes;

/// Most bytes that are kept.
const KEPT: usize = 2_048;

/// A ring of the last bytes.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl StderrTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fresh = bytes
            .get(bytes.len().saturating_sub(KEPT)..)
            .unwrap_or_default();
        let overflow = (self.bytes.len() + fresh.len()).saturating_sub(KEPT);
        self.cut |= overflow > 0 || fresh.len() < bytes.len();
        self.bytes.drain(..overflow);
        self.bytes.extend(fresh);
    }

    /// The kept bytes with control characters made visible, line ends included.
    pub(crate) fn shown(mut self) -> String {
        let bytes = self.bytes.make_contiguous();
        // A character that the cut split would look like invalid bytes.
        let start = if self.cut {
            bytes
                .iter()
                .take(3)
                .take_while(|byte| (0x80..0xc0).contains(*byte))
                .count()
        } else {
            0
        };
        let text = visible_bytes(bytes.get(start..).unwrap_or_default().trim_ascii_end());
        if self.cut { format!("…{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_the_last_bytes_are_kept() {
        let mut tail = StderrTail::default();
        tail.push(b"first ");
        tail.push(&vec![b'x'; 10 * KEPT]);
        tail.push(b" last\n");
        let shown = tail.shown();
        assert!(shown.starts_with('…') && shown.ends_with("x last"));
        assert_eq!(shown.chars().count(), KEPT);
    }

    #[test]
    fn exactly_the_limit_is_not_cut() {
        let mut tail = StderrTail::default();
        tail.push(&vec![b'x'; KEPT]);
        assert_eq!(tail.shown(), "x".repeat(KEPT));
    }

    #[test]
    fn a_split_character_is_left_out() {
        let mut tail = StderrTail::default();
        tail.push("ééé".repeat(KEPT).as_bytes());
        tail.push(b"!");
        let shown = tail.shown();
        assert!(shown.starts_with("…é") && shown.ends_with("é!"));
    }

    #[test]
    fn control_characters_are_made_visible() {
        let mut tail = StderrTail::default();
        tail.push(b"a\x1b[31m\r\n");
        assert!(!tail.shown().contains('\x1b'));
    }
}

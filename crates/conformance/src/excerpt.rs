//! Foreign bytes made fit for one line of a report: escaped, and cut where they are long.

use bounded::text::{tail_bytes, visible};

/// How many bytes of an output a reason quotes.
const HEAD: usize = 240;

/// How many bytes of the end of standard error a reason quotes.
const TAIL: usize = 320;

/// Quotes the beginning of an output, or says that there is none.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..HEAD) {
        _ if bytes.is_empty() => "nothing".to_owned(),
        Some(head) if bytes.len() > HEAD => {
            format!("`{}…` ({} bytes)", one_line(head), bytes.len())
        }
        _ => format!("`{}`", one_line(bytes)),
    }
}

/// Returns the end of standard error on one line, or nothing if it is blank.
pub(crate) fn tail(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    let cut = if bytes.len() > TAIL { "…" } else { "" };
    Some(format!("{cut}{}", one_line(tail_bytes(bytes, TAIL))))
}

/// Brings a message of ours, which may quote a file's name, onto one line.
pub(crate) fn message(text: &str) -> String {
    one_line(text.as_bytes())
}

/// Writes text as it is and everything that would not show as an escape.
fn one_line(bytes: &[u8]) -> String {
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        let text = chunk
            .valid()
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t");
        line.push_str(&visible(&text));
        for byte in chunk.invalid() {
            line.push_str(&format!("\\x{byte:02x}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_called_nothing() {
        assert_eq!(quoted(b""), "nothing");
        assert_eq!(tail(b" \n"), None);
    }

    #[test]
    fn what_does_not_show_is_escaped() {
        assert_eq!(quoted(b"{\"a\":1}\r\n"), "`{\"a\":1}\\r\\n`");
        assert_eq!(quoted(b"\xff\x41"), "`\\xffA`");
        assert_eq!(quoted("ü\u{202e}x".as_bytes()), "`ü\\u{202e}x`");
        assert!(!quoted(b"\x1b[31mred").contains('\x1b'));
    }

    #[test]
    fn long_output_is_cut_at_its_end_and_long_errors_at_their_beginning() {
        assert_eq!(quoted(&[b'x'; HEAD]), format!("`{}`", "x".repeat(HEAD)));
        assert_eq!(
            quoted(&[b'x'; HEAD + 1]),
            format!("`{}…` (241 bytes)", "x".repeat(HEAD))
        );
        assert_eq!(tail(&[b'x'; TAIL]).unwrap(), "x".repeat(TAIL));
        assert_eq!(
            tail(&[b'x'; TAIL + 1]).unwrap(),
            format!("…{}", "x".repeat(TAIL))
        );
        let split = [&"ü".repeat(TAIL).into_bytes()[..], b"x"].concat();
        assert!(
            !tail(&split).unwrap().contains("\\x"),
            "a cut character is dropped whole"
        );
    }
}

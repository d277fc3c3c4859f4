//! What is judged on the bytes alone, before a reader sees them.

use crate::YamlError;

/// Checks what holds for YAML and JSON alike and returns the text.
///
/// # Errors
/// Too many bytes, another encoding than UTF-8, a byte order mark, a carriage return.
pub fn text(bytes: &[u8], limit: usize) -> Result<&str, YamlError> {
    if bytes.len() > limit {
        return Err(YamlError::TooLong {
            limit,
            actual: bytes.len(),
        });
    }
    // Before the encoding is judged: a mark of UTF-16 is no valid UTF-8.
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(YamlError::refused(1, "UTF-16 is not read; use UTF-8"));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        return Err(YamlError::refused(1, "a byte order mark is not allowed"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        YamlError::refused(line_at(bytes, error.valid_up_to()), "invalid UTF-8")
    })?;
    match text.find('\r') {
        None => Ok(text),
        Some(position) => Err(YamlError::refused(
            line_at(bytes, position),
            "a carriage return is not allowed; lines end in a line feed",
        )),
    }
}

/// Checks the characters of a YAML document, where an escape is needed for what does not print,
/// and its first line with content, which is where directives stand.
pub(crate) fn yaml(text: &str) -> Result<(), YamlError> {
    if let Some((position, c)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        let reason = format!("the character U+{:04X} is not allowed", u32::from(c));
        return Err(YamlError::refused(
            line_at(text.as_bytes(), position),
            reason,
        ));
    }
    let first = text.lines().zip(1..).find(|(line, _)| {
        let line = line.trim_start_matches(' ');
        !line.is_empty() && !line.starts_with('#')
    });
    match first {
        Some((line, number)) if line.starts_with('%') => {
            Err(YamlError::refused(number, "directives are not allowed"))
        }
        _ => Ok(()),
    }
}

/// The printable characters of YAML, without the carriage return and the byte order mark, which
/// libyaml would skip at the start of a line.
fn is_allowed(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..
    )
}

/// Returns the line of a byte, from 1.
pub fn line_at(bytes: &[u8], position: usize) -> usize {
    let before = bytes.get(..position).unwrap_or(bytes);
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

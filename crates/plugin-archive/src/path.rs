//! Which paths there may be in a package.

use std::fmt::Write as _;

use crate::error::Rule;

/// Says whether a path may name a file of a package.
///
/// The number of components is not looked at: that is a limit, see [`crate::Budget`].
///
/// # Errors
///
/// The first rule that does not hold.
pub fn check_path(path: &str) -> Result<(), Rule> {
    if path.is_empty() {
        return Err(Rule::PathEmpty);
    }
    if path.chars().any(is_control) {
        return Err(Rule::PathControl);
    }
    if path.contains('\\') {
        return Err(Rule::PathBackslash);
    }
    if path.starts_with('/') {
        return Err(Rule::PathAbsolute);
    }
    path.split('/').try_for_each(check_component)
}

fn check_component(component: &str) -> Result<(), Rule> {
    match component.as_bytes() {
        b"" | b"." => Err(Rule::PathComponent),
        b".." => Err(Rule::PathTraversal),
        // below the root too: a reader that joins paths by the rules of Windows starts over at a drive
        [letter, b':', ..] if letter.is_ascii_alphabetic() => Err(Rule::PathDrive),
        _ => Ok(()),
    }
}

/// Control characters, and those that turn the direction of text: both can make a name look like
/// another one.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name as it can be shown: control characters, and bytes that are no text, by their numbers.
#[must_use]
pub fn visible(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_control(c) || c == '\\' || c == '`' {
                text.extend(c.escape_default().filter(|_| c != '`'));
                if c == '`' {
                    text.push_str("\\u{60}");
                }
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            // writing to a string cannot fail
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

//! Small rules about text that several documents share.

use std::collections::BTreeMap;

/// Tells whether a text is exactly `digits` lowercase hexadecimal digits.
#[must_use]
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Tells whether a text is a BLAKE3 or SHA-256 hash as receipts spell it.
#[must_use]
pub fn is_lower_hex_64(text: &str) -> bool {
    is_hex(text, 64)
}

/// Longest foreign text that a message repeats, in characters.
const SHOWN: usize = 200;

/// Makes a foreign text safe to print: escapes what does not print and cuts what is too long.
#[must_use]
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == SHOWN {
            out.push('…');
            break;
        }
        // Quotes and backslashes print; the messages put the whole between quotes of their own.
        if matches!(c, '"' | '\'' | '\\') {
            out.push(c);
        } else {
            out.extend(c.escape_debug());
        }
    }
    out
}

/// Refuses what no process can be given as its environment.
pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in env {
        if name.is_empty() {
            return Err("a variable has no name".into());
        }
        if name.contains(['=', '\0']) {
            let name = shown(name);
            return Err(format!("the variable name '{name}' has a = or a NUL"));
        }
        if value.contains('\0') {
            let name = shown(name);
            return Err(format!("the value of '{name}' has a NUL"));
        }
    }
    Ok(())
}

/// Tells whether a name is one component of a path, since a capsule's name is its folder.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/') && !has_control(name)
}

/// Tells whether a text has a control character, which could forge a line.
pub(crate) fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

//! Small rules about text that several documents share.

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

//! The unambiguous field encoding under event ids and cache keys.

/// Appends `<length of label>:<label>:<length of value>:<value>` and a line feed; lengths are
/// decimal bytes, so that no value can pass for the start of another field.
pub fn field(out: &mut Vec<u8>, label: &str, value: &[u8]) {
    out.extend_from_slice(label.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(label.as_bytes());
    out.push(b':');
    out.extend_from_slice(value.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Returns the BLAKE3 hash as 64 lowercase digits, the way receipts spell hashes.
#[must_use]
pub fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Spells bytes as lowercase hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| {
        DIGITS
            .get(usize::from(nibble))
            .copied()
            .map_or('0', char::from)
    };
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_both_lengths() {
        let mut out = Vec::new();
        field(&mut out, "step", "é:\n".as_bytes());
        assert_eq!(out, "4:step:4:é:\n\n".as_bytes());
    }

    #[test]
    fn moving_a_boundary_changes_the_bytes() {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        field(&mut one, "a", b"bc");
        field(&mut one, "d", b"");
        field(&mut two, "a", b"b");
        field(&mut two, "d", b"c");
        assert_ne!(one, two);
    }
}

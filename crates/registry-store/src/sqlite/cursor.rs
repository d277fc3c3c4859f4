//! Cursors of lists: where a page ended, bound to the list that it was made for.

use digest_text::Sha256Text;

use crate::StoreError;

/// Digits of the list's fingerprint.
const PRINT: usize = 16;

/// Makes the cursor that continues a list after a position. `list` names the list and everything
/// that selects it.
pub(super) fn make(list: &[&str], position: &str) -> String {
    format!("{}{}", print(list), hex(position.as_bytes()))
}

/// Reads a cursor back.
pub(super) fn read(list: &[&str], cursor: &str) -> Result<String, StoreError> {
    let position = cursor
        .strip_prefix(&print(list))
        .and_then(unhex)
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(StoreError::InvalidCursor)?;
    // Written anew, so that each position has one spelling.
    if make(list, &position) == cursor {
        Ok(position)
    } else {
        Err(StoreError::InvalidCursor)
    }
}

fn print(list: &[&str]) -> String {
    // Lengths in front, so that no two lists are one text.
    let text: String = list
        .iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect();
    let digest = Sha256Text::of(text);
    hex(digest.as_bytes()).chars().take(PRINT).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let value = |pair: &[u8; 2]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_serves_its_own_list_only() {
        let cursor = make(&["catalog", "é"], "acme.x");
        assert_eq!(read(&["catalog", "é"], &cursor).unwrap(), "acme.x");
        for other in [&["catalog", ""][..], &["catalog"], &["catalogé", ""]] {
            assert!(matches!(
                read(other, &cursor),
                Err(StoreError::InvalidCursor)
            ));
        }
        for bad in [
            "",
            "é",
            &cursor.to_uppercase(),
            &format!("{cursor}0"),
            &format!("{cursor}+1"),
        ] {
            assert!(read(&["catalog", "é"], bad).is_err(), "{bad}");
        }
    }
}

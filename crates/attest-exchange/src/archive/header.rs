//! The one header that this format has for a name and a size.

use tar::Header;

use super::error::ArchiveError;

/// The size of headers, and what entries are padded to.
pub(super) const BLOCK: usize = 512;

/// The type of a regular file.
pub(super) const FILE: u8 = b'0';

const NAME: usize = 100;
const SIZE: std::ops::Range<usize> = 124..136;
const TYPE: usize = 156;

/// Makes the header of an entry: mode 0644, everything else zero.
pub(super) fn make(name: &str, size: u64, kind: u8) -> std::io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if let Some(ustar) = header.as_ustar_mut() {
        ustar.typeflag = [kind];
    }
    header.set_cksum();
    Ok(header)
}

/// Reads name and size of the `number`th entry.
///
/// No field is interpreted twice: the header has to be the one that is made of the name and the
/// size in it, so links, owners, times and the ways to spell a number need no rules of their own.
pub(super) fn read(block: &[u8; BLOCK], number: u64) -> Result<(String, u64), ArchiveError> {
    let wrong = |why| ArchiveError::Header(number, why);
    let kind = block.get(TYPE).copied().unwrap_or_default();
    match char::from(kind) {
        // The NUL is the older spelling of a regular file, which other writers of this format use.
        '0' | '\0' => {}
        kind @ ('x' | 'g' | 'L' | 'K' | 'X' | 'S' | 'V' | 'M' | 'N') => {
            return Err(ArchiveError::Extension { number, kind });
        }
        kind => return Err(ArchiveError::NotAFile { number, kind }),
    }
    let name = block.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = name.get(..NAME).unwrap_or(name);
    let name = std::str::from_utf8(name).map_err(|_| wrong("its name is not UTF-8"))?;
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !name.split('/').all(plain) {
        return Err(ArchiveError::Escapes(name.to_owned()));
    }
    let size = octal(block.get(SIZE).unwrap_or_default()).ok_or(wrong("its size is no number"))?;
    let expected = make(name, size, kind).map_err(|_| wrong("its name is too long"))?;
    if expected.as_bytes() == block {
        Ok((name.to_owned(), size))
    } else {
        Err(wrong("it differs from what its name and size give"))
    }
}

/// Eleven octal digits and a NUL.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.strip_suffix(&[0])?;
    let text = std::str::from_utf8(digits).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    u64::from_str_radix(text, 8).ok()
}

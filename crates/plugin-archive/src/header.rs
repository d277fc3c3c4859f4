//! The 512 bytes before each file and folder.

use crate::error::Rule;

pub(crate) const BLOCK: usize = 512;
pub(crate) type Block = [u8; BLOCK];

const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const UID: std::ops::Range<usize> = 108..116;
const GID: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const MTIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const DEVICE_MAJOR: std::ops::Range<usize> = 329..337;
const DEVICE_MINOR: std::ops::Range<usize> = 337..345;
const PREFIX: std::ops::Range<usize> = 345..500;
const REST: std::ops::Range<usize> = 500..512;

const USTAR: &[u8; 8] = b"ustar\x0000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
}

/// The path as it stands in the header, for messages too, so nothing of it is judged here.
pub(crate) fn raw_path(block: &Block) -> Vec<u8> {
    let name = until_nul(&block[NAME]);
    let prefix = if block[MAGIC] == *USTAR {
        until_nul(&block[PREFIX])
    } else {
        &[]
    };
    if prefix.is_empty() {
        name.to_vec()
    } else {
        [prefix, b"/", name].concat()
    }
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

pub(crate) fn parse(block: &Block) -> Result<Header, Rule> {
    // a damaged header says nothing about what else is wrong with it
    let stated = octal(&block[CHECKSUM]).ok_or(Rule::HeaderChecksum)?;
    if stated != checksum(block) {
        return Err(Rule::HeaderChecksum);
    }
    if block[MAGIC] != *USTAR {
        return Err(Rule::HeaderMagic);
    }
    let kind = match block[TYPE] {
        b'0' | 0 => Kind::File,
        b'5' => Kind::Folder,
        _ => return Err(Rule::EntryType),
    };
    if block[LINK].iter().any(|byte| *byte != 0) {
        return Err(Rule::LinkName);
    }
    // readers disagree about what follows the terminator, and so about the name
    for field in [&block[NAME], &block[PREFIX]] {
        if field
            .iter()
            .skip_while(|byte| **byte != 0)
            .any(|byte| *byte != 0)
        {
            return Err(Rule::HeaderText);
        }
    }
    let size = octal(&block[SIZE]).ok_or(Rule::HeaderSize)?;
    if kind == Kind::Folder && size != 0 {
        return Err(Rule::FolderSize);
    }
    let mode = octal(&block[MODE]).ok_or(Rule::HeaderNumber)? & u64::from(crate::MODE_MASK);
    let mode = u32::try_from(mode).map_err(|_| Rule::HeaderNumber)?;
    for field in [&block[UID], &block[GID], &block[MTIME]] {
        octal_or_empty(field).ok_or(Rule::HeaderNumber)?;
    }
    for field in [&block[DEVICE_MAJOR], &block[DEVICE_MINOR]] {
        if octal_or_empty(field).ok_or(Rule::HeaderNumber)? != 0 {
            return Err(Rule::HeaderDevice);
        }
    }
    if block[REST].iter().any(|byte| *byte != 0) {
        return Err(Rule::HeaderPadding);
    }
    Ok(Header { kind, mode, size })
}

/// The sum over all bytes, those of the checksum itself counted as spaces.
fn checksum(block: &Block) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(block) - sum(&block[CHECKSUM]) + CHECKSUM.len() as u64 * u64::from(b' ')
}

/// Digits from the first byte, then at least one NUL or space, and nothing else to the end. No
/// sign, no leading space and no other base: each of them is read differently somewhere.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b'7'))
        .count();
    let (digits, end) = field.split_at(digits);
    if digits.is_empty() || end.is_empty() || end.iter().any(|byte| !matches!(byte, 0 | b' ')) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |value, digit| value * 8 + u64::from(digit - b'0')),
    )
}

/// Fields that mean nothing here may also be left out.
fn octal_or_empty(field: &[u8]) -> Option<u64> {
    if field.iter().all(|byte| *byte == 0) {
        Some(0)
    } else {
        octal(field)
    }
}

/// The header of a regular file.
pub(crate) fn write(path: &str, mode: u32, size: u64) -> Result<Block, Rule> {
    let (prefix, name) = split(path).ok_or(Rule::PathTooLong)?;
    let mut block = [0; BLOCK];
    let mut put = |start: usize, bytes: &[u8]| {
        for (to, from) in block.iter_mut().skip(start).zip(bytes) {
            *to = *from;
        }
    };
    put(NAME.start, name.as_bytes());
    put(PREFIX.start, prefix.as_bytes());
    put(
        MODE.start,
        format!("{:07o}", mode & crate::MODE_MASK).as_bytes(),
    );
    put(UID.start, b"0000000");
    put(GID.start, b"0000000");
    let digits = format!("{size:011o}");
    if digits.len() >= SIZE.len() {
        return Err(Rule::HeaderSize);
    }
    put(SIZE.start, digits.as_bytes());
    put(MTIME.start, b"00000000000");
    put(TYPE, b"0");
    put(MAGIC.start, USTAR);
    put(DEVICE_MAJOR.start, b"0000000");
    put(DEVICE_MINOR.start, b"0000000");
    write_checksum(&mut block);
    Ok(block)
}

fn write_checksum(block: &mut Block) {
    let sum = format!("{:06o}\0 ", checksum(block));
    block[CHECKSUM].copy_from_slice(sum.as_bytes());
}

/// Gives a block that has the magic of a header its checksum, and no other one.
pub(crate) fn seal(block: &mut Block) {
    if block[MAGIC] == *USTAR {
        write_checksum(block);
    }
}

/// Prefix and name; the first place that fits, so that the prefix is as short as it can be.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME.len() {
        return Some(("", path));
    }
    let fits = |(at, _): &(usize, &str)| *at <= PREFIX.len() && path.len() - at - 1 <= NAME.len();
    path.match_indices('/')
        .find(fits)
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_eleven_digits_is_written_and_read_and_one_more_is_refused() {
        let longest = (1 << 33) - 1;
        let header = write("a", 0o644, longest).unwrap();
        assert_eq!(parse(&header).unwrap().size, longest);
        assert_eq!(write("a", 0o644, longest + 1), Err(Rule::HeaderSize));
    }
}

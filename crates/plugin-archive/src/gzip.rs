//! What stands around the compressed data (RFC 1952).

use crate::error::Rule;

/// No flags, no time, no name, no hint about the compression, and a system that is unknown: nothing
/// of where and when an archive was made.
pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

const HEADER_CHECKSUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// What follows the header. Its optional fields are skipped: they say nothing about the contents.
pub(crate) fn skip_header(archive: &[u8]) -> Result<&[u8], Rule> {
    let Some((header, mut rest)) = archive.split_first_chunk::<10>() else {
        return Err(if HEADER.starts_with(archive) && !archive.is_empty() {
            Rule::GzipTruncated
        } else {
            Rule::GzipHeader
        });
    };
    if header[..3] != HEADER[..3] {
        return Err(Rule::GzipHeader);
    }
    let flags = header[3];
    if flags & RESERVED != 0 {
        return Err(Rule::GzipFlags);
    }
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>().ok_or(Rule::GzipTruncated)?;
        rest = after
            .get(usize::from(u16::from_le_bytes(*length))..)
            .ok_or(Rule::GzipTruncated)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0);
            rest = end
                .and_then(|end| rest.get(end + 1..))
                .ok_or(Rule::GzipTruncated)?;
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        let covered = archive.strip_suffix(rest).unwrap_or_default();
        let (stated, after) = rest.split_first_chunk::<2>().ok_or(Rule::GzipTruncated)?;
        if u32::from(u16::from_le_bytes(*stated)) != crc32fast::hash(covered) & 0xffff {
            return Err(Rule::GzipHeaderChecksum);
        }
        rest = after;
    }
    Ok(rest)
}

pub(crate) fn check_trailer(trailer: &[u8], crc: u32, size: u64) -> Result<(), Rule> {
    let (stated_crc, rest) = trailer
        .split_first_chunk::<4>()
        .ok_or(Rule::GzipTruncated)?;
    let (stated_size, rest) = rest.split_first_chunk::<4>().ok_or(Rule::GzipTruncated)?;
    if u32::from_le_bytes(*stated_crc) != crc {
        return Err(Rule::GzipChecksum);
    }
    if u64::from(u32::from_le_bytes(*stated_size)) != size & u64::from(u32::MAX) {
        return Err(Rule::GzipSize);
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Rule::GzipTrailing)
    }
}

pub(crate) fn trailer(crc: u32, size: u64) -> [u8; 8] {
    let [c0, c1, c2, c3] = crc.to_le_bytes();
    // the size counts modulo 2^32
    let [s0, s1, s2, s3, ..] = size.to_le_bytes();
    [c0, c1, c2, c3, s0, s1, s2, s3]
}

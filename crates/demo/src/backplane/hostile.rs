//! An archive that wants out of the folder it is unpacked in, made by hand: no tool of ours writes one.

const BLOCK: usize = 512;

/// Returns a tar archive in gzip whose one file has that path.
pub(super) fn archive(path: &str, content: &[u8]) -> Vec<u8> {
    gzip(&tar(path, content))
}

/// USTAR of one file: its header, its content, and two empty blocks.
fn tar(path: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(BLOCK);
    field(&mut header, path, 100);
    for (number, width) in [(0o644, 8), (0, 8), (0, 8)] {
        octal(&mut header, number, width);
    }
    octal(&mut header, content.len(), 12);
    octal(&mut header, 0, 12);
    let checksum = header.len();
    field(&mut header, "        ", 8);
    field(&mut header, "0", 1);
    field(&mut header, "", 100);
    header.extend(b"ustar\x0000");
    header.resize(BLOCK, 0);
    let sum = header.iter().map(|byte| usize::from(*byte)).sum();
    let mut digits = Vec::new();
    octal(&mut digits, sum, 7);
    digits.push(b' ');
    header.splice(checksum..checksum + digits.len(), digits);
    header.extend(content);
    header.resize(header.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    header
}

fn field(header: &mut Vec<u8>, text: &str, width: usize) {
    let from = header.len();
    header.extend(text.as_bytes());
    header.resize(from + width, 0);
}

fn octal(header: &mut Vec<u8>, number: usize, width: usize) {
    let digits = width - 1;
    field(header, &format!("{number:0digits$o}"), width);
}

/// One member with one block that is stored as it is.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let stored = bytes.get(..usize::from(length)).unwrap_or(bytes);
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(stored);
    out.extend(crc32(stored).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(tar("../x", b"y").len(), 4 * BLOCK);
    }
}

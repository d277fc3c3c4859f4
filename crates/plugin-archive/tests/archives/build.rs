//! Archives as nobody should make them.

use plugin_archive::{ArchiveError, Limits, Snapshot, unpack_with_metadata};

pub(crate) type Block = [u8; 512];

/// A good header of a regular file.
pub(crate) fn header(name: &[u8], size: usize) -> Block {
    let mut block = [0; 512];
    put(&mut block, 0, name);
    put(&mut block, 100, b"0000644\0");
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    put(&mut block, 124, format!("{size:011o}\0").as_bytes());
    put(&mut block, 136, b"00000000000\0");
    put(&mut block, 156, b"0");
    put(&mut block, 257, b"ustar\x0000");
    seal(block)
}

pub(crate) fn folder(name: &[u8]) -> Block {
    with(header(name, 0), 156, b"5")
}

fn put(block: &mut Block, at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Another value in a field, and the checksum that belongs to it.
pub(crate) fn with(mut block: Block, at: usize, bytes: &[u8]) -> Block {
    put(&mut block, at, bytes);
    seal(block)
}

fn seal(mut block: Block) -> Block {
    put(&mut block, 148, b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    block
}

/// A tar stream: headers with contents, and the end.
pub(crate) fn tar(entries: &[(Block, &[u8])]) -> Vec<u8> {
    let mut tar = open(entries);
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// Without the end.
pub(crate) fn open(entries: &[(Block, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (block, contents) in entries {
        tar.extend_from_slice(block);
        tar.extend_from_slice(contents);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar
}

/// Empty files and folders (names that end with `/`) of these names.
pub(crate) fn named(names: &[&[u8]]) -> Vec<u8> {
    let entry = |name: &&[u8]| {
        if name.ends_with(b"/") {
            folder(name)
        } else {
            header(name, 0)
        }
    };
    let entries: Vec<(Block, &[u8])> = names.iter().map(|name| (entry(name), &[][..])).collect();
    tar(&entries)
}

pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    gzip_with(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], contents)
}

pub(crate) fn gzip_with(header: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut archive = header.to_vec();
    archive.extend(miniz_oxide::deflate::compress_to_vec(contents, 1));
    archive.extend(crc32fast::hash(contents).to_le_bytes());
    archive.extend((contents.len() as u32).to_le_bytes());
    archive
}

pub(crate) fn read(tar: &[u8]) -> Result<Snapshot, ArchiveError> {
    unpack_with_metadata(&gzip(tar), &Limits::default())
}

#[track_caller]
pub(crate) fn accepted(tar: &[u8]) -> Vec<String> {
    read(tar).unwrap().files.into_keys().collect()
}

#[track_caller]
pub(crate) fn refused(tar: &[u8], code: &str) -> ArchiveError {
    let error = read(tar).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.ends_with(&format!("({code})")), "{text}");
    error
}

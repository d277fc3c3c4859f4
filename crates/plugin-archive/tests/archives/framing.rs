//! M46 to M54: what stands around the tar stream.

use plugin_archive::{ArchiveError, Limits, unpack};

use crate::build::{gzip, gzip_with, named};

fn read(archive: &[u8]) -> Result<usize, ArchiveError> {
    unpack(archive, &Limits::default()).map(|files| files.len())
}

#[track_caller]
fn refused(archive: &[u8], code: &str) {
    assert_eq!(read(archive).unwrap_err().code(), code);
}

fn good() -> Vec<u8> {
    gzip(&named(&[b"a"]))
}

#[test]
fn m46_a_second_member_is_refused() {
    let mut two = good();
    two.extend(gzip(b""));
    refused(&two, "gzip_trailing");
}

#[test]
fn m47_a_zero_byte_after_the_member() {
    refused_after_the_member(0);
}

#[test]
fn m47_another_byte_after_the_member() {
    refused_after_the_member(b'x');
}

#[track_caller]
fn refused_after_the_member(byte: u8) {
    let mut archive = good();
    archive.push(byte);
    refused(&archive, "gzip_trailing");
}

#[test]
fn m48_reserved_flags_are_refused_and_fields_that_mean_nothing_are_skipped() {
    let tar = named(&[b"a"]);
    for bit in 5..8 {
        refused(
            &gzip_with(&[0x1f, 0x8b, 8, 1 << bit, 0, 0, 0, 0, 0, 255], &tar),
            "gzip_flags",
        );
    }
    let mut all = vec![0x1f, 0x8b, 8, 0b1_1111, 1, 2, 3, 4, 2, 3];
    all.extend(b"\x03\0abcname\0comment\0");
    let checksum = crc32fast::hash(&all) as u16;
    all.extend(checksum.to_le_bytes());
    assert_eq!(read(&gzip_with(&all, &tar)), Ok(1));
    let last = all.len() - 1;
    all[last] ^= 1;
    refused(&gzip_with(&all, &tar), "gzip_header_checksum");
}

#[test]
fn m49_a_header_of_another_kind_is_refused() {
    refused(b"", "gzip_header");
    refused(b"PK\x03\x04aaaaaaaaaaaa", "gzip_header");
    refused(&named(&[b"a"]), "gzip_header");
    refused(
        &gzip_with(&[0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 255], &named(&[b"a"])),
        "gzip_header",
    );
}

#[test]
fn m50_a_checksum_that_does_not_match_is_refused() {
    let mut archive = good();
    let at = archive.len() - 8;
    archive[at] ^= 1;
    refused(&archive, "gzip_checksum");
}

#[test]
fn m51_a_size_that_does_not_match_is_refused() {
    let mut archive = good();
    let at = archive.len() - 1;
    archive[at] ^= 1;
    refused(&archive, "gzip_size");
}

#[test]
fn m52_a_member_that_is_cut_short_anywhere_is_refused() {
    let archive = good();
    for length in 1..archive.len() {
        let code = read(&archive[..length]).unwrap_err();
        assert!(
            ["gzip_truncated", "tar_end", "tar_truncated"].contains(&code.code()),
            "{length}: {code}"
        );
    }
}

#[test]
fn m53_data_that_is_not_deflated_is_refused() {
    let mut archive = good();
    archive[10] = 0xff;
    refused(&archive, "gzip_data");
}

#[test]
fn m54_a_bomb_is_refused_at_the_limit() {
    let limits = Limits {
        uncompressed_bytes: 1 << 20,
        ..Limits::default()
    };
    let error = unpack(&gzip(&vec![0; 64 << 20]), &limits).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
    assert!(
        error.to_string().contains("max_uncompressed_bytes"),
        "{error}"
    );
}

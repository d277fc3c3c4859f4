//! M33 to M45: the rest of a header, and what stands between headers and after them.

use crate::build::{Block, accepted, folder, header, named, open, read, refused, tar, with};

fn one(block: Block) -> Vec<u8> {
    tar(&[(block, b"")])
}

fn field(at: usize, bytes: &[u8]) -> Vec<u8> {
    one(with(header(b"a", 0), at, bytes))
}

#[test]
fn m33_every_type_but_file_and_folder_is_refused() {
    for kind in u8::MIN..=u8::MAX {
        let tar = field(156, &[kind]);
        match kind {
            0 | b'0' => assert_eq!(accepted(&tar), ["a"]),
            b'5' => assert!(accepted(&tar).is_empty()),
            _ => drop(refused(&tar, "entry_type")),
        }
    }
}

#[test]
fn m33_a_nul_type_is_a_file_only_with_the_magic_of_ustar() {
    let old = with(with(header(b"a", 0), 156, b"\0"), 257, &[0; 8]);
    refused(&one(old), "header_magic");
}

#[test]
fn m33_a_link_names_entry_and_rule() {
    let link = with(with(header(b"evil", 0), 156, b"2"), 157, b"/etc/passwd");
    let text = refused(&tar(&[(header(b"a", 0), b""), (link, b"")]), "entry_type").to_string();
    assert!(
        text.starts_with("entry 2 `evil`: only regular files and folders"),
        "{text}"
    );
}

#[test]
fn m34_a_negative_size() {
    refused_sizes(b"-0000000001\0");
}

#[test]
fn m34_a_size_in_base_256() {
    refused_sizes(b"\x80\0\0\0\0\0\0\0\0\0\0\x01");
}

#[test]
fn m34_a_size_of_spaces() {
    refused_sizes(b"            ");
}

#[test]
fn m34_spaces_before_the_size() {
    refused_sizes(b"       0000\0");
}

#[test]
fn m34_a_digit_8() {
    refused_sizes(b"00000000008\0");
}

#[test]
fn m34_a_digit_9() {
    refused_sizes(b"00000000009\0");
}

#[test]
fn m34_another_base() {
    refused_sizes(b"0x000000000\0");
}

#[test]
fn m34_no_terminator() {
    refused_sizes(b"000000000000");
}

#[test]
fn m34_digits_after_the_terminator() {
    refused_sizes(b"0000\x000000001");
}

#[test]
fn m34_no_size() {
    refused_sizes(&[0; 12]);
}

#[track_caller]
fn refused_sizes(size: &[u8]) {
    refused(&field(124, size), "header_size");
}

#[test]
fn m34_a_size_that_ends_with_a_space_is_read() {
    assert_eq!(accepted(&field(124, b"0000000000 \0")), ["a"]);
}

#[test]
fn m34_a_size_that_exceeds_what_remains_is_refused() {
    let error = refused(&open(&[(header(b"a", 1000), b"short")]), "tar_truncated");
    assert_eq!(error.entry.unwrap().name, "a");
    refused(&field(124, b"77777777777\0"), "limit_exceeded");
}

#[test]
fn m34_a_folder_with_a_size_is_refused() {
    refused(
        &tar(&[(with(header(b"d", 1), 156, b"5"), b"x")]),
        "folder_size",
    );
}

#[test]
fn m34_a_link_with_a_size_is_refused() {
    refused(
        &tar(&[(with(header(b"l", 1), 156, b"1"), b"x")]),
        "entry_type",
    );
}

fn with_sum(mut block: Block, change: impl Fn(i64) -> i64) -> Vec<u8> {
    let sum: i64 = block.iter().map(|byte| i64::from(*byte)).sum::<i64>()
        - block[148..156]
            .iter()
            .map(|byte| i64::from(*byte))
            .sum::<i64>()
        + 256;
    block[148..156].copy_from_slice(format!("{:06o}\0 ", change(sum)).as_bytes());
    one(block)
}

#[test]
fn m35_a_checksum_that_is_off_is_refused() {
    assert_eq!(accepted(&with_sum(header(b"a", 0), |sum| sum)), ["a"]);
    refused(&with_sum(header(b"a", 0), |sum| sum + 1), "header_checksum");
    refused(&with_sum(header(b"a", 0), |sum| sum - 1), "header_checksum");
}

#[test]
fn m35_a_checksum_over_signed_bytes_is_refused() {
    let name = "\u{e9}".as_bytes();
    refused(
        &with_sum(header(name, 0), |sum| sum - 256 * name.len() as i64),
        "header_checksum",
    );
}

#[test]
fn m35_a_blank_checksum_is_refused() {
    for blank in [b' ', 0] {
        let mut block = header(b"a", 0);
        block[148..156].fill(blank);
        refused(&one(block), "header_checksum");
    }
}

#[test]
fn m36_setuid() {
    high_mode_bits_are_stripped(b"0004755\0", 0o755);
}

#[test]
fn m36_setgid() {
    high_mode_bits_are_stripped(b"0002755\0", 0o755);
}

#[test]
fn m36_sticky() {
    high_mode_bits_are_stripped(b"0001644\0", 0o644);
}

#[test]
fn m36_all_bits() {
    high_mode_bits_are_stripped(b"0777777\0", 0o777);
}

#[test]
fn m36_no_bits() {
    high_mode_bits_are_stripped(b"0000000\0", 0);
}

#[track_caller]
fn high_mode_bits_are_stripped(mode: &[u8], kept: u32) {
    assert_eq!(read(&field(100, mode)).unwrap().modes["a"], kept);
}

#[test]
fn m36_a_mode_that_is_not_octal_is_refused() {
    refused(&field(100, b"0000rwx\0"), "header_number");
    refused(&field(100, &[0; 8]), "header_number");
}

#[test]
fn m37_numbers_in_base_256_are_refused_and_large_ones_ignored() {
    for at in [108, 116, 136] {
        refused(&field(at, b"\x80\0\0\0\0\0\0\x01"), "header_number");
        let large: &[u8] = if at == 136 {
            b"77777777777\0"
        } else {
            b"7777777\0"
        };
        assert_eq!(accepted(&field(at, large)), ["a"]);
        let empty: &[u8] = if at == 136 { &[0; 12] } else { &[0; 8] };
        assert_eq!(accepted(&field(at, empty)), ["a"]);
    }
}

#[test]
fn m38_a_device_number_is_refused() {
    for at in [329, 337] {
        refused(&field(at, b"0000001\0"), "header_device");
        refused(&field(at, b"x\0\0\0\0\0\0\0"), "header_number");
        assert_eq!(accepted(&field(at, b"0000000\0")), ["a"]);
    }
}

#[test]
fn m39_version_01() {
    refused_magic(b"ustar\x00\x30\x31");
}

#[test]
fn m39_no_version() {
    refused_magic(b"ustar\x00\x00\x00");
}

#[test]
fn m39_gnu() {
    refused_magic(b"ustar\x20\x20\x00");
}

#[test]
fn m39_capitals() {
    refused_magic(b"USTAR\x0000");
}

#[test]
fn m39_a_space() {
    refused_magic(b"ustar\x2000");
}

#[test]
fn m39_seventh_edition() {
    refused_magic(&[0; 8]);
}

#[track_caller]
fn refused_magic(magic: &[u8]) {
    refused(&field(257, magic), "header_magic");
}

#[test]
fn m40_a_link_name_on_a_file_or_folder_is_refused() {
    refused(&field(157, b"target"), "link_name");
    refused(&field(256, b"x"), "link_name");
    refused(&one(with(folder(b"d/"), 157, b"target")), "link_name");
}

#[test]
fn m41_two_zero_blocks_or_more_end_an_archive_and_fewer_do_not() {
    let mut tar = open(&[(header(b"a", 0), b"")]);
    refused(&tar, "tar_end");
    tar.resize(tar.len() + 512, 0);
    refused(&tar, "tar_end");
    tar.resize(tar.len() + 512, 0);
    assert_eq!(accepted(&tar), ["a"]);
    tar.resize(tar.len() + 100 * 512, 0);
    assert_eq!(accepted(&tar), ["a"]);
}

#[test]
fn m42_data_after_the_end_is_refused() {
    for zero_blocks in [1, 2, 20] {
        let mut tar = open(&[(header(b"a", 0), b"")]);
        tar.resize(tar.len() + zero_blocks * 512, 0);
        tar.extend(named(&[b"b"]));
        assert!(refused(&tar, "tar_trailing").entry.is_none());
    }
    let mut tar = named(&[b"a"]);
    tar.extend([0; 511]);
    tar.push(1);
    refused(&tar, "tar_trailing");
}

#[test]
fn m43_padding_that_is_not_zero_is_refused() {
    let mut tar = tar(&[(header(b"a", 3), b"abc")]);
    for at in [512 + 3, 1023] {
        tar[at] = 1;
        refused(&tar, "tar_padding");
        tar[at] = 0;
    }
    assert_eq!(accepted(&tar), ["a"]);
    refused(&field(500, b"x"), "header_padding");
    refused(&field(511, b"x"), "header_padding");
}

#[test]
fn m44_an_archive_that_is_cut_short_anywhere_is_refused() {
    let whole = tar(&[(header(b"a", 600), &[7; 600]), (folder(b"d/"), b"")]);
    for length in (0..whole.len()).step_by(7).chain([512, 1536, 2048, 2560]) {
        // after the folder nothing is missing but the end
        let codes: &[&str] = match length {
            0 | 1536 | 2048 => &["tar_end"],
            2049.. => &["tar_end", "tar_truncated"],
            _ => &["tar_truncated"],
        };
        let error = read(&whole[..length]).unwrap_err();
        assert!(codes.contains(&error.code()), "{length}: {error}");
    }
    let mut uneven = whole.clone();
    uneven.push(0);
    refused(&uneven, "tar_truncated");
}

#[test]
fn m45_an_archive_without_files_unpacks_to_nothing() {
    assert!(accepted(&tar(&[])).is_empty());
    assert!(accepted(&named(&[b"d/", b"d/e/"])).is_empty());
    refused(&[], "tar_end");
}

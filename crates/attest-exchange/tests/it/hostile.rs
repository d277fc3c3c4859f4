//! Each rule of the archive reader, by a name.

use attest_exchange::archive::{self, ArchiveError, Limits};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::support::{Raw, vector};

#[track_caller]
fn refused(raw: &Raw, words: &str) {
    let error = raw.read().unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    assert!(!error.is_resource_limit(), "{error}");
}

/// An entry more, with a change to its header.
fn with(name: &str, bytes: &[u8], change: impl FnOnce(&mut [u8; 512])) -> Raw {
    Raw::whole().entry(name, bytes, change).end()
}

const EVENT: &str = "events/0000000000000000000000000000000000000000000000000000000000000000.json";

#[test]
fn the_archive_that_the_cases_change_is_accepted() {
    let archive = Raw::whole().end().read().unwrap();
    let receipt = attest_receipt::receipt::read(&archive.receipt).unwrap();
    let check = archive.linkage(&receipt);
    assert_eq!(check.status, attest_verify::Status::Pass, "{check:?}");
    assert!(!archive.partial);
}

#[test]
fn links_folders_and_devices_are_refused() {
    for kind in [
        b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'D', b'Z', b' ', 0xff,
    ] {
        let raw = with(EVENT, b"", |header| header[156] = kind);
        refused(&raw, "is not a regular file");
    }
    let raw = with(EVENT, b"", |header| {
        header[157..161].copy_from_slice(b"/etc");
    });
    refused(&raw, "differs from what its name and size give");
}

#[test]
fn extension_headers_are_refused_before_their_content_is_read() {
    for kind in [b'x', b'g', b'L', b'K', b'X', b'S', b'M', b'N', b'V'] {
        let raw = with(EVENT, b"30 path=events/../../x\n", |header| {
            header[156] = kind;
            header[124..136].copy_from_slice(b"77777777777\0");
        });
        refused(&raw, "is a tar extension");
    }
}

#[test]
fn names_that_leave_the_archive_or_mean_nothing_are_refused() {
    for name in [
        "/etc/passwd",
        "../receipt.yaml",
        "events/../receipt.yaml",
        "./receipt.yaml",
        "events//a.json",
        "events/./a.json",
        "events/",
        "..",
        "",
    ] {
        let error = with(name, b"", |_| {}).read().unwrap_err();
        assert_eq!(error, ArchiveError::Escapes(name.to_owned()));
    }
    let upper = EVENT.replace('0', "A");
    for name in [
        "readme",
        "Receipt.yaml",
        "receipt.yaml ",
        "receipt.yaml\n",
        "events/a.json",
        &upper,
        "pubkeys/a.pub",
        "pubkeys/00000000000000000000000000000000.pem",
        "a\\b",
        "C:x",
        "events/receipt.yaml",
        "manifest.json\u{7f}",
    ] {
        let error = with(name, b"", |_| {}).read().unwrap_err();
        assert_eq!(error, ArchiveError::Stranger(name.to_owned()));
    }
    let raw = with(EVENT, b"", |header| header[0] = 0xff);
    refused(&raw, "its name is not UTF-8");
}

#[test]
fn an_entry_is_there_once() {
    for name in ["manifest.json", "receipt.yaml"] {
        let error = with(name, b"{}", |_| {}).read().unwrap_err();
        assert_eq!(error, ArchiveError::Twice(name.to_owned()));
    }
    // The bytes after the NUL of a name are no other name.
    let raw = with("receipt.yaml", b"", |header| header[20] = b'x');
    refused(&raw, "differs from what its name and size give");
}

#[test]
fn every_field_of_a_header_is_the_writers() {
    for (at, bytes) in [
        (100, b"0000755\0".as_slice()),
        (100, b"0100644\0"),
        (100, b"   644 \0"),
        (108, b"0001750\0"),
        (116, b"0001750\0"),
        (136, b"00000000001\0"),
        (257, b"ustar  \0"),
        (257, b"\0\0\0\0\0\0\0\0"),
        (263, b"01"),
        (265, b"root"),
        (297, b"root"),
        (329, b"0000001\0"),
        (337, b"0000001\0"),
        (345, b"events"),
        (500, b"x"),
    ] {
        let raw = with(EVENT, b"", |header| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
        });
        refused(&raw, "differs from what its name and size give");
    }
}

#[test]
fn a_size_has_one_spelling() {
    for size in [
        b"          5\0",
        b"0000000005 \0",
        b"00000000008\0",
        b"-0000000005\0",
        b"\x80\0\0\0\0\0\0\0\0\0\0\x05",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfb",
        b"000000000005",
        b"0000000\x00005\0",
        b"\0\0\0\0\0\0\0\0\0\0\0\0",
        b"+0000000005\0",
    ] {
        let raw = with(EVENT, b"12345", |header| {
            header[124..136].copy_from_slice(size)
        });
        refused(&raw, "its size is no number");
    }
}

#[test]
fn a_checksum_is_right() {
    for change in [b"0000000\0", b"        ", b"7777777\0", b"+007777\0"] {
        let mut raw = Raw::whole();
        let at = raw.0.len();
        raw = raw.file(EVENT, b"");
        raw.0[at + 148..at + 156].copy_from_slice(change);
        refused(&raw.end(), "differs from what its name and size give");
    }
}

#[test]
fn an_archive_ends_where_it_ends() {
    // Nothing at all, or a part.
    refused(&Raw::default(), "cut short");
    refused(&Raw::whole(), "cut short");
    let mut raw = Raw::whole();
    raw.0.extend([0; 512]);
    refused(&raw, "cut short");
    let whole = Raw::whole().end().0;
    for cut in [1, 511, 512, 600, 1023, 1024, 1500] {
        refused(&Raw(whole[..whole.len() - cut].to_vec()), "cut short");
    }
    // Something after one block of zeros, or after the two.
    for zeros in [512, 1024, 4096] {
        let mut raw = Raw::whole();
        raw.0.extend(vec![0; zeros]);
        refused(&raw.file(EVENT, b"").end(), "goes on after its end");
    }
    // Zeros, as other writers leave them.
    let mut raw = Raw::whole().end();
    raw.0.extend([0; 10_000]);
    raw.read().unwrap();
}

#[test]
fn padding_is_zero() {
    let mut raw = Raw::whole().file(EVENT, b"12345");
    *raw.0.last_mut().unwrap() = 1;
    refused(&raw.end(), "goes on after its end");
}

#[test]
fn a_frame_is_the_only_one_and_whole() {
    let good = Raw::whole().end().zst();
    let read = |bytes: &[u8]| archive::read(bytes, &Limits::default());
    read(&good).unwrap();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    for more in [good.as_slice(), &skippable, b"x", b"\0"] {
        let longer = [good.as_slice(), more].concat();
        assert_eq!(read(&longer).unwrap_err(), ArchiveError::Trailing);
    }
    let framed = [skippable.as_slice(), &good].concat();
    assert!(matches!(read(&framed), Err(ArchiveError::Frame(_))));
    for cut in 1..good.len() {
        assert!(read(&good[..good.len() - cut]).is_err(), "{cut} bytes less");
    }
    for other in [
        b"".as_slice(),
        b"\x1f\x8b\x08\0\0\0\0\0",
        b"plain",
        &Raw::whole().end().0,
    ] {
        assert!(matches!(read(other), Err(ArchiveError::Frame(_))));
    }
}

#[test]
fn a_window_beyond_eight_mebibytes_is_refused_before_it_is_allocated() {
    // A frame that asks for 1 GiB, and one that asks for 8 MiB, each with an empty last block.
    let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
    let error = archive::read(&frame(20 << 3), &Limits::default()).unwrap_err();
    assert!(error.is_resource_limit(), "{error}");
    assert_eq!(
        error.to_string(),
        "resource limit: the archive has more than 8388608 bytes of the zstd window"
    );
    let error = archive::read(&frame(13 << 3), &Limits::default()).unwrap_err();
    assert_eq!(error, ArchiveError::CutShort);
}

#[test]
fn a_dictionary_is_not_there() {
    let bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58, 7, 1, 0, 0];
    let error = archive::read(&bytes, &Limits::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Frame(_)), "{error}");
}

#[test]
fn manifest_and_receipt_are_there() {
    let manifest = b"{\"format\":\"attest-archive/v1\",\"created\":\"x\",\"attest_version\":\"1\"}";
    refused(&Raw::default().end(), "has no manifest.json");
    let raw = Raw::default().file("manifest.json", manifest).end();
    refused(&raw, "has no receipt.yaml");
    let raw = Raw::default().file("receipt.yaml", b"{}").end();
    refused(&raw, "has no manifest.json");
}

#[test]
fn a_manifest_is_strict_json_of_this_format() {
    for (manifest, words) in [
        (
            r#"{"format":"attest-archive/v2","more":1}"#,
            "unsupported archive format 'attest-archive/v2'",
        ),
        (
            r#"{"format":"attest-archive/v1","format":"x"}"#,
            "manifest.json:",
        ),
        (
            r#"{"format":"attest-archive/v1","created":"x","attest_version":"1","more":1}"#,
            "manifest.json:",
        ),
        (
            r#"{"format":"attest-archive/v1","created":"x","attest_version":"1","partial":null}"#,
            "manifest.json:",
        ),
        (
            r#"{"format":"attest-archive/v1","created":"x","attest_version":"1","partial":"true"}"#,
            "manifest.json:",
        ),
        (
            r#"{"format":"attest-archive/v1","created":"x"}"#,
            "manifest.json:",
        ),
        (r#"{"created":"x","attest_version":"1"}"#, "manifest.json:"),
        ("[]", "manifest.json:"),
        ("", "manifest.json:"),
        ("{\"format\":\"attest-archive/v1\"} x", "manifest.json:"),
    ] {
        let raw = Raw::default().file("manifest.json", manifest.as_bytes());
        refused(&raw.file("receipt.yaml", b"").end(), words);
    }
}

#[test]
fn a_public_key_is_the_one_of_its_name() {
    let pem = vector("trust/c68b486a224b6cd4bd46184e50b5a83b.pub");
    let name = "pubkeys/c68b486a224b6cd4bd46184e50b5a83b.pub";
    Raw::whole().file(name, &pem).end().read().unwrap();
    for (name, bytes) in [
        (
            "pubkeys/00000000000000000000000000000000.pub",
            pem.as_slice(),
        ),
        (name, b"-----BEGIN PUBLIC KEY-----\n"),
        (name, b""),
    ] {
        refused(&with(name, bytes, |_| {}), "is not the public key");
    }
}

#[test]
fn a_compressed_bomb_is_not_unpacked() {
    // Megabytes of zeros after the end, in a few kilobytes.
    let zeros = vec![0; 1 << 20];
    let many = std::iter::repeat_n(zeros.as_slice(), 16)
        .collect::<Vec<_>>()
        .concat();
    let mut raw = Raw::whole().end();
    raw.0.extend(many);
    let bytes = compress_to_vec(raw.0.as_slice(), CompressionLevel::Fastest);
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    let limits = Limits {
        unpacked: 1 << 20,
        ..Limits::default()
    };
    let error = archive::read(&bytes, &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "resource limit: the archive has more than 1048576 unpacked bytes"
    );
}

//! What is packed, to the byte.

use std::num::NonZeroUsize;

use plugin_archive::{Files, Limits, Modes, digest, pack, pack_with_threads, unpack_with_metadata};
use test_case::test_case;

const GOLDEN: &[u8] = include_bytes!("../golden/package.tar.gz");

fn package() -> (Files, Modes) {
    let files = [
        ("plugin.json", "{\"name\":\"example\"}\n".to_owned()),
        ("skills/one/SKILL.md", "---\nname: one\n---\n".to_owned()),
        ("skills/one/scripts/run", "#!/bin/sh\necho one\n".repeat(40)),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes()));
    (
        Files::from(files),
        Modes::from([("skills/one/scripts/run".to_owned(), 0o4755)]),
    )
}

/// More than two pieces, of text that repeats itself in no simple way.
fn large() -> Files {
    let mut state = 1_u32;
    let mut word = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        [
            "fork ", "gate ", "lease\n", "plugin ", "archive ", "of a ", "7", "\u{e9}",
        ][(state >> 29) as usize]
    };
    let mut text = |bytes: usize| {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(word());
        }
        text.into_bytes()
    };
    Files::from([
        ("a".to_owned(), text(300_000)),
        ("b".to_owned(), text(1)),
        ("c/d".to_owned(), text(350_000)),
    ])
}

#[test]
fn the_bytes_are_those_that_were_committed() {
    let (files, modes) = package();
    let archive = pack(&files, &modes, &Limits::default()).unwrap();
    assert_eq!(archive, GOLDEN);
    assert_eq!(&archive[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
}

#[test]
fn the_digest_of_a_large_archive_is_the_one_that_was_committed() {
    let archive = pack(&large(), &Modes::new(), &Limits::default()).unwrap();
    let expected = "sha256:bdeeaf58221bbcc05c1f80ff21ecfc87c46f0176a2eadc6f8de33a74bf46e1b3";
    assert_eq!(digest(&archive).to_string(), expected);
}

#[test_case(1)]
#[test_case(2)]
#[test_case(7)]
fn the_number_of_threads_changes_nothing(threads: usize) {
    let (files, limits) = (large(), Limits::default());
    let expected = pack(&files, &Modes::new(), &limits).unwrap();
    let threads = NonZeroUsize::new(threads).unwrap();
    assert_eq!(
        pack_with_threads(&files, &Modes::new(), &limits, threads).unwrap(),
        expected
    );
    assert_eq!(
        unpack_with_metadata(&expected, &limits).unwrap().files,
        files
    );
}

#[test]
fn headers_say_nothing_of_where_and_when() {
    let (files, modes) = package();
    let archive = pack(&files, &modes, &Limits::default()).unwrap();
    let tar = miniz_oxide::inflate::decompress_to_vec(&archive[10..]).unwrap();
    let mut paths = Vec::new();
    let mut entries = tar::Archive::new(&tar[..]);
    for entry in entries.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert!(header.as_ustar().is_some());
        assert_eq!(
            (
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mtime().unwrap()
            ),
            (0, 0, 0)
        );
        assert_eq!(
            (header.username().unwrap(), header.groupname().unwrap()),
            (Some(""), Some(""))
        );
        let path = entry.path().unwrap().display().to_string();
        let mode = if path.ends_with("run") { 0o755 } else { 0o644 };
        assert_eq!(header.mode().unwrap(), mode, "{path}");
        paths.push(path);
    }
    assert!(paths.is_sorted(), "{paths:?}");
    assert_eq!(paths.len(), files.len());
    assert_eq!(tar.len(), 3 * 512 + 512 + 512 + 1024 + 1024);
}

#[test]
fn modes_keep_the_low_nine_bits() {
    let (files, modes) = package();
    let archive = pack(&files, &modes, &Limits::default()).unwrap();
    let snapshot = unpack_with_metadata(&archive, &Limits::default()).unwrap();
    assert_eq!(snapshot.modes["skills/one/scripts/run"], 0o755);
    assert_eq!(snapshot.modes["plugin.json"], 0o644);
    assert_eq!(snapshot.modes.len(), snapshot.files.len());
}

fn refused(path: &str, code: &str) {
    let error = pack(
        &Files::from([(path.to_owned(), Vec::new())]),
        &Modes::new(),
        &Limits::default(),
    )
    .unwrap_err();
    assert_eq!(error.code(), code, "{error}");
}

#[test]
fn a_path_that_fits_no_header_is_refused_and_the_longest_that_fits_is_packed() {
    let (p155, n100) = ("p".repeat(155), "n".repeat(100));
    let longest = format!("{p155}/{n100}");
    for path in [
        n100.clone(),
        longest.clone(),
        format!("p/{n100}"),
        format!("{p155}/n"),
    ] {
        let files = Files::from([(path, vec![1])]);
        let archive = pack(&files, &Modes::new(), &Limits::default()).unwrap();
        assert_eq!(
            unpack_with_metadata(&archive, &Limits::default())
                .unwrap()
                .files,
            files
        );
    }
    refused(&format!("{n100}n"), "path_too_long");
    refused(&format!("{p155}/{n100}n"), "path_too_long");
    refused(&format!("{p155}p/{n100}"), "path_too_long");
    refused(&format!("{n100}/a/{n100}/a"), "path_too_long");
}

#[test]
fn what_unpacking_refuses_is_not_packed() {
    for (path, code) in [
        ("", "path_empty"),
        ("/a", "path_absolute"),
        ("a/../b", "path_traversal"),
        ("a//b", "path_component"),
        ("a/", "path_component"),
        ("a\\b", "path_backslash"),
        ("c:a", "path_drive"),
        ("a\nb", "path_control"),
    ] {
        refused(path, code);
    }
    let files = Files::from([("a".to_owned(), Vec::new()), ("a/b".to_owned(), Vec::new())]);
    assert_eq!(
        pack(&files, &Modes::new(), &Limits::default())
            .unwrap_err()
            .code(),
        "conflict"
    );
}

#[test]
fn a_mode_for_a_path_that_is_no_file_is_refused() {
    let modes = Modes::from([("bin/run".to_owned(), 0o755)]);
    let error = pack(&Files::new(), &modes, &Limits::default()).unwrap_err();
    assert_eq!(error.code(), "mode_without_file");
    assert!(error.to_string().contains("`bin/run`"), "{error}");
}

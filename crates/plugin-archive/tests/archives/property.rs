//! Whatever the bytes are.

use std::collections::BTreeMap;

use plugin_archive::{Files, Limits, Modes, pack, unpack_with_metadata};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::build::gzip;

/// Each file in a folder of its own, so that no path is both.
fn packages() -> impl Strategy<Value = (Files, Modes)> {
    let path = "[a-z][A-Za-z0-9 ._+\u{e0}-\u{ff}-]{0,40}(/[a-z0-9._-]{0,20}[a-z0-9]){0,3}";
    btree_map(path, (vec(any::<u8>(), 0..3000), any::<u32>()), 0..12).prop_map(|entries| {
        let entries: BTreeMap<_, _> = entries
            .into_iter()
            .enumerate()
            .map(|(n, (path, entry))| (format!("{n}/{path}"), entry))
            .collect();
        let modes = entries
            .iter()
            .map(|(path, (_, mode))| (path.clone(), *mode))
            .collect();
        (
            entries
                .into_iter()
                .map(|(path, (bytes, _))| (path, bytes))
                .collect(),
            modes,
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_packed_is_unpacked((files, modes) in packages()) {
        let limits = Limits::default();
        let archive = pack(&files, &modes, &limits).unwrap();
        let snapshot = unpack_with_metadata(&archive, &limits).unwrap();
        prop_assert_eq!(&snapshot.files, &files);
        let kept: Modes = modes.iter().map(|(path, mode)| (path.clone(), mode & 0o777)).collect();
        prop_assert_eq!(&snapshot.modes, &kept);
        prop_assert_eq!(pack(&snapshot.files, &snapshot.modes, &limits).unwrap(), archive);
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..2000)) {
        plugin_archive::fuzz_entry::archive(&bytes);
        plugin_archive::fuzz_entry::archive(&gzip(&bytes));
    }

    #[test]
    fn a_damaged_archive_is_refused_or_says_exactly_the_same((files, modes) in packages(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let archive = pack(&files, &modes, &Limits::default()).unwrap();
        let whole = unpack_with_metadata(&archive, &Limits::default()).unwrap();
        let mut damaged = archive.clone();
        damaged[at.index(archive.len())] ^= flip;
        if let Ok(read) = unpack_with_metadata(&damaged, &Limits::default()) {
            prop_assert_eq!(read, whole);
        }
    }

    #[test]
    fn a_damaged_stream_never_exceeds_the_limits(
        (files, modes) in packages(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let archive = pack(&files, &modes, &Limits::default()).unwrap();
        let mut tar = miniz_oxide::inflate::decompress_to_vec(&archive[10..]).unwrap();
        for (at, byte) in changes {
            let at = at.index(tar.len());
            tar[at] = byte;
        }
        plugin_archive::fuzz_entry::archive(&gzip(&tar));
    }
}

/// Every place where a changed byte of an archive is not noticed, and what may change there.
fn unnoticed(files: &Files, flips: &[u8]) -> Vec<(usize, u8)> {
    let archive = pack(files, &Modes::new(), &Limits::default()).unwrap();
    let whole = unpack_with_metadata(&archive, &Limits::default()).unwrap();
    let mut places = Vec::new();
    for at in 0..archive.len() {
        let mut may_change = 0;
        for flip in flips.iter().copied() {
            let mut damaged = archive.clone();
            damaged[at] ^= flip;
            if let Ok(read) = unpack_with_metadata(&damaged, &Limits::default()) {
                assert_eq!(read, whole, "byte {at} with {flip:#04x}");
                may_change |= flip;
            }
        }
        if may_change != 0 {
            places.push((at, may_change));
        }
    }
    places
}

/// Found by the property: the bits between the end of the compressed data and the next whole byte.
/// Like the time and the system in the header they say nothing about the contents.
#[test]
fn in_an_archive_of_nothing_only_what_means_nothing_may_change() {
    let text = 1;
    let time_hint_and_system = (4..10).map(|at| (at, u8::MAX));
    let behind_the_last_code = 0b1111_1100;
    let expected: Vec<_> = [(3, text)]
        .into_iter()
        .chain(time_hint_and_system)
        .chain([(26, behind_the_last_code)])
        .collect();
    let every_change: Vec<u8> = (1..=u8::MAX).collect();
    assert_eq!(unnoticed(&Files::new(), &every_change), expected);
}

/// Compressed data has several spellings of the same bytes, so some changes in it are one of them.
#[test]
fn in_an_archive_of_a_file_every_turned_bit_is_noticed_or_changes_nothing() {
    let files = Files::from([("a".to_owned(), (0..=255).collect())]);
    let every_bit: Vec<u8> = (0..8).map(|bit| 1 << bit).collect();
    assert!(unnoticed(&files, &every_bit).len() >= 7);
}

//! M55: each limit exactly met, and exceeded by one, in both directions.

use plugin_archive::{ArchiveError, Budget, Files, LimitName, Limits, Modes, Rule, pack, unpack};

fn files() -> Files {
    Files::from([
        ("a/b/c".to_owned(), vec![1; 700]),
        ("d".to_owned(), vec![2; 300]),
        ("e".to_owned(), Vec::new()),
    ])
}

fn exceeds(error: &ArchiveError, name: LimitName, limit: u64) {
    assert_eq!(error.rule, Rule::Limit { name, limit });
    let text = error.to_string();
    assert!(
        text.contains(&format!("{} allows, which is {limit}", name.as_str())),
        "{text}"
    );
}

fn archive_bytes() -> u64 {
    pack(&files(), &Modes::new(), &Limits::default())
        .unwrap()
        .len() as u64
}

#[test]
fn m55_archive_bytes() {
    each_limit(LimitName::ArchiveBytes, archive_bytes(), |limits, n| {
        limits.archive_bytes = n
    });
}

#[test]
fn m55_uncompressed_bytes() {
    each_limit(
        LimitName::UncompressedBytes,
        3 * 512 + 1024 + 512 + 1024,
        |limits, n| limits.uncompressed_bytes = n,
    );
}

#[test]
fn m55_total_bytes() {
    each_limit(LimitName::TotalBytes, 1000, |limits, n| {
        limits.total_bytes = n
    });
}

#[test]
fn m55_file_bytes() {
    each_limit(LimitName::FileBytes, 700, |limits, n| limits.file_bytes = n);
}

#[test]
fn m55_files() {
    each_limit(LimitName::Files, 3, |limits, n| limits.files = n);
}

#[test]
fn m55_entries() {
    each_limit(LimitName::Entries, 3, |limits, n| limits.entries = n);
}

#[test]
fn m55_depth() {
    each_limit(LimitName::Depth, 3, |limits, n| limits.depth = n);
}

#[track_caller]
fn each_limit(name: LimitName, met: u64, set: fn(&mut Limits, u64)) {
    let archive = pack(&files(), &Modes::new(), &Limits::default()).unwrap();
    let mut limits = Limits::default();
    set(&mut limits, met);
    assert_eq!(unpack(&archive, &limits).unwrap(), files());
    assert_eq!(pack(&files(), &Modes::new(), &limits).unwrap(), archive);
    set(&mut limits, met - 1);
    exceeds(&unpack(&archive, &limits).unwrap_err(), name, met - 1);
    exceeds(
        &pack(&files(), &Modes::new(), &limits).unwrap_err(),
        name,
        met - 1,
    );
}

#[test]
fn the_defaults_are_those_of_the_protocol() {
    let limits = Limits::default();
    assert_eq!(
        (limits.archive_bytes, limits.uncompressed_bytes),
        (32 << 20, 80_000_000)
    );
    assert_eq!(
        (limits.total_bytes, limits.file_bytes),
        (64 << 20, 16 << 20)
    );
    assert_eq!(
        (limits.files, limits.entries, limits.depth),
        (10_000, 20_000, 64)
    );
}

#[test]
fn folders_count_as_entries() {
    let archive = crate::build::gzip(&crate::build::named(&[b"d/", b"e/", b"f"]));
    let limits = |entries| Limits {
        entries,
        ..Limits::default()
    };
    assert_eq!(unpack(&archive, &limits(3)).unwrap().len(), 1);
    exceeds(
        &unpack(&archive, &limits(2)).unwrap_err(),
        LimitName::Entries,
        2,
    );
}

#[test]
fn a_folder_that_is_read_counts_the_same_way() {
    let mut budget = Budget::new(&Limits {
        files: 1,
        ..Limits::default()
    });
    budget.entry("a").unwrap();
    budget.file("a", 1).unwrap();
    budget.entry("b").unwrap();
    let error = budget.file("b", 1).unwrap_err();
    exceeds(&error, LimitName::Files, 1);
    assert!(error.to_string().starts_with("`b`: "), "{error}");
}

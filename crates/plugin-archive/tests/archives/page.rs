//! The reference page against the code.

use plugin_archive::{LimitName, Limits, Rule};

const PAGE: &str = include_str!("../../../../docs/reference/plugin-archive.md");

/// The rows of the table under this heading, cell by cell.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let (_, rest) = PAGE.split_once(head).unwrap();
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_page_has_every_rule_and_no_other() {
    let written = table("| rule | refused |");
    let expected: Vec<_> = Rule::CODES
        .iter()
        .map(|(code, text)| vec![format!("`{code}`"), (*text).to_owned()])
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn the_page_has_every_limit_with_its_default() {
    let limits = Limits::default();
    let expected = [
        (LimitName::ArchiveBytes, limits.archive_bytes),
        (LimitName::UncompressedBytes, limits.uncompressed_bytes),
        (LimitName::TotalBytes, limits.total_bytes),
        (LimitName::FileBytes, limits.file_bytes),
        (LimitName::Files, limits.files),
        (LimitName::Entries, limits.entries),
        (LimitName::Depth, limits.depth),
    ];
    let expected = expected.map(|(name, value)| (format!("`{}`", name.as_str()), value));
    let written = table("| limit | default | counts |");
    let written: Vec<_> = written
        .iter()
        .map(|row| (row[0].to_owned(), row[1].replace(' ', "").parse().unwrap()))
        .collect();
    assert_eq!(written, expected);
}

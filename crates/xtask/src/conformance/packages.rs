//! The rules of Agent Plugins packages by their numbers: every one has a row, every row names
//! packages of the corpus that are accepted and that are refused by it, and every package of the
//! corpus belongs to a row.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::scenarios::{Sections, complete};
use super::{Known, Row, judge, rows};

/// Where the rows are.
const PAGE: &str = "docs/conformance/agent-plugins-1.md";

/// Where the packages are, and which crate loads them.
const CORPUS: &str = "crates/agent-plugin/tests/corpus";
const CRATE: &str = "agent-plugin::";

/// The two halves of the corpus.
const HALVES: [&str; 2] = ["accept", "reject"];

/// The sections of the page and the ids that each must have, no more and no fewer.
const SECTIONS: &Sections = &[
    (
        "Manifest",
        &[
            "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M10", "M11", "M12", "M13", "M14",
        ],
    ),
    ("Skills", &["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"]),
    ("mcp.json", &["J1", "J2", "J3", "J4", "J5"]),
    (
        "Servers",
        &[
            "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11",
        ],
    ),
];

/// About links, which the packages of the corpus cannot have.
const OF_DIRECTORIES: &str = "M12";

/// Checks the page and returns how many rows it has and how many of them are planned.
pub(super) fn check(
    root: &Path,
    known: &Known,
    findings: &mut Vec<String>,
) -> Result<(usize, usize)> {
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let rows = rows(&page);
    complete(PAGE, SECTIONS, &rows, findings);
    let mut planned = 0;
    for row in &rows {
        planned += judge(PAGE, row, known, root, findings);
        shown(row, findings);
    }
    for half in HALVES {
        for name in cases(root, half)? {
            let case = format!("{half}/{name}");
            if !rows
                .iter()
                .any(|row| patterns(row).any(|pattern| matches(pattern, &case)))
            {
                findings.push(format!(
                    "{PAGE}: no row has the package {CORPUS}/{case}.json"
                ));
            }
        }
    }
    Ok((rows.len(), planned))
}

/// Tells whether `package::folder/name` is a package of the corpus; a name may end in `*`.
pub(super) fn is_case(root: &Path, test: &str) -> bool {
    let Some((half, name)) = test
        .strip_prefix(CRATE)
        .and_then(|case| case.split_once('/'))
    else {
        return false;
    };
    HALVES.contains(&half)
        && cases(root, half).is_ok_and(|cases| cases.iter().any(|case| matches(name, case)))
}

/// The packages of one half, without their ending.
fn cases(root: &Path, half: &str) -> Result<Vec<String>> {
    let folder = root.join(CORPUS).join(half);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        found.extend(name.strip_suffix(".json").map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// The packages that a row names.
fn patterns(row: &Row) -> impl Iterator<Item = &str> {
    row.tests
        .iter()
        .filter_map(|test| test.strip_prefix(CRATE).filter(|test| test.contains('/')))
}

/// A row names packages of both halves, and each is named after it.
fn shown(row: &Row, findings: &mut Vec<String>) {
    let (letter, number) = row.first.split_at(row.first.len().min(1));
    let prefix = format!("{}{number:0>2}-", letter.to_ascii_lowercase());
    for half in HALVES {
        let mut named = patterns(row)
            .filter_map(|case| case.strip_prefix(half)?.strip_prefix('/'))
            .peekable();
        if named.peek().is_none() && row.first != OF_DIRECTORIES {
            findings.push(format!(
                "{PAGE}:{}: {} names no package of `{half}`",
                row.line, row.first
            ));
        }
        for case in named.filter(|case| !case.starts_with(&prefix)) {
            findings.push(format!(
                "{PAGE}:{}: `{case}` is not named after {}",
                row.line, row.first
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "## Skills\n\n| id | what must hold | tests |\n|---|---|---|\n";

    fn found(body: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for row in rows(&format!("{HEAD}{body}")) {
            shown(&row, &mut findings);
        }
        findings
    }

    #[test]
    fn a_row_names_packages_of_both_halves() {
        let both = "| S1 | a | `agent-plugin::accept/s01-a`, `agent-plugin::reject/s01-*` |\n";
        assert_eq!(found(both), [] as [&str; 0]);
        let one = found("| S1 | a | `agent-plugin::accept/s01-a`, `agent-plugin::a_test` |\n");
        assert!(
            matches!(&one[..], [finding] if finding.contains("S1 names no package of `reject`"))
        );
        assert_eq!(
            found("| M12 | a | `agent-plugin-dir::a_test` |\n"),
            [] as [&str; 0]
        );
    }

    #[test]
    fn a_package_is_named_after_the_rule() {
        let other = "| S1 | a | `agent-plugin::accept/s10-a`, `agent-plugin::reject/s01-*` |\n";
        let findings = found(other);
        assert!(matches!(&findings[..], [finding] if finding.contains("`s10-a`")));
    }

    #[test]
    fn packages_are_found_by_name_and_by_its_beginning() {
        let root = tempfile::tempdir().unwrap();
        for half in HALVES {
            fs::create_dir_all(root.path().join(CORPUS).join(half)).unwrap();
        }
        fs::write(root.path().join(CORPUS).join("accept/s01-a.json"), "").unwrap();
        for (test, there) in [
            ("agent-plugin::accept/s01-a", true),
            ("agent-plugin::accept/s01-*", true),
            ("agent-plugin::accept/s02-*", false),
            ("agent-plugin::reject/s01-a", false),
            ("agent-plugin::other/s01-a", false),
            ("other::accept/s01-a", false),
        ] {
            assert_eq!(is_case(root.path(), test), there, "{test}");
        }
    }
}

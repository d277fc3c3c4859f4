//! Holds `docs/conformance/*.md` against the tests: every section of a seed has rows, every row
//! names tests that exist or a capability that does not exist yet. The scenarios are held against
//! the tests likewise, by the names of the tests.

mod packages;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::stage::{Verdict, report};
use crate::workspace::{files, root};

/// The seeds and their sections, as the headings of their conformance pages.
const SEEDS: &[(&str, &[&str])] = &[
    (
        "plugin-protocol-v1",
        &[
            "Transport and session",
            "Operations and terminals",
            "Conformance",
            "Live operator activity",
        ],
    ),
    (
        "attest-plugin-1",
        &[
            "1. Scope",
            "2. Guarantees",
            "3. Discovery and trust",
            "4. Transport",
            "5. Lifecycle",
            "6. Messages",
            "7. Receipt integration",
            "8. Failure modes",
            "9. Determinism and reproducibility",
            "10. Exit codes",
            "11. Versioning",
            "12. Security considerations",
            "13. Reference plugin",
            "14. Open questions",
        ],
    ),
    (
        "backplane-plugin-protocol",
        &["Package", "Snapshots and safety", "Distribution client"],
    ),
];

/// What may be planned, and the path whose existence says that it is there.
const CAPABILITIES: &[(&str, &str)] = &[
    ("activity drawer", "crates/gate/src/ui"),
    ("job_control/v1", "crates/gate-link/src/control.rs"),
    ("forge-codex-plugin", "bins/forge-codex-plugin"),
    ("strict conformance", "crates/conformance/src/strict"),
    ("attest", "bins/attest"),
    ("attest-plugin-host", "docs/protocols/attest-plugin-1.md"),
    ("agent-plugin", "docs/reference/plugin-package.md"),
    ("agent-plugin-dir", "crates/agent-plugin-dir/tests"),
    ("plugin-archive", "docs/reference/plugin-archive.md"),
    ("backplane-client", "crates/backplane-client"),
];

/// The test functions of each package.
type Known = BTreeMap<String, BTreeSet<String>>;

/// One row of a page.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    section: String,
    line: usize,
    /// The first cell, which is the rule where there are but two.
    first: String,
    rule: String,
    tests: Vec<String>,
}

/// Runs the check.
pub(crate) fn run() -> Result<Verdict> {
    let root = root()?;
    let known = test_names(&root)?;
    let mut findings = Vec::new();
    let mut rows_seen = 0;
    let mut planned = 0;
    for (seed, sections) in SEEDS {
        let name = format!("docs/conformance/{seed}.md");
        let page =
            fs::read_to_string(root.join(&name)).with_context(|| format!("cannot read {name}"))?;
        let rows = rows(&page);
        rows_seen += rows.len();
        for section in *sections {
            if !rows.iter().any(|row| row.section == *section) {
                findings.push(format!("{name}: the section `{section}` has no rows"));
            }
        }
        for row in &rows {
            if !sections.contains(&row.section.as_str()) {
                findings.push(format!(
                    "{name}:{}: the seed has no section `{}`",
                    row.line, row.section
                ));
            }
            planned += judge(&name, row, &known, &root, &mut findings);
        }
    }
    let (rows, later) = scenarios::check(&root, &known, &mut findings)?;
    rows_seen += rows;
    planned += later;
    let (rows, later) = packages::check(&root, &known, &mut findings)?;
    rows_seen += rows;
    planned += later;
    println!("conformance: {planned} of {rows_seen} rules are planned");
    Ok(report(
        "conformance",
        &format!("{rows_seen} rules"),
        &findings,
    ))
}

/// Judges a row and returns 1 if it is planned.
fn judge(name: &str, row: &Row, known: &Known, root: &Path, findings: &mut Vec<String>) -> usize {
    let place = format!("{name}:{}", row.line);
    if row.tests.is_empty() {
        findings.push(format!("{place}: `{}` names no test", row.rule));
    }
    let mut planned = 0;
    for test in &row.tests {
        if let Some(capability) = test.strip_prefix("planned:") {
            planned = 1;
            let capability = capability.trim();
            match CAPABILITIES.iter().find(|(known, _)| *known == capability) {
                None => findings.push(format!("{place}: no capability is called `{capability}`")),
                Some((_, path)) if exists(root, path) => findings.push(format!(
                    "{place}: `{capability}` exists ({path}), so the row names its tests"
                )),
                Some(_) => {}
            }
            continue;
        }
        let found = packages::is_case(root, test)
            || test
                .split_once("::")
                .and_then(|(package, function)| known.get(package).map(|names| (names, function)))
                .is_some_and(|(names, function)| {
                    names.contains(function.rsplit("::").next().unwrap_or(function))
                });
        if !found {
            findings.push(format!("{place}: there is no test `{test}`"));
        }
    }
    planned
}

fn exists(root: &Path, path: &str) -> bool {
    root.join(path).exists() || root.join(format!("{path}.rs")).exists()
}

fn rows(page: &str) -> Vec<Row> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.trim().clone_into(&mut section);
        }
        let Some(inner) = line
            .trim()
            .strip_prefix('|')
            .and_then(|rest| rest.strip_suffix('|'))
        else {
            continue;
        };
        let cells: Vec<&str> = split_cells(inner);
        let (Some(rule), Some(tests)) = (cells.iter().rev().nth(1), cells.last()) else {
            continue;
        };
        let head =
            tests.trim() == "tests" || tests.trim().chars().all(|c| matches!(c, '-' | ':' | ' '));
        if head {
            continue;
        }
        rows.push(Row {
            section: section.clone(),
            line: index + 1,
            first: cells.first().map_or("", |cell| cell.trim()).to_owned(),
            rule: rule.trim().to_owned(),
            tests: tests
                .split(',')
                .map(|test| test.trim().trim_matches('`').to_owned())
                .filter(|test| !test.is_empty())
                .collect(),
        });
    }
    rows
}

/// Splits at `|` where no backslash stands before it.
fn split_cells(row: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut start = 0;
    let mut before = ' ';
    for (at, letter) in row.char_indices() {
        if letter == '|' && before != '\\' {
            cells.push(row.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        before = letter;
    }
    cells.push(row.get(start..).unwrap_or_default());
    cells
}

/// Test functions by package: a function under `#[test]` or `#[tokio::test]`, in a `proptest!` or
/// `cases!` block, a corpus function of datatest-stable, or a `def test_` of a Python file under
/// `e2e`.
fn test_names(root: &Path) -> Result<Known> {
    let mut known = Known::new();
    for path in files(root)? {
        let name = path.to_string_lossy().into_owned();
        let mut parts = name.split('/');
        let package = match (parts.next(), parts.next()) {
            (Some("crates" | "bins"), Some(package)) => package.to_owned(),
            (Some("e2e"), Some(_)) => "e2e".to_owned(),
            _ => continue,
        };
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            continue;
        };
        let names = known.entry(package).or_default();
        if name.ends_with(".rs") {
            names.extend(rust_tests(&text));
        } else if name.starts_with("e2e/") {
            names.extend(script_tests(&text));
        }
    }
    Ok(known)
}

fn rust_tests(text: &str) -> Vec<String> {
    let harness: Vec<&str> = text
        .split("datatest_stable::harness!")
        .skip(1)
        .flat_map(|rest| rest.split(['{', '}', ',', '=', '(', ')', ';']).take(40))
        .map(str::trim)
        .collect();
    // A list of functions that a macro turns into tests.
    let cases = text
        .split("\ncases! {")
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    let mut names: Vec<String> = cases
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect();
    let mut marked = false;
    let mut in_attribute = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("#[") || in_attribute {
            if line.starts_with("#[") {
                marked |= line.contains("test") && !line.contains("cfg(test)");
            }
            in_attribute = !line.ends_with(']');
            continue;
        }
        let function = line
            .trim_start_matches("pub ")
            .trim_start_matches("async ")
            .strip_prefix("fn ")
            .and_then(|rest| rest.split(['(', '<']).next());
        if let Some(function) = function {
            if marked || harness.contains(&function) {
                names.push(function.to_owned());
            }
            marked = false;
        } else if !line.starts_with("//") && !line.is_empty() {
            marked = false;
        }
    }
    names
}

fn script_tests(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let rest = line.strip_prefix("def ").unwrap_or(line);
            let name = rest.split('(').next()?;
            (name.starts_with("test_") && rest.contains('(')).then(|| name.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## One\n\n| section | rule | tests |\n|---|---|---|\n| a | a \\| b | `x::works`, `x::fails` |\n| a | later | planned: attest |\n";

    #[test]
    fn rows_carry_their_section_and_tests() {
        let rows = rows(PAGE);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].section, "One");
        assert_eq!(rows[0].tests, ["x::works", "x::fails"]);
    }

    #[test]
    fn a_row_without_its_test_is_refused() {
        let known = BTreeMap::from([("x".to_owned(), BTreeSet::from(["works".to_owned()]))]);
        let mut findings = Vec::new();
        for row in rows(PAGE) {
            judge("page", &row, &known, Path::new("/nowhere"), &mut findings);
        }
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("x::fails"));
    }

    #[test]
    fn a_planned_row_is_refused_once_its_capability_exists() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("bins/attest")).unwrap();
        let known = BTreeMap::from([(
            "x".to_owned(),
            BTreeSet::from(["works".to_owned(), "fails".to_owned()]),
        )]);
        let mut findings = Vec::new();
        for row in rows(PAGE) {
            judge("page", &row, &known, folder.path(), &mut findings);
        }
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    #[test]
    fn a_list_of_cases_is_a_list_of_tests() {
        let text = "\ncases! {\n    one\n    two\n}\n\nasync fn one() {}\n";
        assert_eq!(rust_tests(text), ["one", "two"]);
    }

    #[test]
    fn only_functions_under_a_test_attribute_count() {
        let text = "#[test]\nfn yes() {}\nfn no() {}\n#[tokio::test(flavor = \"x\")]\nasync fn also() {}\n#[test_case(1; \"one\")]\n#[test_case(2; \"two\")]\nfn table(n: u8) {}\n#[test_case(\n    1\n)]\nfn long(n: u8) {}\n";
        assert_eq!(rust_tests(text), ["yes", "also", "table", "long"]);
    }
}

//! The scenarios that the system must survive: every one has a row, and every test of a row is
//! named after it, so that a failure says by itself what no longer holds.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Known, Row, judge, rows};

/// Where the rows are.
const PAGE: &str = "docs/conformance/scenarios.md";

/// The sections of the page and the ids that each must have, no more and no fewer.
const SECTIONS: &Sections = &[
    (
        "State and leases",
        &[
            "R01", "R02", "R03", "R04", "R06", "R07", "R08", "R09", "R10", "R11", "R12", "R13",
            "R14", "R15", "R17", "R18", "R19", "R20", "R21", "R23", "R24", "R25", "R26", "R27",
            "R28",
        ],
    ),
    (
        "Processes",
        &[
            "R29", "R30", "R31", "R32", "R33", "R34", "R35", "R36", "R37", "R38", "R39", "R40",
            "R41",
        ],
    ),
    (
        "Git and workspace",
        &["R44", "R45", "R47", "R49", "R51", "R52"],
    ),
    ("Security and interface", &["R57", "R58", "R59", "R60"]),
    (
        "A hostile plugin",
        &[
            "P01", "P02", "P03", "P04", "P05", "P06", "P07", "P08", "P09", "P10", "P11", "P12",
            "P13", "P14", "P15", "P16", "P17", "P18", "P19", "P20", "P21", "P22", "P23", "P24",
        ],
    ),
    (
        "The conformance tool",
        &[
            "C01", "C02", "C03", "C04", "C05", "C06", "C07", "C08", "C09", "C10", "C11", "C12",
        ],
    ),
    (
        "Hosts of programs on pipes",
        &["H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8"],
    ),
    (
        "Receipts and their verification",
        &[
            "A01", "A02", "A03", "A04", "A05", "A06", "A07", "A08", "A09", "A10", "A11", "A12",
            "A13", "A14", "A15", "A16", "A17", "A18", "A19", "A20", "A21", "A22", "A23", "A24",
            "A25", "A26", "A27", "A28", "A29", "A30", "A31", "A32", "A33", "A34", "A35", "A36",
        ],
    ),
    (
        "Archives",
        &[
            "M01", "M02", "M03", "M04", "M05", "M06", "M07", "M08", "M09", "M10", "M11", "M12",
            "M13", "M14", "M15", "M16", "M17", "M18", "M19", "M20", "M21", "M22", "M23", "M24",
            "M25", "M26", "M27", "M28", "M29", "M30", "M31", "M32", "M33", "M34", "M35", "M36",
            "M37", "M38", "M39", "M40", "M41", "M42", "M43", "M44", "M45", "M46", "M47", "M48",
            "M49", "M50", "M51", "M52", "M53", "M54", "M55",
        ],
    ),
    ("Registry client", &["M56", "M57", "M58", "M59"]),
];

/// Checks the page and returns how many rows it has and how many of them are planned.
pub(super) fn check(
    root: &Path,
    known: &Known,
    findings: &mut Vec<String>,
) -> Result<(usize, usize)> {
    let page =
        std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let rows = rows(&page);
    complete(PAGE, SECTIONS, &rows, findings);
    let mut planned = 0;
    for row in &rows {
        planned += judge(PAGE, row, known, root, findings);
        named(row, findings);
    }
    Ok((rows.len(), planned))
}

/// The sections of a page and the ids of each.
pub(super) type Sections = [(&'static str, &'static [&'static str])];

/// Every id has a row in its section, and no other id has.
pub(super) fn complete(page: &str, sections: &Sections, rows: &[Row], findings: &mut Vec<String>) {
    for (section, ids) in sections {
        for id in *ids {
            if !rows
                .iter()
                .any(|row| row.section == *section && row.first == *id)
            {
                findings.push(format!("{page}: `{section}` has no row for {id}"));
            }
        }
    }
    for row in rows {
        let expected = sections
            .iter()
            .any(|(section, ids)| row.section == *section && ids.contains(&row.first.as_str()));
        if !expected {
            findings.push(format!(
                "{page}:{}: `{}` is no scenario of the section `{}`",
                row.line, row.first, row.section
            ));
        }
    }
}

/// The names of the tests carry the id of the row as a word.
fn named(row: &Row, findings: &mut Vec<String>) {
    let id = row.first.to_ascii_lowercase();
    for test in &row.tests {
        let function = test.rsplit("::").next().unwrap_or(test);
        if !test.starts_with("planned:") && !function.split('_').any(|word| word == id) {
            findings.push(format!(
                "{PAGE}:{}: `{test}` is not named after {}",
                row.line, row.first
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "## Processes\n\n| id | what must hold | tests |\n|---|---|---|\n";

    fn found(body: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let rows = rows(&format!("{HEAD}{body}"));
        complete(PAGE, SECTIONS, &rows, &mut findings);
        for row in &rows {
            named(row, &mut findings);
        }
        findings
    }

    #[test]
    fn an_id_without_a_row_is_missed_and_another_ones_row_is_refused() {
        let findings =
            found("| R29 | a child goes | `x::r29_a_child` |\n| R99 | x | `x::r99_y` |\n");
        let about = |id: &str| {
            findings
                .iter()
                .filter(|finding| finding.contains(id))
                .count()
        };
        assert_eq!((about("R29"), about("R30"), about("R99")), (0, 1, 1));
    }

    #[test]
    fn a_row_in_the_wrong_section_does_not_count() {
        let findings = found("| P01 | a banner | `x::p01_a_banner` |\n");
        assert_eq!(
            findings
                .iter()
                .filter(|finding| finding.contains("P01"))
                .count(),
            2
        );
    }

    #[test]
    fn a_test_carries_the_id_as_a_word_of_its_name() {
        for (test, ok) in [
            ("x::r29_a_child", true),
            ("x::module::r28_r29_r30_three", true),
            ("x::r290_a_child", false),
            ("x::a_child", false),
            ("r29::a_child", false),
        ] {
            let findings = found(&format!("| R29 | a child goes | `{test}` |\n"));
            let complaint = findings
                .iter()
                .any(|finding| finding.contains("named after"));
            assert_eq!(complaint, !ok, "{test}");
        }
    }
}

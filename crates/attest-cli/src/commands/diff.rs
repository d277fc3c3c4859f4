//! `diff A B`: what differs between two receipts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_receipt::receipt::{MAX_BYTES, MAX_DEPTH, Receipt};
use clap::Args;
use cli_shell::{CliError, Ui, exit, layout, visible};
use serde::Serialize;
use strict_json::{Json, Layout, Limits};

use crate::answer::also_unread;
use crate::difference::{self, Difference, Differences, Part};
use crate::receipt_file;
use crate::shown::{shown, shown_apart};

const RULE: &str = "\
Any two runs differ in times, durations, cache hits, ids of events and of CI
runs, signature, time token and chain hash, and may list steps in another order:
such differences are shown apart and are the same receipt, exit code 0. What
only one of the two has, or has more of, tells them apart, exit code 1: an
event, a signature, a time token.";

/// Two receipts.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Diff {
    /// The first receipt
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second receipt
    #[arg(value_name = "B")]
    b: PathBuf,
}

/// What `--format json` prints, one record.
#[derive(Debug, Serialize)]
struct Record<'x> {
    a: String,
    b: String,
    verdict: &'static str,
    differences: &'x [Difference],
    expected: &'x [Difference],
}

impl Diff {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (a, b) = (tree(&self.a)?, tree(&self.b)?);
        let found = difference::between(&a, &b);
        let same = found.telling.is_empty();
        let record = Record {
            a: self.a.display().to_string(),
            b: self.b.display().to_string(),
            verdict: if same { "same" } else { "different" },
            differences: &found.telling,
            expected: &found.expected,
        };
        also_unread(ui.record(&record, |record| text(record, &found)))?;
        Ok(if same { exit::ok() } else { exit::no() })
    }
}

/// Reads a receipt as the JSON that it is written as. That a file is no receipt is no answer here.
fn tree(path: &Path) -> Result<Json, CliError> {
    let receipt = receipt_file::read(path).map_err(CliError::operation)?;
    as_json(&receipt)
}

fn as_json(receipt: &Receipt) -> Result<Json, CliError> {
    // Escapes may make the JSON longer than the YAML; it was judged already.
    let limits = Limits {
        bytes: MAX_BYTES.saturating_mul(8),
        depth: MAX_DEPTH,
    };
    let line = strict_json::to_line(receipt);
    strict_json::parse_value(&line, &limits, Layout::Compact).map_err(CliError::operation)
}

fn text(record: &Record<'_>, found: &Differences) -> String {
    let mut out = format!("a  {}\nb  {}\n", visible(&record.a), visible(&record.b));
    for one in &found.telling {
        push(&mut out, one);
    }
    if !found.expected.is_empty() {
        out.push_str("\nexpected to differ between any two runs:\n");
        for one in &found.expected {
            push(&mut out, one);
        }
    }
    out.push('\n');
    out.push_str(&match (found.telling.len(), found.expected.len()) {
        (0, 0) => "same: nothing differs\n".to_owned(),
        (0, _) => "same: nothing differs but what is expected to\n".to_owned(),
        (1, _) => "different: 1 field\n".to_owned(),
        (count, _) => format!("different: {count} fields\n"),
    });
    out
}

fn push(out: &mut String, one: &Difference) {
    let (a, b, place) = sides(one.a.as_ref(), one.b.as_ref());
    out.push('\n');
    out.push_str(&layout::wrap(
        &format!("{}{place}", name(&one.path)),
        "",
        "  ",
    ));
    out.push_str(&layout::wrap(&a, "  a: ", "     "));
    out.push_str(&layout::wrap(&b, "  b: ", "     "));
}

/// `steps[build].output_hash`
fn name(path: &[Part]) -> String {
    let mut name = String::new();
    for part in path {
        match part {
            Part::Element(element) => name.push_str(&format!("[{}]", shown(element))),
            Part::Field(_) | Part::Order(_) => {
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(&shown(part.text()));
            }
        }
    }
    name
}

/// Both values for people, and where in them it is if they are texts of several lines.
fn sides(a: Option<&Json>, b: Option<&Json>) -> (String, String, String) {
    let (Some(Json::Text(a)), Some(Json::Text(b))) = (a, b) else {
        return (value(a), value(b), String::new());
    };
    if !a.contains('\n') && !b.contains('\n') {
        let (a, b) = texts(a, b);
        return (a, b, String::new());
    }
    let mut lines = (1..).zip(Both(a.split('\n'), b.split('\n')));
    let Some((at, (a, b))) = lines.find(|(_, (a, b))| a != b) else {
        return (shown(a), shown(b), String::new());
    };
    let more = lines.filter(|(_, (a, b))| a != b).count();
    let place = match more {
        0 => format!(" (line {at})"),
        1 => format!(" (line {at}, and 1 more line)"),
        more => format!(" (line {at}, and {more} more lines)"),
    };
    match (a, b) {
        (Some(a), Some(b)) => {
            let (a, b) = shown_apart(a, b);
            (a, b, place)
        }
        (a, b) => (line(a), line(b), place),
    }
}

fn line(line: Option<&str>) -> String {
    line.map_or_else(|| "(no such line)".to_owned(), shown)
}

fn texts(a: &str, b: &str) -> (String, String) {
    let (mut left, mut right) = shown_apart(a, b);
    for (text, out) in [(a, &mut left), (b, &mut right)] {
        if text.is_empty() {
            "(empty)".clone_into(out);
        }
    }
    (left, right)
}

fn value(value: Option<&Json>) -> String {
    match value {
        None => "(absent)".to_owned(),
        Some(Json::Text(text)) if text.is_empty() => "(empty)".to_owned(),
        Some(Json::Text(text)) => shown(text),
        Some(other) => shown(&String::from_utf8_lossy(&strict_json::to_line(other))),
    }
}

/// Two iterators side by side to the end of the longer one.
struct Both<A, B>(A, B);

impl<A: Iterator, B: Iterator> Iterator for Both<A, B> {
    type Item = (Option<A::Item>, Option<B::Item>);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.0.next(), self.1.next()) {
            (None, None) => None,
            pair => Some(pair),
        }
    }
}

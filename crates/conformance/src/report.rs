//! The report: lines for people, JSON records for programs, a JUnit document for CI systems.
//!
//! People and programs get each verdict as it comes; a JUnit document carries its totals at the
//! top, so it is written at the end.

use cli_shell::junit;
use serde::Serialize;

use crate::Operation;
use crate::verdict::{Status, Verdict};

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum ReportFormat {
    /// A line per scenario, a reason under each failure
    #[default]
    #[value(alias = "text")]
    Human,
    /// One JSON object per line: `{name,status,reason?}`, at the end `{passed,failed,skipped}`
    Json,
    /// A JUnit XML document
    Junit,
}

/// How many scenarios ended in which way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Totals {
    /// Scenarios that passed.
    pub passed: usize,
    /// Scenarios that failed.
    pub failed: usize,
    /// Scenarios that do not apply.
    pub skipped: usize,
}

/// Writes a report, one verdict after the other.
#[derive(Debug)]
pub struct Report {
    format: ReportFormat,
    operation: Operation,
    totals: Totals,
    kept: Vec<Verdict>,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Report {
    /// Starts an empty report.
    #[must_use]
    pub const fn new(format: ReportFormat, operation: Operation) -> Self {
        Self {
            format,
            operation,
            totals: Totals {
                passed: 0,
                failed: 0,
                skipped: 0,
            },
            kept: Vec::new(),
        }
    }

    /// Counts a verdict and returns what is to be printed for it now.
    pub fn add(&mut self, verdict: Verdict) -> String {
        match verdict.status {
            Status::Pass => self.totals.passed += 1,
            Status::Fail => self.totals.failed += 1,
            Status::Skip => self.totals.skipped += 1,
        }
        match self.format {
            ReportFormat::Human => human(&verdict),
            ReportFormat::Json => json(&verdict),
            ReportFormat::Junit => {
                self.kept.push(verdict);
                String::new()
            }
        }
    }

    /// Returns what is to be printed after the last verdict.
    #[must_use]
    pub fn end(&self) -> String {
        match self.format {
            ReportFormat::Human => String::new(),
            ReportFormat::Json => record(&self.totals),
            ReportFormat::Junit => self.junit(),
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    fn junit(&self) -> String {
        let class = format!("plugin-v1.{}", self.operation);
        let cases: Vec<_> = self.kept.iter().map(|one| case(one, &class)).collect();
        junit::document("forge-plugin-conformance", &cases)
    }
}

fn human(verdict: &Verdict) -> String {
    let word = match verdict.status {
        Status::Pass => "PASS",
        Status::Fail => "FAIL",
        Status::Skip => "SKIP",
    };
    match &verdict.reason {
        Some(reason) => format!("{word} {}\n    {reason}\n", verdict.name),
        None => format!("{word} {}\n", verdict.name),
    }
}

fn json(verdict: &Verdict) -> String {
    let status = match verdict.status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::Skip => "skip",
    };
    record(&Line {
        name: verdict.name,
        status,
        reason: verdict.reason.as_deref(),
    })
}

fn record(value: &impl Serialize) -> String {
    // Texts and counts always have a JSON form; an empty line would be the lie to fear, so none.
    serde_json::to_string(value)
        .map(|line| line + "\n")
        .unwrap_or_default()
}

fn case<'a>(verdict: &'a Verdict, class: &'a str) -> junit::Case<'a> {
    let reason = verdict.reason.as_deref().unwrap_or_default();
    junit::Case {
        class,
        name: verdict.name,
        duration: verdict.duration,
        outcome: match verdict.status {
            Status::Pass => junit::Outcome::Passed,
            Status::Fail => junit::Outcome::Failed(reason),
            Status::Skip => junit::Outcome::Skipped(reason),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(format: ReportFormat) -> String {
        let mut report = Report::new(format, Operation::Text);
        let verdict = |name, status, reason: Option<&str>| Verdict {
            name,
            status,
            reason: reason.map(str::to_owned),
            duration: Duration::from_millis(1_500),
        };
        let mut text = report.add(verdict("one", Status::Pass, None));
        text += &report.add(verdict("two", Status::Fail, Some("got `<\"&>`")));
        text += &report.add(verdict("three", Status::Skip, Some("not selected")));
        assert_eq!(
            report.totals(),
            Totals {
                passed: 1,
                failed: 1,
                skipped: 1
            }
        );
        text + &report.end()
    }

    #[test]
    fn human_lines_carry_the_reason_below() {
        insta::assert_snapshot!(report(ReportFormat::Human), @r#"
        PASS one
        FAIL two
            got `<"&>`
        SKIP three
            not selected
        "#);
    }

    #[test]
    fn json_is_one_record_per_line_and_the_totals() {
        insta::assert_snapshot!(report(ReportFormat::Json), @r#"
        {"name":"one","status":"pass"}
        {"name":"two","status":"fail","reason":"got `<\"&>`"}
        {"name":"three","status":"skip","reason":"not selected"}
        {"passed":1,"failed":1,"skipped":1}
        "#);
    }

    #[test]
    fn junit_is_one_document_with_escaped_reasons() {
        insta::assert_snapshot!(report(ReportFormat::Junit), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="3" failures="1" errors="0" skipped="1" time="4.500">
          <testsuite name="forge-plugin-conformance" tests="3" failures="1" errors="0" skipped="1" time="4.500">
            <testcase classname="plugin-v1.text" name="one" time="1.500"/>
            <testcase classname="plugin-v1.text" name="two" time="1.500">
              <failure message="got `&lt;&quot;&amp;&gt;`"/>
            </testcase>
            <testcase classname="plugin-v1.text" name="three" time="1.500">
              <skipped message="not selected"/>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }
}

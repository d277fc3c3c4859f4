//! The report: a line for people or a record for programs per scenario, and a JUnit document.

use cli_shell::junit;
use serde::Serialize;

use crate::stage::{Status, Verdict};

/// How many scenarios ended in which way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Totals {
    /// Scenarios that passed.
    pub passed: usize,
    /// Scenarios that failed.
    pub failed: usize,
    /// Scenarios that do not apply.
    pub skipped: usize,
    /// Scenarios that passed with a warning; they are not among those that passed.
    pub warned: usize,
}

/// Collects verdicts and writes them.
#[derive(Debug, Default)]
pub struct Report {
    totals: Totals,
    verdicts: Vec<Verdict>,
}

/// A verdict as programs get it.
#[derive(Debug, Serialize)]
struct Record<'a> {
    name: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Report {
    /// Counts a verdict.
    pub fn add(&mut self, verdict: Verdict) {
        match verdict.status {
            Status::Pass => self.totals.passed += 1,
            Status::Warn => self.totals.warned += 1,
            Status::Fail => self.totals.failed += 1,
            Status::Skip => self.totals.skipped += 1,
        }
        self.verdicts.push(verdict);
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the verdicts so far.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Writes all verdicts as one JUnit document. A warning is a case that passed and says so.
    #[must_use]
    pub fn junit(&self) -> String {
        let cases: Vec<_> = self.verdicts.iter().map(Verdict::case).collect();
        junit::document("attest plugins conformance", &cases)
    }
}

impl Verdict {
    /// Writes the verdict as one line for people, without a line feed.
    #[must_use]
    pub fn line(&self) -> String {
        let status = match self.status {
            Status::Pass => "PASS",
            Status::Warn => "WARN",
            Status::Fail => "FAIL",
            Status::Skip => "SKIP",
        };
        match &self.reason {
            Some(reason) => format!("{status} {}: {reason}", self.name),
            None => format!("{status} {}", self.name),
        }
    }

    /// Returns the verdict as programs get it.
    #[must_use]
    pub fn record(&self) -> impl Serialize {
        Record {
            name: self.name,
            status: match self.status {
                Status::Pass => "pass",
                Status::Warn => "warn",
                Status::Fail => "fail",
                Status::Skip => "skip",
            },
            reason: self.reason.as_deref(),
        }
    }

    fn case(&self) -> junit::Case<'_> {
        let reason = self.reason.as_deref().unwrap_or_default();
        junit::Case {
            class: "attest-plugin-1",
            name: self.name,
            duration: self.duration,
            outcome: match self.status {
                Status::Pass => junit::Outcome::Passed,
                Status::Warn => junit::Outcome::Warned(reason),
                Status::Fail => junit::Outcome::Failed(reason),
                Status::Skip => junit::Outcome::Skipped(reason),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        for (name, status, reason) in [
            ("hello", Status::Pass, None),
            ("ids", Status::Fail, Some("expected <2>, got \"3\" & more")),
            ("determinism", Status::Skip, Some("not declared")),
            ("terminate", Status::Warn, Some("stays")),
        ] {
            report.add(Verdict {
                name,
                status,
                reason: reason.map(str::to_owned),
                duration: Duration::from_millis(1_500),
            });
        }
        report
    }

    #[test]
    fn people_get_a_line_for_each_scenario() {
        let lines: Vec<String> = report().verdicts().iter().map(Verdict::line).collect();
        assert_eq!(
            lines,
            [
                "PASS hello",
                "FAIL ids: expected <2>, got \"3\" & more",
                "SKIP determinism: not declared",
                "WARN terminate: stays",
            ]
        );
    }

    #[test]
    fn programs_get_a_record_for_each_scenario_and_the_totals() {
        let report = report();
        let records: Vec<String> = report
            .verdicts()
            .iter()
            .map(|verdict| serde_json::to_string(&verdict.record()).unwrap())
            .collect();
        assert_eq!(records[0], r#"{"name":"hello","status":"pass"}"#);
        assert_eq!(
            records[3],
            r#"{"name":"terminate","status":"warn","reason":"stays"}"#
        );
        assert_eq!(
            serde_json::to_string(&report.totals()).unwrap(),
            r#"{"passed":1,"failed":1,"skipped":1,"warned":1}"#
        );
    }

    #[test]
    fn ci_systems_get_a_document_in_which_a_warning_is_no_failure() {
        assert_eq!(
            report().junit(),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="0" skipped="1" time="6.000">
  <testsuite name="attest plugins conformance" tests="4" failures="1" errors="0" skipped="1" time="6.000">
    <testcase classname="attest-plugin-1" name="hello" time="1.500"/>
    <testcase classname="attest-plugin-1" name="ids" time="1.500">
      <failure message="expected &lt;2&gt;, got &quot;3&quot; &amp; more"/>
    </testcase>
    <testcase classname="attest-plugin-1" name="determinism" time="1.500">
      <skipped message="not declared"/>
    </testcase>
    <testcase classname="attest-plugin-1" name="terminate" time="1.500">
      <system-out>warning: stays</system-out>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }
}

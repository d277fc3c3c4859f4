//! The plugin's own account of its work: advisory, never evidence.

use bounded::ReportText;
use serde::Serialize;
use strict_json::{FieldError, Fields, Layout, Limits, parse_object, to_forge_frame};

use crate::DomainError;

/// Longest canonical form of a report.
pub const MAX_REPORT_BYTES: usize = 25 * 1024;

const MAX_CHANGES: usize = 12;

/// A summary of 1 to 1 024 bytes and 1 to 12 changes of 1 to 256 bytes each.
///
/// Serializes to its canonical form: `summary`, then `changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentReport {
    summary: ReportText<1024>,
    changes: Vec<ReportText<256>>,
}

impl AgentReport {
    /// Makes a report of texts that are already checked.
    ///
    /// # Errors
    /// There is no change, or more than 12.
    pub fn new(
        summary: ReportText<1024>,
        changes: Vec<ReportText<256>>,
    ) -> Result<Self, DomainError> {
        if changes.is_empty() || changes.len() > MAX_CHANGES {
            return Err(DomainError::rule(
                "changes",
                format!("must hold 1 to {MAX_CHANGES} texts"),
            ));
        }
        let report = Self { summary, changes };
        if report.canonical().len() > MAX_REPORT_BYTES {
            return Err(DomainError::rule(
                "report",
                format!("must be at most {MAX_REPORT_BYTES} bytes"),
            ));
        }
        Ok(report)
    }

    /// Decodes exactly the two fields.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let path = fields.path().to_owned();
        let summary = fields.parse("summary")?;
        let changes = fields
            .array("changes")?
            .into_iter()
            .map(strict_json::Element::parse)
            .collect::<Result<_, _>>()?;
        fields.end()?;
        Self::new(summary, changes).map_err(|error| FieldError::invalid(path, error.to_string()))
    }

    /// Reads the text of a result; white space between the parts is allowed, since a Gate encodes
    /// the report anew before it stores it.
    ///
    /// # Errors
    /// The text is not a report.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        let limits = Limits {
            bytes: MAX_REPORT_BYTES,
            depth: 3,
        };
        let object = parse_object(text.as_bytes(), &limits, Layout::Spaced)?;
        Ok(Self::from_fields(object.fields("report"))?)
    }

    /// Returns the canonical form.
    #[must_use]
    pub fn canonical(&self) -> String {
        String::from_utf8_lossy(&to_forge_frame(self)).into_owned()
    }

    /// Returns the summary.
    #[must_use]
    pub fn summary(&self) -> &str {
        self.summary.as_ref()
    }

    /// Returns the changes.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.changes.iter().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_is_compact_and_escaped_as_the_wire_is() {
        let report =
            AgentReport::parse(" { \"changes\" : [\"a<b\"], \"summary\" : \"x&y\" } ").unwrap();
        let canonical = r#"{"summary":"x\u0026y","changes":["a\u003cb"]}"#;
        assert_eq!(report.canonical(), canonical);
        assert_eq!(AgentReport::parse(canonical).unwrap(), report);
        assert_eq!(
            (report.summary(), report.changes().next().unwrap()),
            ("x&y", "a<b")
        );
    }

    #[test]
    fn twelve_changes_pass_and_thirteen_do_not() {
        let with = |count: usize| {
            AgentReport::parse(&format!(
                r#"{{"summary":"s","changes":[{}]}}"#,
                vec![r#""c""#; count].join(",")
            ))
        };
        assert!(with(1).is_ok() && with(12).is_ok());
        assert!(with(0).is_err() && with(13).is_err());
    }

    #[test]
    fn sizes_are_bytes_and_end_at_the_limit() {
        let with = |summary: String, change: String| {
            AgentReport::parse(&format!(
                r#"{{"summary":"{summary}","changes":["{change}"]}}"#
            ))
            .is_ok()
        };
        assert!(with("é".repeat(512), "c".repeat(256)));
        assert!(!with("é".repeat(512) + "x", "c".to_owned()));
        assert!(!with("s".to_owned(), "c".repeat(257)));
        assert!(!with(String::new(), "c".to_owned()));
    }

    #[test]
    fn neither_half_nor_more_than_the_two_fields_pass() {
        for bad in [
            r#"{"summary":"s"}"#,
            r#"{"changes":["c"]}"#,
            r#"{"summary":"s","changes":null}"#,
            r#"{"summary":"s","changes":["c"],"x":1}"#,
            r#"{"summary":"s","summary":"s","changes":["c"]}"#,
            r#"{"summary":" s","changes":["c"]}"#,
            r#"{"summary":"a\u200bb","changes":["c"]}"#,
            r#"{"summary":"s","changes":["a\nb"]}"#,
            "[]",
            "",
        ] {
            assert!(AgentReport::parse(bad).is_err(), "{bad}");
        }
    }
}

//! The one object that the CLI says about its edit, and the two private files that bring it.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use bounded::CommitSubject;
use bounded::text::visible;
use forge_plugin_kit::{Capability, Context, Edit};
use forge_plugin_protocol::Report;
use safe_fs::PrivateTempDir;
use strict_json::{FieldError, Layout, Limits, Object, parse_object};

use super::perform::CodexError;
use crate::executor::{PrivateError, private_directory};
use crate::report::take_report;

/// The longest final message: room for all texts at their longest, escaped.
const FINAL_BYTES: u64 = 27_648;

/// How much of a reason is shown; it may quote the message.
const REASON_CHARS: usize = 300;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "commit_subject": {"type": "string", "minLength": 1, "maxLength": 256},
    "summary": {"type": "string", "minLength": 1, "maxLength": 1024},
    "changes": {
      "type": "array",
      "minItems": 1,
      "maxItems": 12,
      "items": {"type": "string", "minLength": 1, "maxLength": 256}
    }
  },
  "required": ["commit_subject", "summary", "changes"],
  "additionalProperties": false
}
"#;

/// The private directory and the two names in it.
#[derive(Debug)]
pub(super) struct FinalFiles {
    directory: PrivateTempDir,
}

impl FinalFiles {
    /// Writes the schema and an empty final message.
    pub(super) fn create(workspace: &Path, context: &Context) -> Result<Self, PrivateError> {
        let files = Self {
            directory: private_directory(workspace, "forge-codex-", context)?,
        };
        let mut schema = safe_fs::create_private_file(&files.schema())?;
        schema
            .write_all(SCHEMA.as_bytes())
            .map_err(PrivateError::Schema)?;
        drop(safe_fs::create_private_file(&files.message())?);
        Ok(files)
    }

    /// Returns the options that name the files.
    pub(super) fn options(&self) -> [OsString; 4] {
        [
            "--output-schema".into(),
            self.schema().into_os_string(),
            "--output-last-message".into(),
            self.message().into_os_string(),
        ]
    }

    /// Reads the final message, keeps of it what was asked for, and removes the directory.
    pub(super) fn read(self, context: &Context) -> Result<Edit, CodexError> {
        let message = self.message();
        // The CLI writes the file where it is; a link was put there by something that it ran.
        let bytes = match fs_err::symlink_metadata(&message) {
            Ok(found) if found.is_file() => {
                safe_fs::read_bounded(&message, FINAL_BYTES).map_err(PrivateError::from)?
            }
            _ => return Err(refused("it is no longer a regular file")),
        };
        let said = FinalMessage::parse(&bytes).map_err(refused)?;
        let mut edit = Edit::new();
        if context.selected(Capability::CommitSubject) {
            edit = edit.commit_subject(said.subject);
        }
        if context.selected(Capability::AgentReport) {
            edit = edit.report(said.report.summary(), said.report.changes());
        }
        self.directory.close().map_err(PrivateError::from)?;
        Ok(edit)
    }

    fn schema(&self) -> PathBuf {
        self.directory.path().join("schema.json")
    }

    fn message(&self) -> PathBuf {
        self.directory.path().join("final.json")
    }
}

fn refused(reason: impl Into<String>) -> CodexError {
    CodexError::Final {
        reason: reason.into(),
    }
}

/// What the CLI says about its edit, by the rules of the protocol.
#[derive(Debug)]
struct FinalMessage {
    subject: CommitSubject,
    report: Report,
}

impl FinalMessage {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.trim_ascii().is_empty() {
            return Err("it is empty".to_owned());
        }
        let limits = Limits {
            bytes: bytes.len(),
            depth: 4,
        };
        let object = parse_object(bytes, &limits, Layout::Spaced).map_err(|error| shown(&error))?;
        let (subject, summary, changes) = members(object).map_err(|error| shown(&error))?;
        Ok(Self {
            subject: subject
                .parse()
                .map_err(|error| format!("commit_subject: {error}"))?,
            report: Report::new(summary, changes).map_err(|error| shown(&error))?,
        })
    }
}

fn members(object: Object) -> Result<(String, String, Vec<String>), FieldError> {
    let mut fields = object.fields("");
    let subject = fields.text("commit_subject")?;
    let (summary, changes) = take_report(&mut fields)?;
    fields.end()?;
    Ok((subject, summary, changes))
}

fn shown(error: &dyn std::error::Error) -> String {
    visible(&error.to_string())
        .chars()
        .take(REASON_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"commit_subject":"feat: x","summary":"s","changes":["a","b"]}"#;

    #[test]
    fn the_message_is_a_closed_object_in_any_layout_and_order() {
        for good in [
            GOOD,
            " {\n\"changes\" : [\"a\",\"b\"],\"summary\":\"s\",\"commit_subject\":\"feat: \\u0078\"}\n",
        ] {
            let said = FinalMessage::parse(good.as_bytes()).unwrap();
            assert_eq!(said.subject.as_str(), "feat: x");
            assert_eq!(said.report.summary(), "s");
            assert_eq!(said.report.changes().collect::<Vec<_>>(), ["a", "b"]);
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        for (bad, reason) in [
            ("", "empty"),
            (" \n", "empty"),
            ("done", ""),
            ("```json\n{}\n```", ""),
            ("[]", ""),
            (r#"{"summary":"s","changes":["a"]}"#, "commit_subject"),
            (r#"{"commit_subject":"x","changes":["a"]}"#, "summary"),
            (r#"{"commit_subject":"x","summary":"s"}"#, "changes"),
            (
                r#"{"commit_subject":null,"summary":"s","changes":["a"]}"#,
                "commit_subject",
            ),
            (
                r#"{"commit_subject":" x","summary":"s","changes":["a"]}"#,
                "commit_subject",
            ),
            (
                r#"{"commit_subject":"a\nb","summary":"s","changes":["a"]}"#,
                "commit_subject",
            ),
            (
                r#"{"commit_subject":"x","summary":"s\u202e","changes":["a"]}"#,
                "summary",
            ),
            (
                r#"{"commit_subject":"x","summary":"s","changes":[]}"#,
                "1 to 12",
            ),
            (
                r#"{"commit_subject":"x","summary":"s","changes":["a",""]}"#,
                "change",
            ),
            (
                r#"{"commit_subject":"x","summary":"s","changes":["a"],"by":"me"}"#,
                "by",
            ),
            (
                r#"{"commit_subject":"x","commit_subject":"y","summary":"s","changes":["a"]}"#,
                "commit_subject",
            ),
            (
                r#"{"Commit_Subject":"x","summary":"s","changes":["a"]}"#,
                "commit_subject",
            ),
            (
                r#"{"commit_subject":"\ud800","summary":"s","changes":["a"]}"#,
                "",
            ),
            (&format!("{GOOD}{GOOD}"), ""),
        ] {
            let error = FinalMessage::parse(bad.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "`{bad}`: {error}");
            assert!(!error.is_empty());
        }
        assert!(FinalMessage::parse(b"{\"commit_subject\":\"\xff\"}").is_err());
    }

    #[test]
    fn the_longest_texts_pass_and_one_byte_more_fails() {
        let message = |subject: usize, summary: usize, changes: usize, change: usize| {
            let changes = vec![format!("\"{}\"", "c".repeat(change)); changes].join(",");
            let text = format!(
                "{{\"commit_subject\":\"{}\",\"summary\":\"{}\",\"changes\":[{changes}]}}",
                "x".repeat(subject),
                "s".repeat(summary),
            );
            FinalMessage::parse(text.as_bytes())
        };
        assert!(message(256, 1_024, 12, 256).is_ok());
        for (subject, summary, changes, change) in [
            (257, 1_024, 12, 256),
            (256, 1_025, 12, 256),
            (256, 1_024, 13, 256),
            (256, 1_024, 12, 257),
        ] {
            assert!(message(subject, summary, changes, change).is_err());
        }
    }

    #[test]
    fn the_longest_message_escaped_fits_the_file() {
        // Six bytes for each byte of text is the longest escape.
        let escaped = |bytes: usize| "\\u0041".repeat(bytes);
        let changes = vec![format!("\"{}\"", escaped(256)); 12].join(",");
        let text = format!(
            "{{\"commit_subject\":\"{}\",\"summary\":\"{}\",\"changes\":[{changes}]}}",
            escaped(256),
            escaped(1_024),
        );
        assert!(u64::try_from(text.len()).unwrap() <= FINAL_BYTES);
        assert!(FinalMessage::parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_reason_that_quotes_the_message_is_short_and_visible() {
        let text = format!("{{\"{}\\u001b\":1}}", "k".repeat(20_000));
        let error = FinalMessage::parse(text.as_bytes()).unwrap_err();
        assert!(error.chars().count() <= REASON_CHARS, "{}", error.len());
        assert!(!error.contains('\u{1b}'));
    }

    #[test]
    fn the_schema_is_json_and_names_what_is_read() {
        let limits = Limits {
            bytes: SCHEMA.len(),
            depth: 8,
        };
        let mut fields = parse_object(SCHEMA.as_bytes(), &limits, Layout::Spaced)
            .unwrap()
            .fields("");
        let required: Vec<String> = fields
            .array("required")
            .unwrap()
            .into_iter()
            .map(|name| name.text().unwrap())
            .collect();
        assert_eq!(required, ["commit_subject", "summary", "changes"]);
    }
}

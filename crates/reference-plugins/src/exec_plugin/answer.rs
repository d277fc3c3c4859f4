//! What the command says about its edit, in two files of a private directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bounded::CommitSubject;
use bounded::text::visible;
use forge_plugin_kit::{Capability, Context, Edit};
use safe_fs::PrivateTempDir;
use strict_json::{FieldError, Layout, Limits, Object, parse_object};

use super::perform::ExecError;
use crate::executor::{PrivateError, private_directory};
use crate::report::take_report;

/// The subject's own limit and the LF that an editor or `echo` puts behind it.
const SUBJECT_FILE_BYTES: u64 = 256 + 1;

/// Room for the longest report with every character escaped and some layout.
const REPORT_FILE_BYTES: u64 = 32_768;

/// The private directory and the two names in it.
#[derive(Debug)]
pub(super) struct AnswerFiles {
    directory: PrivateTempDir,
}

impl AnswerFiles {
    /// Makes the directory under the temporary directory, but never inside the workspace.
    pub(super) fn create(workspace: &Path, context: &Context) -> Result<Self, ExecError> {
        Ok(Self {
            directory: private_directory(workspace, "forge-exec-", context)?,
        })
    }

    /// Returns the variables that tell the command where to write.
    pub(super) fn variables(&self) -> [(OsString, OsString); 2] {
        [
            (
                "FORGE_SUBJECT_FILE".into(),
                self.subject_file().into_os_string(),
            ),
            (
                "FORGE_REPORT_FILE".into(),
                self.report_file().into_os_string(),
            ),
        ]
    }

    /// Reads what was written and asked for, and removes the directory.
    pub(super) fn read(self, context: &Context) -> Result<Edit, ExecError> {
        let mut edit = Edit::new();
        if context.selected(Capability::CommitSubject)
            && let Some(bytes) = read(&self.subject_file(), SUBJECT_FILE_BYTES)?
        {
            edit = edit
                .commit_subject(subject(&bytes).map_err(|reason| ExecError::Subject { reason })?);
        }
        if context.selected(Capability::AgentReport)
            && let Some(bytes) = read(&self.report_file(), REPORT_FILE_BYTES)?
        {
            let (summary, changes) =
                report(&bytes).map_err(|reason| ExecError::Report { reason })?;
            edit = edit.report(summary, changes);
        }
        self.directory.close().map_err(PrivateError::from)?;
        Ok(edit)
    }

    fn subject_file(&self) -> PathBuf {
        self.directory.path().join("subject")
    }

    fn report_file(&self) -> PathBuf {
        self.directory.path().join("report.json")
    }
}

fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ExecError> {
    match safe_fs::read_bounded(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        // A link to nowhere was put there on purpose; only a name that is not there is an absent file.
        Err(error) if error.is_not_found() && fs_err::symlink_metadata(path).is_err() => Ok(None),
        Err(error) => Err(PrivateError::from(error).into()),
    }
}

fn subject(bytes: &[u8]) -> Result<String, String> {
    let text = str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let subject: CommitSubject = line.parse().map_err(|error| format!("{error}"))?;
    Ok(subject.into())
}

/// Takes the report's shape apart; its texts are judged where every plugin's are.
fn report(bytes: &[u8]) -> Result<(String, Vec<String>), String> {
    let limits = Limits {
        bytes: bytes.len(),
        depth: 4,
    };
    let object = parse_object(bytes, &limits, Layout::Spaced)
        .map_err(|error| visible(&error.to_string()))?;
    members(object).map_err(|error| visible(&error.to_string()))
}

fn members(object: Object) -> Result<(String, Vec<String>), FieldError> {
    let mut fields = object.fields("");
    let report = take_report(&mut fields)?;
    fields.end()?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_may_end_with_one_line_feed() {
        assert_eq!(subject(b"feat: x").as_deref(), Ok("feat: x"));
        assert_eq!(subject(b"feat: x\n").as_deref(), Ok("feat: x"));
        for bad in [
            &b""[..],
            b"\n",
            b"feat: x\n\n",
            b"feat: x\r\n",
            b" x",
            b"a\nb\n",
            b"\xff",
        ] {
            assert!(subject(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_longest_subject_fits_with_its_line_feed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("subject");
        fs_err::write(&file, format!("{}\n", "x".repeat(256))).unwrap();
        let bytes = read(&file, SUBJECT_FILE_BYTES).unwrap().unwrap();
        assert_eq!(subject(&bytes).unwrap().len(), 256);
        fs_err::write(&file, "x".repeat(258)).unwrap();
        assert!(read(&file, SUBJECT_FILE_BYTES).is_err());
        fs_err::write(&file, "x".repeat(257)).unwrap();
        assert!(subject(&read(&file, SUBJECT_FILE_BYTES).unwrap().unwrap()).is_err());
    }

    #[test]
    fn absent_is_none_and_a_dangling_link_is_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("subject");
        assert_eq!(read(&file, 1).unwrap(), None);
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        assert!(read(&file, 1).is_err());
    }

    #[test]
    fn a_report_is_a_closed_object_in_any_layout() {
        let spaced = b"{\n  \"summary\": \"s\",\n  \"changes\": [\"a\", \"b\"]\n}\n";
        assert_eq!(
            report(spaced),
            Ok(("s".to_owned(), vec!["a".to_owned(), "b".to_owned()]))
        );
        for bad in [
            &b""[..],
            b"[]",
            b"{}",
            b"{\"summary\":\"s\"}",
            b"{\"summary\":null,\"changes\":[]}",
            b"{\"summary\":\"s\",\"changes\":[1]}",
            b"{\"summary\":\"s\",\"changes\":[\"a\"],\"more\":1}",
            b"{\"summary\":\"s\",\"changes\":[\"a\"]} x",
            b"{\"summary\":\"s\",\"summary\":\"s\",\"changes\":[\"a\"]}",
        ] {
            assert!(report(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}

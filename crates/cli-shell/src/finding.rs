//! What a look at a host or a service found: one line each, with what to do about it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// It works, and somebody should look at it.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a few words that do not change.
    pub check: String,
    /// How it is.
    pub status: Grade,
    /// What was found.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            status: Grade::Ok,
            message: message.into(),
            fix: None,
        }
    }

    /// It works, but.
    pub fn warn(
        check: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            status: Grade::Warn,
            fix: Some(fix.into()),
            ..Self::ok(check, message)
        }
    }

    /// It does not work.
    pub fn fail(
        check: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            status: Grade::Fail,
            fix: Some(fix.into()),
            ..Self::ok(check, message)
        }
    }

    /// An error with its causes in one line.
    pub fn error(
        check: impl Into<String>,
        error: &(dyn std::error::Error + 'static),
        fix: impl Into<String>,
    ) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message.push_str(&format!(": {text}"));
            }
            cause = error.source();
        }
        Self::fail(check, message, fix)
    }

    /// Judges who may read the file of a secret; its content is not looked at.
    #[must_use]
    pub fn of_secret_file(check: &str, path: &Path) -> Self {
        let shown = path.display();
        match fs_err::metadata(path) {
            Err(error) => Self::error(
                check,
                &error,
                "make the file, or name the right one in the configuration",
            ),
            Ok(found) if found.mode() & 0o007 != 0 => Self::fail(
                check,
                format!(
                    "every user of this machine can get at `{shown}` (mode {:04o})",
                    found.mode() & 0o7777
                ),
                format!("chmod 0400 {shown}"),
            ),
            Ok(found) if found.mode() & 0o070 != 0 => Self::warn(
                check,
                format!(
                    "a whole group can get at `{shown}` (mode {:04o})",
                    found.mode() & 0o7777
                ),
                format!("chmod 0400 {shown}, unless that group is meant"),
            ),
            Ok(found) => Self::ok(
                check,
                format!("`{shown}` is private (mode {:04o})", found.mode() & 0o7777),
            ),
        }
    }

    /// Judges the free space where a path lies, against what is too little.
    #[must_use]
    pub fn of_free_space(check: &str, path: &Path, too_little: u64) -> Self {
        const SOON: u64 = 4;
        let shown = path.display();
        let found = match rustix::fs::statvfs(path) {
            Ok(found) => found,
            Err(errno) => {
                return Self::fail(
                    check,
                    format!("cannot ask for the free space of `{shown}`: {errno}"),
                    "see whether the path is there and its file system is mounted",
                );
            }
        };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let message = format!("{} MiB are free at `{shown}`", free >> 20);
        let fix = format!("make room: below {} MiB work stops", too_little >> 20);
        if free < too_little {
            Self::fail(check, message, fix)
        } else if free < too_little.saturating_mul(SOON) {
            Self::warn(check, message, fix)
        } else {
            Self::ok(check, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert_eq!(Finding::of_secret_file("t", &path).status, Grade::Fail);
        fs_err::write(&path, "canary").unwrap();
        for (mode, grade) in [
            (0o400, Grade::Ok),
            (0o600, Grade::Ok),
            (0o640, Grade::Warn),
            (0o604, Grade::Fail),
            (0o622, Grade::Fail),
        ] {
            fs_err::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let finding = Finding::of_secret_file("t", &path);
            assert_eq!(finding.status, grade, "{mode:o}");
            assert!(!finding.message.contains("canary"));
        }
    }

    #[test]
    fn free_space_is_judged_by_what_is_needed() {
        let here = tempfile::tempdir().unwrap();
        let judge = |bytes| Finding::of_free_space("space", here.path(), bytes).status;
        assert_eq!(judge(0), Grade::Ok);
        assert_eq!(judge(u64::MAX), Grade::Fail);
        let gone = here.path().join("gone");
        assert_eq!(
            Finding::of_free_space("space", &gone, 0).status,
            Grade::Fail
        );
    }

    #[test]
    fn causes_follow_in_one_line_and_are_not_said_twice() {
        let io = fs_err::metadata("/nonexistent/x").unwrap_err();
        let finding = Finding::error("file", &io, "make it");
        assert!(
            finding.message.matches("No such file").count() == 1,
            "{finding:?}"
        );
    }
}

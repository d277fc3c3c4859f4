//! How git is started, said once: which program, with which settings, in which environment.
//!
//! Nobody's configuration is read but the repository's own, and what that could start (hooks, file
//! system monitors, pagers, helpers of transports, editors) is shut by settings that win over every
//! file. What it takes beyond this depends on the use: who lets git compare files of a work tree has
//! to empty the repository's filters, which have names of their own.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Settings that win over every file. Callers add what their use needs, and take nothing away.
pub const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.quotePath=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "log.showSignature=false",
    "protocol.allow=never",
];

/// The whole environment of git beside `PATH`, for git 2.32 and newer.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "/dev/null"),
    ("XDG_CONFIG_HOME", "/dev/null"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
];

/// The absolute entries of a `PATH` value: a relative or empty one is the folder that git, or
/// whoever starts it, happens to stand in.
#[must_use]
pub fn absolute_entries(search_path: &OsStr) -> OsString {
    let absolute = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
    let mut kept = OsString::new();
    for folder in absolute {
        if !kept.is_empty() {
            kept.push(":");
        }
        kept.push(folder);
    }
    kept
}

/// Finds git in the absolute entries of a `PATH` value.
#[must_use]
pub fn find(search_path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|program| {
            fs_err::metadata(program)
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

/// How every command line of git begins: the program, no pager, and the settings; a later setting
/// of the caller's adds to them.
#[must_use]
pub fn command_line(
    program: &Path,
    further: impl IntoIterator<Item = impl Into<OsString>>,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![program.into(), "--no-pager".into()];
    let settings = SETTINGS.iter().map(|setting| OsString::from(*setting));
    for setting in settings.chain(further.into_iter().map(Into::into)) {
        words.extend(["-c".into(), setting]);
    }
    words
}

#[cfg(test)]
mod tests;

//! Why a directory is not read, or a package in it not loaded.

use std::io;
use std::path::PathBuf;

use agent_plugin::{Diagnostic, MANIFEST, Severity};
use plugin_archive::{ArchiveError, Entry, Rule, visible};

/// Why a directory is not read; nothing of it is returned then.
///
/// Paths are relative to the directory, with everything that a terminal would act on made visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no directory to read, or it cannot be opened.
    #[error("failed to open `{}` as the directory of a package", visible(path.as_os_str().as_encoded_bytes()))]
    Root {
        /// The directory as it was given.
        path: PathBuf,
        /// The answer of the operating system.
        #[source]
        source: io::Error,
    },
    /// A limit is exceeded, or an archive could not hold the name.
    #[error(transparent)]
    Refused(#[from] ArchiveError),
    /// A link where none may be.
    #[error("`{path}` is a symbolic link; only files and directories are read here")]
    Link {
        /// The link.
        path: String,
    },
    /// Neither file nor directory nor link.
    #[error("`{path}` is {kind}; only files and directories are read here")]
    Special {
        /// Where it is.
        path: String,
        /// What it is, with an article.
        kind: &'static str,
    },
    /// A directory that a mount puts below itself.
    #[error("`{path}` leads back to a directory that it lies in")]
    Cycle {
        /// The inner one.
        path: String,
    },
    /// What was read is not what was found a moment before.
    #[error("`{path}` changed while it was read")]
    Changed {
        /// Where it is.
        path: String,
    },
    /// The operating system refused.
    #[error("failed to {action} `{path}`")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: String,
        /// The answer of the operating system.
        #[source]
        source: io::Error,
    },
}

impl ReadError {
    pub(crate) fn io(action: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        let path = match path {
            "" => ".".to_owned(),
            path => visible(path.as_bytes()),
        };
        Self::Io {
            action,
            path,
            source: source.into(),
        }
    }

    pub(crate) fn rule(path: &[u8], rule: Rule) -> Self {
        let entry = Entry {
            number: 0,
            name: visible(path),
        };
        Self::Refused(ArchiveError {
            entry: Some(entry),
            rule,
        })
    }

    pub(crate) fn changed(path: &str) -> Self {
        Self::Changed {
            path: visible(path.as_bytes()),
        }
    }
}

/// Why no package is loaded from a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory is not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The manifest rejects the package.
    #[error("the package is rejected: {}", reason(.0))]
    Rejected(Vec<Diagnostic>),
}

/// The first thing that is wrong with the manifest; a skill that was skipped rejects nothing. A
/// path may hold the name of a member, which is foreign text.
fn reason(found: &[Diagnostic]) -> String {
    found
        .iter()
        .find(|found| found.severity == Severity::Error && found.path.starts_with(MANIFEST))
        .map_or_else(
            || format!("more is wrong with `{MANIFEST}` than is listed"),
            |found| format!("`{}`: {}", visible(found.path.as_bytes()), found.message),
        )
}

//! From a command to a file, without ever looking into the working directory.
//!
//! An empty entry of a `PATH` means the working directory, and a relative one a folder below it.
//! Neither is searched here, and neither reaches a plugin.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bounded::text::visible;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::declare::Command;

/// The folders in which bare names are looked up: a `PATH` without empty and relative entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPath {
    text: OsString,
}

impl SearchPath {
    /// Keeps the absolute entries of a `PATH`, in their order.
    #[must_use]
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        let absolute: Vec<&[u8]> = path
            .as_ref()
            .as_bytes()
            .split(|byte| *byte == b':')
            .filter(|entry| entry.starts_with(b"/") && !entry.contains(&0))
            .collect();
        Self {
            text: OsStr::from_bytes(&absolute.join(&b':')).to_owned(),
        }
    }

    /// The value of the plugin's `PATH`; absent where nothing is left, since shells take an empty
    /// `PATH` for the working directory.
    #[must_use]
    pub fn variable(&self) -> Option<&OsStr> {
        (!self.text.is_empty()).then_some(self.text.as_os_str())
    }

    /// The folders, in the order in which they are searched.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.text
            .as_bytes()
            .split(|byte| *byte == b':')
            .filter(|entry| !entry.is_empty())
            .map(|entry| Path::new(OsStr::from_bytes(entry)))
    }
}

/// Why a command names no file that can be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The command is neither a bare name nor an absolute path.
    #[error(
        "command `{}` is neither a bare name nor an absolute path",
        visible(command)
    )]
    Relative {
        /// The command.
        command: String,
    },
    /// No folder of the search path holds the name.
    #[error(
        "no `{}` in the absolute folders of PATH (empty and relative entries are never searched): {}",
        visible(name),
        if searched.is_empty() { "there are none" } else { searched }
    )]
    NotInPath {
        /// The name that was looked up.
        name: String,
        /// The folders that were searched, as one text.
        searched: String,
    },
    /// There is no such file.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// It is a directory.
    #[error("`{}` is a directory", path.display())]
    Directory {
        /// What was found.
        path: PathBuf,
    },
    /// It is a FIFO, a socket or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotARegularFile {
        /// What was found.
        path: PathBuf,
    },
    /// This user may not execute it.
    #[error("`{}` may not be executed by this user", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The system does not say what is there.
    #[error("cannot examine `{}`", path.display())]
    Examine {
        /// The file.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        source: io::Error,
    },
}

impl ResolveError {
    /// Says the same in a few words without a path, for a receipt.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Relative { .. } => "command is a relative path",
            Self::NotInPath { .. } | Self::NotFound { .. } => "command not found",
            Self::Directory { .. } => "command is a directory",
            Self::NotARegularFile { .. } => "command is not a regular file",
            Self::NotExecutable { .. } => "command is not executable",
            Self::Examine { .. } => "command cannot be examined",
        }
    }
}

/// Finds the file of a command: an absolute path as it is, a bare name in the search path.
///
/// A folder that holds the name as something that cannot be started is passed over, as shells do;
/// if no other folder has it, the error tells of the first such thing.
///
/// # Errors
/// There is no file that can be started; the variants say why.
pub fn resolve(command: &Command, search: &SearchPath) -> Result<PathBuf, ResolveError> {
    match command {
        Command::Absolute(path) if path.is_absolute() => {
            check(path)?;
            Ok(path.clone())
        }
        Command::Bare(name) if is_bare(name) => search_for(name, search),
        Command::Absolute(path) => Err(ResolveError::Relative {
            command: path.to_string_lossy().into_owned(),
        }),
        Command::Bare(name) => Err(ResolveError::Relative {
            command: name.clone(),
        }),
    }
}

/// Tells whether a command is a name to look up: no path, and nothing that would be a folder.
pub(crate) fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != ".."
}

fn search_for(name: &str, search: &SearchPath) -> Result<PathBuf, ResolveError> {
    let mut unfit = None;
    for folder in search.folders() {
        let candidate = folder.join(name);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(ResolveError::NotFound { .. }) => {}
            Err(error) => {
                unfit.get_or_insert(error);
            }
        }
    }
    Err(unfit.unwrap_or_else(|| ResolveError::NotInPath {
        name: name.to_owned(),
        searched: visible(&search.text.to_string_lossy()),
    }))
}

/// Looks at a file through all its links and opens nothing.
fn check(path: &Path) -> Result<(), ResolveError> {
    let path = || path.to_owned();
    let found = path().metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ResolveError::NotFound { path: path() }
        }
        _ => ResolveError::Examine {
            path: path(),
            source: error,
        },
    })?;
    if found.is_dir() {
        return Err(ResolveError::Directory { path: path() });
    }
    if !found.is_file() {
        return Err(ResolveError::NotARegularFile { path: path() });
    }
    accessat(CWD, path(), Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| ResolveError::NotExecutable { path: path() })
}

#[cfg(test)]
mod tests;

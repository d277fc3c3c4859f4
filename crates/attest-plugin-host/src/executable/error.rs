//! Why a file is not held as a program, and what it means that its digest is another one.

use std::fmt;
use std::io;
use std::path::PathBuf;

use attest_plugin_protocol::PluginName;

use super::MAX_BYTES;
use crate::declare::{Digest, FILE};

/// Why a file cannot be held as a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
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
    /// It is a FIFO, a socket or a device, which was not opened.
    #[error("`{}` is not a regular file", path.display())]
    NotARegularFile {
        /// What was found.
        path: PathBuf,
    },
    /// It has more bytes than allowed.
    #[error("`{}` has more than {MAX_BYTES} bytes, the most that a plugin may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// This user may not read it, so nobody knows what would run.
    #[error("`{}` may not be read by this user, so it cannot be hashed", path.display())]
    NotReadable {
        /// The file.
        path: PathBuf,
    },
    /// This user may not execute it, or nothing may be executed where it lies.
    #[error("`{}` may not be executed by this user", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// Without a `/proc` of its own, a process cannot start what it has opened.
    #[error("cannot start `{}` from the bytes that were hashed: `/proc` does not show this process", path.display())]
    NoProc {
        /// The file.
        path: PathBuf,
    },
    /// The system allows no programs in memory.
    #[error("cannot run a sealed copy of `{}`: the system allows no programs in memory (vm.memfd_noexec)", path.display())]
    NoPrograms {
        /// The file.
        path: PathBuf,
    },
    /// Any other refusal of the system.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        source: io::Error,
    },
}

impl ExecutableError {
    /// Says the same in a few words without a path, for a receipt.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "command not found",
            Self::Directory { .. } => "command is a directory",
            Self::NotARegularFile { .. } => "command is not a regular file",
            Self::TooLarge { .. } => "command is too large",
            Self::NotReadable { .. } => "command is not readable",
            Self::NotExecutable { .. } => "command is not executable",
            Self::NoProc { .. } => "no /proc to start the verified bytes from",
            Self::NoPrograms { .. } => "the system allows no programs in memory",
            Self::Io { .. } => "command cannot be read",
        }
    }
}

/// The bytes are not those that were reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMismatch {
    /// The plugin.
    pub plugin: PluginName,
    /// The file, with every link resolved.
    pub path: PathBuf,
    /// What the declaration says; absent where it says nothing.
    pub expected: Option<Digest>,
    /// What was found.
    pub found: Digest,
}

impl fmt::Display for DigestMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plugin, path, found) = (&self.plugin, self.path.display(), self.found);
        write!(f, "plugin `{plugin}`: `{path}` is {found}, ")?;
        match self.expected {
            Some(expected) => write!(f, "but {FILE} says {expected}")?,
            None => write!(f, "and {FILE} says nothing of it")?,
        }
        write!(f, "; after a review: attest plugins pin {plugin}")
    }
}

impl std::error::Error for DigestMismatch {}

//! Why a file or folder was refused, or what the system answered; never with a repair attempted.

use std::{io, path::PathBuf};

use crate::shell::shell_word;

/// Why a file operation was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafeFsError {
    /// The path has no last component, a `..` in it, or a NUL byte, or leads through a descriptor.
    #[error("`{path}` is not a usable path: {reason}")]
    UnusablePath {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A component of the path is a symbolic link.
    #[error(
        "`{link}` is a symbolic link, which is refused anywhere in `{path}`; name the real path instead"
    )]
    SymbolicLink {
        /// The path as it was given.
        path: PathBuf,
        /// The component that is a link.
        link: PathBuf,
    },
    /// Something else stands where a folder has to be.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// What was found.
        path: PathBuf,
    },
    /// Something else stands where a regular file has to be.
    #[error("`{path}` is not a regular file")]
    NotARegularFile {
        /// What was found.
        path: PathBuf,
    },
    /// What stands where a file is to be written is none that may be replaced.
    #[error("`{path}` is {found}, and only a regular file is replaced")]
    InTheWay {
        /// The path as it was given.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// Another user owns the file or folder.
    #[error("`{path}` is owned by user {owner}, not by user {expected} that this process runs as")]
    WrongOwner {
        /// What was found.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The effective user id.
        expected: u32,
    },
    /// The permissions are not those of a private file or folder.
    #[error(
        "`{path}` has mode {mode:04o}, but {rule}; correct it with `chmod {fix} {}`",
        shell_word(path)
    )]
    WrongMode {
        /// What was found.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What was expected, as a phrase.
        rule: &'static str,
        /// The octal mode that would pass.
        fix: &'static str,
    },
    /// The file has several names, so that another folder gives access to it.
    #[error("`{path}` has more than one hard link, a private file has one name")]
    HardLinked {
        /// What was found.
        path: PathBuf,
    },
    /// The path is taken already.
    #[error("`{path}` exists already")]
    AlreadyExists {
        /// The path that was to be created.
        path: PathBuf,
    },
    /// Another process holds the lock.
    #[error("another process owns `{path}`")]
    AlreadyOwned {
        /// The lock file.
        path: PathBuf,
    },
    /// The file is longer than the caller allows.
    #[error("`{path}` is longer than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The number of bytes that would have been accepted.
        limit: u64,
    },
    /// A tree on another file system begins here.
    #[error("`{path}` is on another file system than the tree that is being removed")]
    OtherFileSystem {
        /// Where it begins.
        path: PathBuf,
    },
    /// Somebody keeps writing into a tree while it is being removed.
    #[error("`{path}` keeps changing while it is being removed")]
    Changing {
        /// The folder that does not get empty, or moved.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("failed to {action} `{path}`")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The answer of the operating system.
        #[source]
        source: io::Error,
    },
}

impl SafeFsError {
    /// Tells whether the operating system said that the path does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source: source.into(),
        }
    }
}

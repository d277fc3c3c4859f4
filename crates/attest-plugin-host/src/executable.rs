//! The bytes that run are the bytes that were hashed.
//!
//! A file is opened once. What was opened is hashed, and what was hashed is started, through
//! `/proc/<this process>/fd/N`; no path is looked up a second time. So whoever renames the file or
//! turns a link around after the hash changes nothing of what runs.
//!
//! Writing into the opened file would still change it. So the descriptor is held in one of two
//! ways:
//!
//! | held | when | what the program sees |
//! |---|---|---|
//! | [`Held::InPlace`] | nobody but root can write the file, and this user could change no folder above it | its real path as `/proc/self/exe` and behind `$0`, so it finds its neighbours |
//! | [`Held::Copy`] | in all other cases, and when root runs attest | a sealed copy in memory; it finds nothing beside itself |
//!
//! The copy is sealed before it is hashed, so even a process that caught its descriptor comes too
//! late. A copy has no set-id bit and no file capability; a file that has one is always copied, so
//! that no plugin ever gets more rights than the user.
//!
//! In both ways the descriptor is close-on-exec: no program gets it. The interpreter of a script
//! and the libraries of a program are not hashed; [`Executable::interpreter`] says what would run.
//!
//! Nothing that is opened can block: the file is looked at before it is opened for reading, and a
//! FIFO, a device or a folder never is. Files above [`MAX_BYTES`] are refused.

mod error;
#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod open;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::declare::{Declared, Digest};

pub use error::{DigestMismatch, ExecutableError};

/// The greatest size of a program: a copy of it lies in memory for the whole run.
pub const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// A program that was opened once and hashed; it is started from the descriptor that was hashed.
///
/// Start from [`Executable::program`], and keep this value as long as the program runs: the
/// interpreter of a script opens the file again after the start.
#[derive(Debug)]
pub struct Executable {
    path: PathBuf,
    program: PathBuf,
    digest: Digest,
    interpreter: Option<String>,
    held: Held,
    _descriptor: OwnedFd,
}

/// How the bytes of a program are kept from changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// In the file itself, which only root could write.
    InPlace,
    /// In a sealed copy in memory.
    Copy,
}

impl Executable {
    /// Opens a file, hashes it and holds what was hashed. Links are followed, and
    /// [`Executable::path`] says where to.
    ///
    /// # Errors
    /// It is not a file that this user can read and run, or the system cannot hold one.
    pub fn open(path: &Path) -> Result<Self, ExecutableError> {
        #[cfg(target_os = "linux")]
        {
            open::open(path, &open::Surroundings::default())
        }
        #[cfg(not(target_os = "linux"))]
        {
            let path = path.to_owned();
            Err(ExecutableError::NoProc { path })
        }
    }

    /// Compares the digest with the declared one.
    ///
    /// # Errors
    /// They differ, or none is declared.
    pub fn verify(&self, declared: &Declared) -> Result<(), DigestMismatch> {
        if declared.digest == Some(self.digest) {
            return Ok(());
        }
        Err(DigestMismatch {
            plugin: declared.name.clone(),
            path: self.path.clone(),
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

    /// How the bytes are kept from changing.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    /// Tells whether it is a script, whose interpreter is pinned by nobody.
    #[must_use]
    pub fn is_script(&self) -> bool {
        self.interpreter.is_some()
    }

    /// The first line of a script without its `#!`, safe to show: the interpreter and its
    /// argument.
    #[must_use]
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }
}

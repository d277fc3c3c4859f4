//! Makes manifests from the files on disk: what a step declares, walked and hashed.
//!
//! A declared path is a literal file, link or folder below the workspace. Every component is opened
//! from the descriptor of the one above and no link is ever followed, so that whatever is moved or
//! replaced during the walk, no byte from outside the workspace is read. Only regular files are
//! opened. Files are read with positioned reads, never mapped: whoever cuts a mapped file short kills
//! the process that reads it.
//!
//! Nothing here writes, starts a process, reads the environment or matches patterns.

mod error;
mod file;
mod folder;
mod job;
mod links;
mod options;
mod pieces;
mod queue;
mod worker;

use std::path::Path;

use attest_receipt::manifest::Manifest;

pub use attest_receipt::declared::{DeclaredError, check_declared};
pub use error::{ManifestError, Role};
pub use file::hash_file;
pub use options::{Limits, MAX_THREADS, Options};

/// Makes the manifest of a step's inputs.
///
/// `command_hash` is the BLAKE3 of the command, 64 hexadecimal digits.
///
/// # Errors
/// The first declared path, in the order given, that is missing or unusable; otherwise one of the
/// faults found on the way.
pub fn inputs(
    workspace: &Path,
    command_hash: &str,
    declared: &[String],
    options: &Options,
) -> Result<Manifest, ManifestError> {
    let manifest = Manifest::of_inputs(command_hash);
    job::fill(manifest, workspace, Role::Input, declared, options)
}

/// Makes the manifest of a step's outputs.
///
/// # Errors
/// As for [`inputs`].
pub fn outputs(
    workspace: &Path,
    declared: &[String],
    options: &Options,
) -> Result<Manifest, ManifestError> {
    let manifest = Manifest::of_outputs();
    job::fill(manifest, workspace, Role::Output, declared, options)
}

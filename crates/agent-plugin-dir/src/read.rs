//! The readers.

use std::path::Path;

use agent_plugin::Diagnostic;
use plugin_archive::{Files, Limits, Snapshot};

use crate::ReadError;
use crate::tree::Root;
use crate::walk::{Links, Walk};

/// What was read along links.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Followed {
    /// The files, those behind links under the paths of the links.
    pub snapshot: Snapshot,
    /// What was left out, and why.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the files of a directory; their modes are lost, so publishers and installers want
/// [`read_directory_with_metadata`].
///
/// # Errors
///
/// As [`read_directory_with_metadata`].
pub fn read_directory(path: &Path, limits: &Limits) -> Result<Files, ReadError> {
    Ok(read_directory_with_metadata(path, limits)?.files)
}

/// Reads the files of a directory and their low nine permission bits. The directory itself may be
/// named by a link.
///
/// # Errors
///
/// Refuses links, special files, names that an archive could not hold, what exceeds the limits and
/// what cannot be read.
pub fn read_directory_with_metadata(path: &Path, limits: &Limits) -> Result<Snapshot, ReadError> {
    let root = Root::open(path)?;
    Ok(Walk::new(&root, limits, Links::Refused).run()?.snapshot)
}

/// Reads a directory by the rules of [`crate::load_directory`]: what links inside name is there
/// under their own paths, and what is left out is told.
///
/// # Errors
///
/// Refuses names that are no UTF-8, what exceeds the limits and what cannot be read.
pub fn read_following_links(path: &Path, limits: &Limits) -> Result<Followed, ReadError> {
    let root = Root::open(path)?;
    Walk::new(&root, limits, Links::Followed).run()
}

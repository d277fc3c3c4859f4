//! The loader.

use std::path::Path;

use agent_plugin::{Options, Package, load_found};
use plugin_archive::{Limits, Modes};

use crate::LoadError;
use crate::tree::Root;
use crate::walk::{Links, Walk};

/// Loads the package in a directory. Links that stay inside are followed; others disable the least
/// that they can, and are told.
///
/// # Errors
///
/// The directory is not read (see [`crate::read_following_links`]), or the manifest rejects the
/// package.
pub fn load_directory(
    path: &Path,
    options: &Options,
    limits: &Limits,
) -> Result<Package, LoadError> {
    Ok(load_directory_with_metadata(path, options, limits)?.0)
}

/// As [`load_directory`], with the low nine permission bits of the files.
///
/// # Errors
///
/// As [`load_directory`].
pub fn load_directory_with_metadata(
    path: &Path,
    options: &Options,
    limits: &Limits,
) -> Result<(Package, Modes), LoadError> {
    let root = Root::open(path)?;
    let read = Walk::new(&root, limits, Links::Followed).run()?;
    let snapshot = read.snapshot;
    load_found(snapshot.files, options, &root, read.diagnostics)
        .map(|package| (package, snapshot.modes))
        .map_err(LoadError::Rejected)
}

//! Keeps submodules what they are in the base: empty folders whose recorded commit stays.
//!
//! Git would look into a repository that stands at the place of a submodule, and run what its
//! configuration names, so this is settled before git sees the workspace.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use bounded::text::visible_bytes;

use crate::{WorkspaceFault, index::Gitlinks};

/// Refuses anything inside the folder of a submodule; a removed one is a change like others.
/// Blocks.
pub(crate) fn check_empty(workspace: &Path, links: &Gitlinks) -> Result<(), WorkspaceFault> {
    for path in links.keys() {
        if is_filled(workspace, Path::new(OsStr::from_bytes(path))) {
            return Err(WorkspaceFault::SubmoduleFilled {
                path: visible_bytes(path),
            });
        }
    }
    Ok(())
}

/// Refuses links to commits that the base does not have.
pub(crate) fn check_none_added(base: &Gitlinks, now: &Gitlinks) -> Result<(), WorkspaceFault> {
    match now
        .iter()
        .find(|(path, commit)| base.get(*path) != Some(*commit))
    {
        None => Ok(()),
        Some((path, _)) => Err(WorkspaceFault::NestedRepository {
            path: visible_bytes(path),
        }),
    }
}

fn is_filled(workspace: &Path, path: &Path) -> bool {
    let mut reached = workspace.to_owned();
    for component in path.components() {
        let Component::Normal(name) = component else {
            return true;
        };
        reached.push(name);
        // Behind a link or a file there is no submodule for git either.
        if !fs_err::symlink_metadata(&reached).is_ok_and(|found| found.is_dir()) {
            return false;
        }
    }
    match fs_err::read_dir(&reached) {
        Ok(mut entries) => entries.next().is_some(),
        // A folder that cannot be listed may hold anything.
        Err(_) => true,
    }
}

//! Removes what attempts of a killed process left behind.

use std::path::{Path, PathBuf};

use crate::{GitError, workspace::blocking};

/// What the names of workspace folders begin with.
pub(crate) const WORKTREE_PREFIX: &str = "forge-worktree-";

/// What the names of folders begin with that only wait for their removal.
pub const REMOVED_PREFIX: &str = "forge-removed-";

/// Removes the workspaces that a process which was killed left in `worktree_root`, and returns
/// their paths. The caller has to be the only user of that folder, as by
/// [`safe_fs::lock_exclusive`].
///
/// # Errors
///
/// The folder cannot be listed, or something in it cannot be removed.
pub async fn remove_leftovers(worktree_root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let root = worktree_root.to_owned();
    blocking(move || {
        let failed = || GitError::io("list the folder of workspaces");
        let mut removed = Vec::new();
        for entry in fs_err::read_dir(root).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if !entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(WORKTREE_PREFIX.as_bytes())
            {
                continue;
            }
            safe_fs::remove_tree_no_follow(&entry.path())?;
            removed.push(entry.path());
        }
        removed.sort();
        Ok(removed)
    })
    .await
}

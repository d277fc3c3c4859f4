//! Takes the Worker's two folders over, and removes what a killed predecessor left in them.

use std::path::{Path, PathBuf};

use safe_fs::{LockGuard, SafeFsError, lock_exclusive, remove_tree_no_follow};

use crate::WorkerError;
use crate::runtime_dir::RUNTIME_PREFIX;

/// What the names of workspaces begin with.
pub(crate) const WORKTREE_PREFIX: &str = "forge-worktree-";

/// The file whose lock says that a Worker uses the folder.
const LOCK_NAME: &str = ".forge-worker.lock";

/// Both folders, owned as long as this lives.
#[derive(Debug)]
pub(crate) struct OwnedRoots {
    _locks: [LockGuard; 2],
}

impl OwnedRoots {
    /// Locks both folders, then sweeps them.
    ///
    /// # Errors
    /// Another Worker owns one of them, or something in them cannot be removed.
    pub(crate) fn take_over(
        worktree_root: &Path,
        runtime_root: &Path,
    ) -> Result<Self, WorkerError> {
        let locks = [lock(worktree_root)?, lock(runtime_root)?];
        for (root, prefix) in [
            (worktree_root, WORKTREE_PREFIX),
            (runtime_root, RUNTIME_PREFIX),
        ] {
            let count = sweep(root, prefix)?;
            if count > 0 {
                tracing::warn!(root = %root.display(), count, "removed what a killed Worker left");
            }
        }
        Ok(Self { _locks: locks })
    }
}

fn lock(root: &Path) -> Result<LockGuard, WorkerError> {
    lock_exclusive(&root.join(LOCK_NAME)).map_err(|source| match source {
        SafeFsError::AlreadyOwned { .. } => WorkerError::RootInUse {
            path: root.to_owned(),
        },
        source => WorkerError::Root {
            path: root.to_owned(),
            source,
        },
    })
}

/// Removes every entry of `root` whose name begins with `prefix`; what else is there stays.
fn sweep(root: &Path, prefix: &str) -> Result<usize, WorkerError> {
    let unreadable = |source| WorkerError::Os {
        what: "list a folder of the Worker",
        source,
    };
    let mut left: Vec<PathBuf> = Vec::new();
    for entry in fs_err::read_dir(root).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            left.push(entry.path());
        }
    }
    for path in &left {
        remove_tree_no_follow(path).map_err(|source| WorkerError::Root {
            path: path.clone(),
            source,
        })?;
    }
    Ok(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (worktrees, runtime) = (base.join("w"), base.join("r"));
        fs_err::create_dir(&worktrees).unwrap();
        fs_err::create_dir(&runtime).unwrap();
        (dir, worktrees, runtime)
    }

    #[test]
    fn leftovers_go_and_everything_else_stays() {
        let (_dir, worktrees, runtime) = roots();
        fs_err::create_dir_all(worktrees.join("forge-worktree-1/deep")).unwrap();
        fs_err::write(worktrees.join("forge-worktree-1/deep/file"), "x").unwrap();
        fs_err::create_dir_all(worktrees.join("mine")).unwrap();
        fs_err::create_dir_all(runtime.join("forge-runtime-1/tmp")).unwrap();
        fs_err::create_dir_all(runtime.join("forge-worktree-2")).unwrap();
        let _owned = OwnedRoots::take_over(&worktrees, &runtime).unwrap();
        assert!(!worktrees.join("forge-worktree-1").exists());
        assert!(worktrees.join("mine").exists());
        assert!(!runtime.join("forge-runtime-1").exists());
        assert!(runtime.join("forge-worktree-2").exists());
    }

    #[test]
    fn a_link_is_removed_and_its_target_is_not() {
        let (dir, worktrees, runtime) = roots();
        let precious = dir.path().join("precious");
        fs_err::create_dir(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, runtime.join("forge-runtime-link")).unwrap();
        let _owned = OwnedRoots::take_over(&worktrees, &runtime).unwrap();
        assert!(!runtime.join("forge-runtime-link").is_symlink());
        assert!(precious.exists());
    }

    #[test]
    fn a_second_worker_is_refused_and_the_folder_is_named() {
        let (_dir, worktrees, runtime) = roots();
        let owned = OwnedRoots::take_over(&worktrees, &runtime).unwrap();
        let error = OwnedRoots::take_over(&worktrees, &runtime).unwrap_err();
        assert!(matches!(error, WorkerError::RootInUse { .. }), "{error:?}");
        assert!(
            error.to_string().contains(&worktrees.display().to_string()),
            "{error}"
        );
        drop(owned);
        OwnedRoots::take_over(&worktrees, &runtime).unwrap();
    }
}

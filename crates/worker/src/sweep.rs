//! Takes the Worker's two folders over, and removes what a killed predecessor left in them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git_workspace::{REMOVED_PREFIX, WORKTREE_PREFIX};
use safe_fs::{LockGuard, SafeFsError, lock_exclusive, remove_tree_no_follow};

use crate::WorkerError;
use crate::runtime_dir::RUNTIME_PREFIX;

/// The file whose lock says that a Worker uses the folder.
const LOCK_NAME: &str = ".forge-worker.lock";

/// A git of the killed Worker may still be writing files: it ends when its folder is gone, and
/// meanwhile the folder is emptied again, so often and after such pauses.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

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
            let count = sweep(root, &[prefix, REMOVED_PREFIX])?;
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

/// Removes every entry of `root` whose name begins with one of `prefixes`; what else is there
/// stays.
fn sweep(root: &Path, prefixes: &[&str]) -> Result<usize, WorkerError> {
    let unreadable = |source| WorkerError::Os {
        what: "list a folder of the Worker",
        source,
    };
    let mut left: Vec<PathBuf> = Vec::new();
    for entry in fs_err::read_dir(root).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            left.push(entry.path());
        }
    }
    for path in &left {
        remove(path).map_err(|source| WorkerError::Root {
            path: path.clone(),
            source,
        })?;
    }
    Ok(left.len())
}

fn remove(path: &Path) -> Result<(), SafeFsError> {
    for _ in 1..TRIES {
        match remove_tree_no_follow(path) {
            Err(error) if is_being_written(&error) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    remove_tree_no_follow(path)
}

fn is_being_written(error: &SafeFsError) -> bool {
    match error {
        SafeFsError::Changing { .. } => true,
        SafeFsError::Io { source, .. } => source.kind() == std::io::ErrorKind::DirectoryNotEmpty,
        _ => false,
    }
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
        for root in [&worktrees, &runtime] {
            fs_err::create_dir_all(root.join("forge-removed-1/deep")).unwrap();
        }
        let _owned = OwnedRoots::take_over(&worktrees, &runtime).unwrap();
        assert!(!worktrees.join("forge-worktree-1").exists());
        assert!(worktrees.join("mine").exists());
        assert!(!runtime.join("forge-runtime-1").exists());
        assert!(runtime.join("forge-worktree-2").exists());
        for root in [&worktrees, &runtime] {
            assert!(!root.join("forge-removed-1").exists());
        }
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
    fn r44_a_git_that_still_writes_after_its_worker_was_killed_delays_the_sweep_only() {
        let (_dir, worktrees, runtime) = roots();
        let left = worktrees.join("forge-worktree-1");
        fs_err::create_dir_all(left.join("deep")).unwrap();
        let target = left.join("deep");
        let writer = std::thread::spawn(move || {
            // As git does: files in a folder that it found, until that is gone.
            let mut written = 0_u32;
            while written < 20_000 && fs_err::write(target.join(written.to_string()), "x").is_ok() {
                written += 1;
            }
        });
        let _owned = OwnedRoots::take_over(&worktrees, &runtime).unwrap();
        assert!(!left.exists());
        writer.join().unwrap();
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

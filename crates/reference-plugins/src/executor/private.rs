//! A private directory for what plugin and program tell each other.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use forge_plugin_kit::Context;
use safe_fs::PrivateTempDir;

/// Why there is no private directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateError {
    #[error("cannot resolve the temporary directory")]
    TemporaryDirectory(#[source] io::Error),
    #[error("cannot resolve the workspace")]
    Workspace(#[source] io::Error),
    #[error("the temporary directory `{}` lies inside the workspace; set TMPDIR to another", temporary.display())]
    TemporaryInside { temporary: PathBuf },
    #[error("cannot use the private directory or a file in it")]
    Files(#[from] safe_fs::SafeFsError),
    #[error("cannot write the output schema")]
    Schema(#[source] io::Error),
}

/// Makes a directory of mode 0700 under the temporary directory, but never inside the workspace.
/// It goes when it is dropped, and at once when the operation is cancelled.
pub(crate) fn private_directory(
    workspace: &Path,
    prefix: &str,
    context: &Context,
) -> Result<PrivateTempDir, PrivateError> {
    let temporary = std::env::temp_dir();
    let root = fs_err::canonicalize(&temporary).map_err(PrivateError::TemporaryDirectory)?;
    let workspace = fs_err::canonicalize(workspace).map_err(PrivateError::Workspace)?;
    if root.starts_with(&workspace) {
        return Err(PrivateError::TemporaryInside { temporary: root });
    }
    let directory = PrivateTempDir::new_in(&root, prefix)?;
    let path = directory.path().to_owned();
    // On a busy machine a cancelled program may take longer to end than the plugin may live on;
    // then nobody comes to drop the directory.
    context.cancel().on_cancel(move || {
        drop(thread::spawn(move || {
            safe_fs::remove_tree_no_follow(&path).ok();
        }));
    });
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    #[test]
    fn the_directory_is_private_and_goes_with_a_cancel_or_a_drop() {
        let workspace = tempfile::tempdir().unwrap();
        let context = Context::detached();
        let make = || private_directory(workspace.path(), "forge-test-", &context).unwrap();
        let dropped = make();
        let path = dropped.path().to_owned();
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(dropped);
        assert!(!path.exists());

        let cancelled = make();
        fs_err::write(cancelled.path().join("file"), "x").unwrap();
        context.cancel().cancel();
        let gone = (0..6_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !cancelled.path().exists()
        });
        assert!(gone);
    }
}

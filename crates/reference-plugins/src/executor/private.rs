//! A private directory for what plugin and program tell each other.

use std::io;
use std::path::{Path, PathBuf};

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
pub(crate) fn private_directory(
    workspace: &Path,
    prefix: &str,
) -> Result<PrivateTempDir, PrivateError> {
    let temporary = std::env::temp_dir();
    let root = fs_err::canonicalize(&temporary).map_err(PrivateError::TemporaryDirectory)?;
    let workspace = fs_err::canonicalize(workspace).map_err(PrivateError::Workspace)?;
    if root.starts_with(&workspace) {
        return Err(PrivateError::TemporaryInside { temporary: root });
    }
    Ok(PrivateTempDir::new_in(&root, prefix)?)
}

//! Folders that are made when they are first needed.

use std::io::ErrorKind;
use std::path::{Component, Path};

use crate::error::KeysError;

/// Refuses a link at any level of `path` below `workspace`: a checkout could lead to the keys and
/// the trust of another project by it. Levels that do not exist are fine.
pub(crate) fn refuse_links(path: &Path, workspace: &Path) -> Result<(), KeysError> {
    let mut reached = workspace.to_owned();
    for level in levels(path, workspace) {
        reached.push(level);
        match fs_err::symlink_metadata(&reached) {
            Ok(found) if found.is_symlink() => {
                return Err(KeysError::LinkedFolder { folder: reached });
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(KeysError::io("examine a folder of the workspace")(error)),
        }
    }
    Ok(())
}

/// Makes the folder and those above it where they are absent. Tells whether it was absent.
pub(crate) fn ensure(path: &Path, mode: u32) -> Result<bool, KeysError> {
    use std::os::unix::fs::DirBuilderExt as _;

    let failed = || KeysError::io("make a folder");
    if let Some(above) = path.parent() {
        fs_err::create_dir_all(above).map_err(failed())?;
    }
    let mut builder = std::fs::DirBuilder::new();
    match builder.mode(mode).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(source) => {
            let text = format!("`{}`: {source}", path.display());
            Err(failed()(std::io::Error::new(source.kind(), text)))
        }
    }
}

fn levels<'path>(
    path: &'path Path,
    workspace: &Path,
) -> impl Iterator<Item = Component<'path>> + use<'path> {
    let below = path.strip_prefix(workspace).unwrap_or(path);
    below.components()
}

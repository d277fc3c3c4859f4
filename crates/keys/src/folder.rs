//! Folders that are made when they are first needed.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::error::KeysError;

/// What a folder in a workspace has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    PrivateKeys,
    Trust,
}

/// Refuses a link at any level of `path` below `workspace`: a checkout could lead to the keys and
/// the trust of another project by it. Levels that do not exist are fine.
pub(crate) fn refuse_links(path: &Path, workspace: &Path, holds: Holds) -> Result<(), KeysError> {
    let mut reached = workspace.to_owned();
    for level in levels(path, workspace) {
        reached.push(level);
        match fs_err::symlink_metadata(&reached) {
            Ok(found) if found.is_symlink() => {
                return Err(linked(reached, path, holds));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(KeysError::io("examine a folder of the workspace")(error)),
        }
    }
    Ok(())
}

fn linked(folder: PathBuf, wanted: &Path, holds: Holds) -> KeysError {
    let own_place = holds == Holds::PrivateKeys && folder == wanted;
    KeysError::LinkedFolder {
        folder,
        what: match holds {
            Holds::PrivateKeys => "private keys",
            Holds::Trust => "trust store",
        },
        // The variable moves the private keys alone, and from nowhere but their own folder.
        advice: if own_place {
            "put a folder there, or name another place with ATTEST_KEYS_DIR"
        } else {
            "put a folder there"
        },
    }
}

/// Refuses a folder of private keys that others can write into: they could have put in what is
/// there. Reading is the affair of the files' own modes.
pub(crate) fn refuse_loose(folder: &Path) -> Result<(), KeysError> {
    use std::os::unix::fs::MetadataExt as _;

    let found = fs_err::metadata(folder);
    let found = found.map_err(KeysError::io("examine the folder of private keys"))?;
    let (owner, expected) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != expected && owner != 0 {
        return Err(KeysError::OthersFolder {
            folder: folder.to_owned(),
            owner,
            expected,
        });
    }
    let mode = found.mode() & 0o7777;
    let who = match mode & 0o022 {
        0 => return Ok(()),
        0o020 => "a whole group",
        _ => "every user of this machine",
    };
    Err(KeysError::LooseFolder {
        folder: folder.to_owned(),
        mode,
        who,
    })
}

/// Tells whether nothing at all is in a folder.
pub(crate) fn is_empty(folder: &Path) -> bool {
    fs_err::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
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

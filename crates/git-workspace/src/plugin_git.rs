//! The `.git` inside a workspace: for the plugin's own use, and never read by git here.

use std::{io, path::Path};

use crate::{Base, untouched};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                      [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";

const FOLDERS: [&str; 7] = [
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
    "info",
];

/// Makes `<workspace>/.git` with a detached HEAD at the base, a copy of the index, and the
/// repository's objects by reference. Blocks.
pub(crate) fn create(base: &Base, workspace: &Path, index: &Path) -> io::Result<()> {
    let dir = workspace.join(".git");
    fs_err::create_dir(&dir)?;
    for folder in FOLDERS {
        fs_err::create_dir(dir.join(folder))?;
    }
    fs_err::write(dir.join("config"), CONFIG)?;
    fs_err::write(
        dir.join("objects/info/alternates"),
        base.repository.alternates(),
    )?;
    for name in ["shallow", "info/exclude", "info/attributes"] {
        match fs_err::copy(base.repository.common_dir().join(name), dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    update(base, workspace, index)
}

/// Brings HEAD and index of an untouched `.git` to another base. Blocks.
pub(crate) fn update(base: &Base, workspace: &Path, index: &Path) -> io::Result<()> {
    let dir = workspace.join(".git");
    fs_err::write(dir.join("HEAD"), format!("{}\n", base.commit))?;
    fs_err::copy(index, dir.join("index"))?;
    Ok(())
}

/// Whether nothing that it was made with is missing, and the repository is as shallow or deep as
/// it was. Blocks.
pub(crate) fn is_as_made(base: &Base, workspace: &Path) -> bool {
    let dir = workspace.join(".git");
    let shallow = |git_dir: &Path| fs_err::read(git_dir.join("shallow")).ok();
    untouched::has_all(&dir, &FOLDERS)
        && untouched::has_all(&dir, &["config", "objects/info/alternates"])
        && shallow(&dir) == shallow(base.repository.common_dir())
}

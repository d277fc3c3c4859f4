//! The git directory of one attempt, outside its workspace: the only one that git reads here.

use std::path::{Path, PathBuf};

use safe_fs::PrivateTempDir;

use crate::{Base, GitError, git::Call, untouched};

/// The operator's own ignore rules and attributes, longer than this, are not a text any more.
const INFO_BYTES: u64 = 1 << 20;

/// What an operator may keep beside the repository's files.
const INFO: [&str; 2] = ["info/exclude", "info/attributes"];

/// What becomes of a candidate is brought to the disk when it leaves here, all at once.
const UNSYNCED: &str = "core.fsync=none";

/// A private git directory without refs or hooks of its own. It reads the repository's objects,
/// and keeps to itself what git writes.
#[derive(Debug)]
pub(crate) struct PrivateGit {
    dir: PrivateTempDir,
    shared: Option<String>,
}

impl PrivateGit {
    /// Makes the directory below `runtime_dir`. Blocks.
    pub(crate) fn create(base: &Base, runtime_dir: &Path) -> Result<Self, GitError> {
        let dir = PrivateTempDir::new_in(runtime_dir, "forge-git-")?;
        let failed = GitError::io("write the private git directory");
        write_files(base, dir.path()).map_err(failed)?;
        copy_info(base, dir.path())?;
        Ok(Self {
            dir,
            shared: base.shared.clone(),
        })
    }

    /// Starts a call that uses this directory.
    pub(crate) fn call(&self, command: &'static str) -> Call {
        let call = Call::new(command, Some(self.dir.path())).config(UNSYNCED);
        match &self.shared {
            None => call,
            Some(shared) => call.config(format!("core.sharedRepository={shared}")),
        }
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    /// Removes the lock that a killed git left on the index. Nobody else knows this directory, and
    /// git runs in it one at a time, so that no live process holds the lock. Blocks.
    pub(crate) fn remove_stale_lock(index: &Path) -> Result<(), GitError> {
        match fs_err::remove_file(index.with_extension("lock")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(GitError::io("remove a stale lock of the index")(error))
            }
            _ => Ok(()),
        }
    }

    /// Points HEAD at another commit, for commands that look at it.
    pub(crate) fn set_base(&mut self, base: &Base) -> Result<(), GitError> {
        self.shared.clone_from(&base.shared);
        fs_err::write(self.dir.path().join("HEAD"), format!("{}\n", base.commit))
            .map_err(GitError::io("write the private git directory"))
    }

    /// Where git writes objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.path().join("objects")
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Whether nothing that it was made with is missing from such a directory. Blocks.
    pub(crate) fn is_whole(dir: &Path) -> bool {
        untouched::has_all(
            dir,
            &["HEAD", "config", "info", "objects/info/alternates", "refs"],
        )
    }

    pub(crate) fn close(self) -> Result<(), GitError> {
        Ok(self.dir.close()?)
    }
}

fn write_files(base: &Base, dir: &Path) -> std::io::Result<()> {
    for folder in ["refs", "info", "objects", "objects/info", "objects/pack"] {
        fs_err::create_dir(dir.join(folder))?;
    }
    fs_err::write(
        dir.join("objects/info/alternates"),
        base.repository.alternates(),
    )?;
    fs_err::write(dir.join("HEAD"), format!("{}\n", base.commit))?;
    fs_err::write(
        dir.join("config"),
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    )
}

/// Takes over the ignore rules and attributes that the operator keeps beside the repository's
/// files. They run nothing: filters and drivers need a configuration, which is not taken over.
fn copy_info(base: &Base, dir: &Path) -> Result<(), GitError> {
    for name in INFO {
        if let Some(bytes) = read_info(base.repository.common_dir(), name)? {
            fs_err::write(dir.join(name), bytes)
                .map_err(GitError::io("write the private git directory"))?;
        }
    }
    Ok(())
}

/// Whether the operator's rules are still those that were taken over into `dir`. Blocks.
pub(crate) fn has_current_info(base: &Base, dir: &Path) -> Result<bool, GitError> {
    for name in INFO {
        if read_info(base.repository.common_dir(), name)? != read_info(dir, name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read_info(git_dir: &Path, name: &str) -> Result<Option<Vec<u8>>, GitError> {
    match safe_fs::read_bounded(&git_dir.join(name), INFO_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

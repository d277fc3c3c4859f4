//! Where a workspace keeps its state, and how that place is made.
//!
//! Keys, trust, capsules and declared plugins always stand in `.attest` of the workspace. What runs
//! write (receipts, cache, ledger) stands there too, or in a folder that the caller names. A link
//! in place of one of these folders is refused: a checkout must not send what is written elsewhere.

mod init;
mod left_over;
mod whole;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use safe_fs::SafeFsError;

pub use init::{Init, STARTER, init};
pub(crate) use left_over::is_dead;
pub use whole::create_whole;
pub(crate) use whole::{create_unsynchronised, replace_soon, synchronise};

/// The folder of attest in a workspace.
pub const FOLDER: &str = ".attest";

/// The folders that runs write to.
pub(crate) const WRITTEN: [&str; 3] = ["receipts", "cache", "causal_ledger"];

/// Says why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// There is no `.attest`.
    #[error("not an ATTEST repository (run 'attest init'): `{}` has no `.attest` folder", workspace.display())]
    NotInitialised {
        /// The workspace.
        workspace: PathBuf,
    },
    /// The workspace is missing, or no folder.
    #[error("the workspace `{}` is not a folder that can be used", path.display())]
    Workspace {
        /// The workspace.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A link stands where a folder or file has to be.
    #[error("`{}` is a symbolic link, which is not followed here; remove it or name the real folder", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something else stands where a folder has to be.
    #[error("`{}` is in the way: a folder has to be there", path.display())]
    NotAFolder {
        /// What was found.
        path: PathBuf,
    },
    /// Something else stands where a file has to be.
    #[error("`{}` is in the way: a regular file has to be there", path.display())]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// The operating system refused; its words name the path.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The cause, with the path.
        #[source]
        source: io::Error,
    },
    /// A file cannot be read or written as a whole.
    #[error(transparent)]
    File(#[from] SafeFsError),
}

/// A workspace, and the folder with its receipts, cache and ledger.
#[derive(Debug, Clone)]
pub struct State {
    workspace: PathBuf,
    folder: PathBuf,
}

impl State {
    /// Names the workspace and its state folder; nothing is looked at.
    #[must_use]
    pub fn new(workspace: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            folder: folder.into(),
        }
    }

    /// Chooses the state folder: the option, else the variable's value (a relative one is below
    /// the workspace, an empty one is none), else `.attest`. Nothing is looked at.
    #[must_use]
    pub fn choose(workspace: &Path, option: Option<&Path>, variable: Option<&OsStr>) -> Self {
        let folder = match (option, variable.filter(|value| !value.is_empty())) {
            (Some(folder), _) => folder.to_owned(),
            (None, Some(folder)) => workspace.join(folder),
            (None, None) => workspace.join(FOLDER),
        };
        Self::new(workspace, folder)
    }

    /// Makes sure that a pipeline can run here: the workspace was initialised, or its state stands
    /// elsewhere; the folders that are written to exist.
    ///
    /// # Errors
    /// What is missing or in the way; nothing of the workspace is changed then.
    pub fn prepare(&self) -> Result<(), LayoutError> {
        self.check()?;
        self.make()
    }

    /// Makes sure that the workspace was initialised, or that its state stands elsewhere, and
    /// makes nothing.
    ///
    /// # Errors
    /// What is missing or in the way.
    pub fn check(&self) -> Result<(), LayoutError> {
        let attest = self.workspace.join(FOLDER);
        if !check_folder(&attest)? && self.folder == attest {
            return Err(LayoutError::NotInitialised {
                workspace: self.workspace.clone(),
            });
        }
        Ok(())
    }

    /// Makes the folders that are written to, and those above them, as far as they are absent. What
    /// killed writers left in them is removed.
    ///
    /// # Errors
    /// What is in the way, or the operating system's refusal.
    pub fn make(&self) -> Result<(), LayoutError> {
        let workspace = |source| LayoutError::Workspace {
            path: self.workspace.clone(),
            source,
        };
        let found = fs_err::metadata(&self.workspace).map_err(workspace)?;
        if !found.is_dir() {
            return Err(workspace(Errno::NOTDIR.into()));
        }
        check_folder(&self.workspace.join(FOLDER))?;
        for name in WRITTEN {
            check_folder(&self.folder.join(name))?;
        }
        fs_err::create_dir_all(&self.folder).map_err(failed("make the state folder"))?;
        for name in WRITTEN {
            let folder = self.folder.join(name);
            if !make_folder(&folder)? {
                left_over::sweep(&folder);
            }
        }
        left_over::sweep(&self.ledger().join("events"));
        Ok(())
    }

    /// Makes sure again that what is written to one of the folders goes there: no link, and no
    /// other thing, stands in its place or in that of `.attest`.
    ///
    /// # Errors
    /// What is in the way.
    pub(crate) fn check_written(&self, name: &str) -> Result<(), LayoutError> {
        check_folder(&self.workspace.join(FOLDER))?;
        check_folder(&self.folder.join(name)).map(|_| ())
    }

    /// Returns the folder to which declared paths are relative.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the folder with everything that runs write.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the receipts.
    #[must_use]
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    /// Returns the folder of the cache.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    /// Returns the folder of the causal ledger.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.folder.join("causal_ledger")
    }
}

/// Tells whether the folder is there; refuses anything else that stands there.
fn check_folder(path: &Path) -> Result<bool, LayoutError> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(found) if found.is_symlink() => Err(LayoutError::Link { path: path.into() }),
        Ok(_) => Err(LayoutError::NotAFolder { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(LayoutError::Io {
            action: "look for a folder",
            source,
        }),
    }
}

/// Makes one folder; false if it was there. A link in its place is refused.
pub(crate) fn make_folder(path: &Path) -> Result<bool, LayoutError> {
    match fs_err::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check_folder(path).map(|_| false)
        }
        Err(error) => Err(failed("make a folder")(error)),
    }
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> LayoutError {
    move |source| LayoutError::Io { action, source }
}

#[cfg(test)]
mod tests;

//! Finds the parts of a repository by its files, without asking git and without trusting it yet.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::GitError;

/// A pointer file (`.git` of a linked work tree, `commondir`) longer than this is none.
const POINTER_BYTES: u64 = 16 * 1024;

/// A repository found by its files: bare, with a work tree, or a linked work tree of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    path: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl Repository {
    /// Opens the repository whose top folder, or bare repository, is `path`.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`] with what is missing.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        let refused = |reason| GitError::NotARepository {
            path: path.to_owned(),
            reason,
        };
        let absolute = fs_err::canonicalize(path).map_err(|error| refused(unreachable(&error)))?;
        if absolute.as_os_str().as_bytes().contains(&b'\n') {
            return Err(refused("its path contains a line feed"));
        }
        let dot_git = absolute.join(".git");
        let git_dir = if dot_git.is_dir() {
            dot_git
        } else if dot_git.is_file() {
            let pointer = read_pointer(&dot_git, b"gitdir: ")
                .ok_or_else(|| refused("its `.git` file names no folder"))?;
            absolute.join(pointer)
        } else {
            absolute.clone()
        };
        let common_file = git_dir.join("commondir");
        let common_dir = if common_file.is_file() {
            let pointer = read_pointer(&common_file, b"")
                .ok_or_else(|| refused("its `commondir` file names no folder"))?;
            git_dir.join(pointer)
        } else {
            git_dir.clone()
        };
        match fs_err::metadata(git_dir.join("HEAD")) {
            Ok(head) if head.is_file() => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(refused(unreachable(&error)));
            }
            _ => return Err(refused("it has no HEAD")),
        }
        if !common_dir.join("objects").is_dir() || !common_dir.join("refs").is_dir() {
            return Err(refused("it has no `objects` and `refs`"));
        }
        let canonical = |folder: PathBuf| {
            fs_err::canonicalize(folder).map_err(GitError::io("resolve the git directory"))
        };
        Ok(Self {
            path: absolute,
            git_dir: canonical(git_dir)?,
            common_dir: canonical(common_dir)?,
        })
    }

    /// Opens the repository that `start` or the nearest folder above it is the top of.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`] if there is none up to the root.
    pub fn discover(start: &Path) -> Result<Self, GitError> {
        let refused = |reason| GitError::NotARepository {
            path: start.to_owned(),
            reason,
        };
        let absolute = fs_err::canonicalize(start).map_err(|error| refused(unreachable(&error)))?;
        absolute
            .ancestors()
            .find_map(|folder| Self::open(folder).ok())
            .ok_or_else(|| refused("neither it nor a folder above it has a `.git`"))
    }

    /// Its top folder, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The git directory, of the linked work tree if it is one.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that all work trees share: refs, objects, configuration.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// What another git directory has in `objects/info/alternates` to read the objects.
    pub(crate) fn alternates(&self) -> Vec<u8> {
        let mut line = self.objects().into_os_string().into_encoded_bytes();
        line.push(b'\n');
        line
    }

    /// Where its objects are.
    pub(crate) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }
}

fn read_pointer(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let bytes = safe_fs::read_bounded(file, POINTER_BYTES).ok()?;
    let path = bytes.strip_prefix(prefix)?.trim_ascii_end();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// Says why a path could not be looked at: a wrong path and a wrong user are mended differently.
fn unreachable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "the path does not exist",
        io::ErrorKind::PermissionDenied => "this user has no permission to look there",
        _ => "the path cannot be resolved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_user_is_told_apart_from_a_wrong_path() {
        let reason = |kind| unreachable(&io::Error::from(kind));
        assert_eq!(reason(io::ErrorKind::NotFound), "the path does not exist");
        assert!(reason(io::ErrorKind::PermissionDenied).contains("permission"));
        let loops = io::Error::from_raw_os_error(40);
        assert_eq!(unreachable(&loops), "the path cannot be resolved");
    }
}

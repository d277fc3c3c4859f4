//! The private folder of one attempt: `home`, `tmp` and `cache` for its plugin and checks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use git_workspace::REMOVED_PREFIX;
use safe_fs::{PrivateTempDir, SafeFsError, private_dir};

/// What the names of these folders begin with.
pub(crate) const RUNTIME_PREFIX: &str = "forge-runtime-";

/// A folder with mode 0700 that is removed with its owner.
#[derive(Debug)]
pub(crate) struct RuntimeDir(PrivateTempDir);

impl RuntimeDir {
    /// Makes the folder below `root`, on a thread that may block.
    pub(crate) async fn make(root: &Path) -> Result<Self, SafeFsError> {
        let below = root.to_owned();
        match tokio::task::spawn_blocking(move || Self::new(&below)).await {
            Ok(made) => made,
            Err(error) => Err(SafeFsError::Io {
                action: "make a private folder in",
                path: root.to_owned(),
                source: std::io::Error::other(error),
            }),
        }
    }

    /// Makes the folder below `root`.
    fn new(root: &Path) -> Result<Self, SafeFsError> {
        let made = Self(PrivateTempDir::new_in(root, RUNTIME_PREFIX)?);
        for path in [made.home(), made.tmp(), made.cache()] {
            private_dir(&path)?;
        }
        Ok(made)
    }

    /// Where the folder is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The folder for temporary files.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// The variables that point checks into this folder.
    pub(crate) fn check_variables(&self) -> [(OsString, OsString); 3] {
        [
            ("HOME".into(), self.home().into()),
            ("TMPDIR".into(), self.tmp().into()),
            ("XDG_CACHE_HOME".into(), self.cache().into()),
        ]
    }

    /// Whether all that it was made with is still there.
    pub(crate) fn is_whole(&self) -> bool {
        [self.home(), self.tmp(), self.cache()]
            .iter()
            .all(|path| path.is_dir())
    }

    /// Gives the folder a name under which nothing looks for it any more.
    pub(crate) fn put_aside(&mut self) -> Result<(), SafeFsError> {
        self.0.put_aside(REMOVED_PREFIX)
    }

    /// Removes the folder.
    pub(crate) fn close(self) -> Result<(), SafeFsError> {
        self.0.close()
    }

    fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_folders_are_private_and_go_away() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let runtime = RuntimeDir::new(&root).unwrap();
        let path = runtime.path().to_owned();
        assert!(
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(RUNTIME_PREFIX)
        );
        for (_, folder) in runtime.check_variables() {
            let mode = Path::new(&folder).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{}", folder.display());
        }
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o7777,
            0o700
        );
        runtime.close().unwrap();
        assert!(!path.exists());
    }
}

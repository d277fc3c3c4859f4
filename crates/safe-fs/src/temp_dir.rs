//! A private folder with a random name that goes away with its owner.

use std::{
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, fchmod, mkdirat, openat, renameat},
    io::Errno,
};

use crate::{
    SafeFsError, remove,
    walk::{self, Purpose},
};

/// A folder with mode 0700, removed with all that is in it on [`close`](Self::close) or drop.
///
/// The folder that holds it stays open, so that removal reaches the same place even if a
/// component of the path has been replaced since.
#[derive(Debug)]
pub struct PrivateTempDir {
    root: OwnedFd,
    name: OsString,
    path: PathBuf,
    armed: bool,
}

impl PrivateTempDir {
    /// Creates `<root>/<prefix><16 random hex digits>`. No component of `root` may be a link.
    ///
    /// # Errors
    ///
    /// `root` is absent, reached through a link or not writable; `prefix` contains a `/` or NUL.
    pub fn new_in(root: &Path, prefix: &str) -> Result<Self, SafeFsError> {
        check_prefix(prefix)?;
        let root_fd = walk::open_dir(root, Purpose::Pass)?;
        loop {
            let name = OsString::from(format!("{prefix}{}", random_hex()?));
            let path = root.join(&name);
            match mkdirat(&root_fd, &name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(SafeFsError::io("create the directory", path, errno)),
            }
            let made = Self {
                root: root_fd,
                name,
                path,
                armed: true,
            };
            made.set_mode()?;
            return Ok(made);
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder and all that is in it; links are removed, never followed.
    ///
    /// # Errors
    ///
    /// Something could not be removed; what could be is gone.
    pub fn close(mut self) -> Result<(), SafeFsError> {
        self.armed = false;
        remove::remove_entry(&self.root, &self.name, &self.path)
    }

    /// Gives the folder another random name beside the old one. A folder that is gone is fine.
    ///
    /// # Errors
    ///
    /// The operating system refuses; the folder keeps its name then.
    pub fn put_aside(&mut self, prefix: &str) -> Result<(), SafeFsError> {
        check_prefix(prefix)?;
        let name = OsString::from(format!("{prefix}{}", random_hex()?));
        match renameat(&self.root, &self.name, &self.root, &name) {
            Ok(()) => {
                self.path.set_file_name(&name);
                self.name = name;
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(SafeFsError::io("rename", &self.path, errno)),
        }
    }

    /// Leaves the folder where it is and gives its path.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        self.armed = false;
        self.path.clone()
    }

    fn set_mode(&self) -> Result<(), SafeFsError> {
        let failed = |errno| SafeFsError::io("set the mode of", &self.path, errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd =
            openat(&self.root, OsStr::new(&self.name), flags, Mode::empty()).map_err(failed)?;
        fchmod(&fd, Mode::RWXU).map_err(failed)
    }
}

impl Drop for PrivateTempDir {
    fn drop(&mut self) {
        if self.armed {
            // Nobody is left to tell; who wants to know calls `close`.
            remove::remove_entry(&self.root, &self.name, &self.path).ok();
        }
    }
}

fn check_prefix(prefix: &str) -> Result<(), SafeFsError> {
    if prefix.contains(['/', '\0']) {
        return Err(SafeFsError::UnusablePath {
            path: prefix.into(),
            reason: "a prefix contains no `/` and no NUL byte",
        });
    }
    Ok(())
}

/// 64 random bits as hex, for names that nobody else picks.
pub(crate) fn random_hex() -> Result<String, SafeFsError> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        SafeFsError::io(
            "get random bytes for a name in",
            ".",
            std::io::Error::from(error),
        )
    })?;
    Ok(hex::encode(bytes))
}

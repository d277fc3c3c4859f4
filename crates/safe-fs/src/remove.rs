//! Removes trees of any depth and hostility: by descriptors, so that no link is ever followed.

use std::{
    ffi::{CString, OsStr},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, unlinkat},
    io::Errno,
};

use crate::{SafeFsError, walk};

/// How many descriptors of open folders one removal keeps; deeper levels are reopened through
/// `..` on the way back, and their identity is compared then.
const OPEN_FOLDERS: usize = 32;

/// How often one folder is listed again because entries appeared after it had been emptied.
const PASSES: u32 = 16;

/// Removes `path` and everything below it. A symbolic link, at `path` itself or below, is removed
/// and never followed; folders without write permission are made writable first. An absent path
/// is fine.
///
/// # Errors
///
/// A link among the parents of `path`, a tree on another file system below it, writers that do
/// not stop, or what the operating system refuses. What could be removed is gone then.
pub fn remove_tree_no_follow(path: &Path) -> Result<(), SafeFsError> {
    let entry = match walk::entry(path) {
        Ok(entry) => entry,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    remove_entry(&entry.parent, &entry.name, &entry.path)
}

/// Removes the entry `name` of an open folder; `path` is for messages only.
pub(crate) fn remove_entry(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), SafeFsError> {
    let Ok(name) = CString::new(name.as_bytes()) else {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it contains a NUL byte",
        });
    };
    match unlinkat(parent, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Which of the two a folder answers with differs between systems.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(SafeFsError::io("remove", path, errno)),
    }
    let Some(top) = Folder::open(parent, name.clone(), path, None)? else {
        return Ok(());
    };
    empty(top, path)?;
    match unlinkat(parent, &name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(SafeFsError::io("remove", path, errno)),
    }
}

/// The number of a file system, whose width differs between systems.
type Device = rustix::fs::Dev;

/// A folder that is being emptied.
struct Folder {
    /// Closed while many deeper folders are open.
    fd: Option<OwnedFd>,
    device: Device,
    inode: u64,
    name: CString,
    /// Folders found in it that are still to be removed.
    pending: Vec<CString>,
    passes: u32,
}

impl Folder {
    /// Opens the folder `name` of `parent`; `None` if it is gone.
    fn open(
        parent: impl AsFd,
        name: CString,
        path: &Path,
        expected_device: Option<Device>,
    ) -> Result<Option<Self>, SafeFsError> {
        let fd = match open_writable(parent.as_fd(), &name) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            // Swapped for something else since it was listed: the next pass meets it again.
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(SafeFsError::io("open", path, errno)),
        };
        let stat = fstat(&fd).map_err(|errno| SafeFsError::io("examine", path, errno))?;
        let (device, inode) = identity(&stat);
        if expected_device.is_some_and(|expected| expected != device) {
            return Err(SafeFsError::OtherFileSystem {
                path: path.to_owned(),
            });
        }
        Ok(Some(Self {
            fd: Some(fd),
            device,
            inode,
            name,
            pending: Vec::new(),
            passes: 0,
        }))
    }

    /// Removes everything in it but folders, which become pending.
    fn scan(&mut self, path: &Path) -> Result<(), SafeFsError> {
        let Some(fd) = &self.fd else { return Ok(()) };
        self.passes = self.passes.saturating_add(1);
        let failed = |errno: Errno| SafeFsError::io("list", path, errno);
        for entry in Dir::read_from(fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if entry.file_type() == FileType::Directory {
                self.pending.push(name.to_owned());
                continue;
            }
            match unlinkat(fd, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) if is_folder(fd, name) => {
                    self.pending.push(name.to_owned())
                }
                Err(errno) => return Err(SafeFsError::io("remove", child_path(path, name), errno)),
            }
        }
        Ok(())
    }
}

/// The folders on the way down to the one that is being emptied.
struct Removal {
    /// Never empty while the removal runs.
    stack: Vec<Folder>,
    /// The path of the deepest folder, for messages.
    path: PathBuf,
    device: Device,
}

/// Removes all that is in `top`, depth first, without recursion.
fn empty(mut top: Folder, path: &Path) -> Result<(), SafeFsError> {
    top.scan(path)?;
    let mut removal = Removal {
        device: top.device,
        stack: vec![top],
        path: path.to_owned(),
    };
    loop {
        let next = removal
            .stack
            .last_mut()
            .and_then(|folder| folder.pending.pop());
        let done = match next {
            Some(name) => removal.descend(name)?,
            None => removal.ascend()?,
        };
        if done {
            return Ok(());
        }
    }
}

impl Removal {
    /// Removes the folder `name` of the deepest one, or makes it the deepest one.
    fn descend(&mut self, name: CString) -> Result<bool, SafeFsError> {
        let depth = self.stack.len();
        let Some(fd) = self.stack.last().and_then(|folder| folder.fd.as_ref()) else {
            return Ok(true);
        };
        if matches!(
            unlinkat(fd, &name, AtFlags::REMOVEDIR),
            Ok(()) | Err(Errno::NOENT)
        ) {
            return Ok(false);
        }
        let path = child_path(&self.path, &name);
        let Some(mut child) = Folder::open(fd, name, &path, Some(self.device))? else {
            // It is something else by now; listing the folder again tells what.
            self.scan_again()?;
            return Ok(false);
        };
        child.scan(&path)?;
        if let Some(distant) = depth
            .checked_sub(OPEN_FOLDERS)
            .and_then(|index| self.stack.get_mut(index))
        {
            distant.fd = None;
        }
        self.stack.push(child);
        self.path = path;
        Ok(false)
    }

    /// Removes the deepest folder from its parent; tells whether it was the top, which stays.
    fn ascend(&mut self) -> Result<bool, SafeFsError> {
        let Some(child) = self.stack.pop() else {
            return Ok(true);
        };
        let Some(parent) = self.stack.last_mut() else {
            return Ok(true);
        };
        if parent.fd.is_none() {
            parent.fd = Some(reopen_parent(&child, parent, &self.path)?);
        }
        let Some(fd) = &parent.fd else {
            return Ok(true);
        };
        match unlinkat(fd, &child.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {
                self.path.pop();
                Ok(false)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                self.stack.push(child);
                self.scan_again()?;
                Ok(false)
            }
            Err(Errno::NOTDIR) => {
                self.path.pop();
                self.scan_again()?;
                Ok(false)
            }
            Err(errno) => Err(SafeFsError::io("remove", &self.path, errno)),
        }
    }

    /// Lists the deepest folder once more, within its number of passes.
    fn scan_again(&mut self) -> Result<(), SafeFsError> {
        let Some(current) = self.stack.last_mut() else {
            return Ok(());
        };
        if current.passes >= PASSES {
            return Err(SafeFsError::Changing {
                path: self.path.clone(),
            });
        }
        current.scan(&self.path)
    }
}

/// Opens the parent of an emptied folder again, and makes sure that it is the one we came from.
fn reopen_parent(child: &Folder, parent: &Folder, path: &Path) -> Result<OwnedFd, SafeFsError> {
    let changing = || SafeFsError::Changing {
        path: path.to_owned(),
    };
    let fd = child.fd.as_ref().ok_or_else(changing)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |errno: Errno| SafeFsError::io("open the parent of", path, errno);
    let reopened = openat(fd, "..", flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&reopened).map_err(failed)?;
    if identity(&stat) == (parent.device, parent.inode) {
        Ok(reopened)
    } else {
        Err(changing())
    }
}

/// Opens a folder for listing and makes sure that its owner may remove entries from it.
fn open_writable(parent: impl AsFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let needed = 0o700;
    match openat(&parent, name, flags | OFlags::RDONLY, Mode::empty()) {
        Ok(fd) => {
            let stat = fstat(&fd)?;
            if walk::permissions(&stat) & needed != needed {
                // Another owner's folder cannot be changed; the removal itself then says so.
                rustix::fs::fchmod(&fd, Mode::RWXU).ok();
            }
            Ok(fd)
        }
        Err(Errno::ACCESS) => {
            make_accessible(parent.as_fd(), name)?;
            openat(&parent, name, flags | OFlags::RDONLY, Mode::empty())
        }
        Err(errno) => Err(errno),
    }
}

/// Gives the owner all rights on a folder that cannot even be opened, without following a link.
#[cfg(target_os = "linux")]
fn make_accessible(parent: impl AsFd, name: &CString) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(&parent, name, flags, Mode::empty())?;
    // A descriptor of this kind refuses fchmod, its name under /proc does not.
    let by_descriptor = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(by_descriptor, Mode::RWXU)
}

/// Gives the owner all rights on a folder that cannot even be opened, without following a link.
#[cfg(not(target_os = "linux"))]
fn make_accessible(parent: impl AsFd, name: &CString) -> Result<(), Errno> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_folder(parent: impl AsFd, name: &std::ffi::CStr) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| walk::file_type(&stat) == FileType::Directory)
}

fn identity(stat: &Stat) -> (Device, u64) {
    (stat.st_dev, stat.st_ino)
}

fn child_path(path: &Path, name: &std::ffi::CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}

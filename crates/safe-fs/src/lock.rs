//! Exclusive ownership of something, by a lock that the kernel releases with the process.

use std::{ffi::OsStr, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, openat, stat,
        statat,
    },
    io::Errno,
};

use crate::{SafeFsError, private::judge_private_file, walk};

/// Keeps the lock until it is dropped. The file stays, so that there is one file to agree on.
#[derive(Debug)]
pub struct LockGuard {
    /// Closing the descriptor releases the lock; children do not inherit it.
    _fd: OwnedFd,
}

/// Takes the lock of the private file `path`, which is created with mode 0600 if it is absent.
///
/// # Errors
///
/// [`SafeFsError::AlreadyOwned`] at once if another process (or another guard of this one) has
/// it; else what [`crate::check_private_file`] refuses.
pub fn lock_exclusive(path: &Path) -> Result<LockGuard, SafeFsError> {
    let entry = walk::entry(path)?;
    loop {
        let fd = open_or_create(&entry)?;
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(SafeFsError::AlreadyOwned { path: entry.path }),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(SafeFsError::io("lock", &entry.path, errno)),
        }
        let locked = fstat(&fd).map_err(|errno| SafeFsError::io("examine", &entry.path, errno))?;
        judge_private_file(&entry.path, &locked)?;
        // Somebody may have removed the file between opening and locking: then the lock is on a
        // file without a name, which keeps nobody out.
        let named = entry.stat()?;
        if named.is_some_and(|named| named.st_ino == locked.st_ino && named.st_dev == locked.st_dev)
        {
            return Ok(LockGuard { _fd: fd });
        }
    }
}

/// Takes the lock of the regular file that `path` leads to, which nobody creates or changes here:
/// whoever replaces that file as a whole keeps others of its kind away from it meanwhile. Once the
/// lock is taken, `path` leads to the locked file.
///
/// # Errors
///
/// [`SafeFsError::AlreadyOwned`] at once if somebody else has it; there is no such file, or it is
/// none.
pub fn lock_named(path: &Path) -> Result<LockGuard, SafeFsError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    loop {
        let fd = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| SafeFsError::io("open", path, errno))?;
        let locked = fstat(&fd).map_err(|errno| SafeFsError::io("examine", path, errno))?;
        if walk::file_type(&locked) != FileType::RegularFile {
            return Err(SafeFsError::NotARegularFile {
                path: path.to_owned(),
            });
        }
        match try_lock(&fd) {
            Ok(Taken::Yes) => {}
            Ok(Taken::ByAnother) => {
                return Err(SafeFsError::AlreadyOwned {
                    path: path.to_owned(),
                });
            }
            Err(errno) => return Err(SafeFsError::io("lock", path, errno)),
        }
        // Whoever had the lock before may have put another file in its place.
        let named = stat(path).map_err(|errno| SafeFsError::io("examine", path, errno))?;
        if named.st_ino == locked.st_ino && named.st_dev == locked.st_dev {
            return Ok(LockGuard { _fd: fd });
        }
    }
}

/// Whether a lock was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is ours.
    Yes,
    /// Somebody has it.
    ByAnother,
}

/// Takes the lock of an open file if it is free.
pub(crate) fn try_lock(fd: &OwnedFd) -> Result<Taken, Errno> {
    loop {
        return match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Taken::Yes),
            Err(Errno::WOULDBLOCK) => Ok(Taken::ByAnother),
            Err(Errno::INTR) => continue,
            Err(errno) => Err(errno),
        };
    }
}

/// Tells whether an open file still has that name.
pub(crate) fn is_named(fd: &OwnedFd, parent: &OwnedFd, name: &OsStr) -> bool {
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    match (fstat(fd), named) {
        (Ok(open), Ok(named)) => open.st_ino == named.st_ino && open.st_dev == named.st_dev,
        _ => false,
    }
}

fn open_or_create(entry: &walk::Entry) -> Result<OwnedFd, SafeFsError> {
    let base =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    loop {
        match openat(
            &entry.parent,
            &entry.name,
            base | OFlags::CREATE | OFlags::EXCL,
            mode,
        ) {
            Ok(fd) => {
                fchmod(&fd, mode)
                    .map_err(|errno| SafeFsError::io("set the mode of", &entry.path, errno))?;
                return Ok(fd);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(SafeFsError::io("create", &entry.path, errno)),
        }
        // Judged before it is opened too: opening a device can have effects of its own.
        let Some(stat) = entry.stat()? else { continue };
        judge_private_file(&entry.path, &stat)?;
        match openat(&entry.parent, &entry.name, base, Mode::empty()) {
            Ok(fd) => return Ok(fd),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(SafeFsError::io("open", &entry.path, errno)),
        }
    }
}

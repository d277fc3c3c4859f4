//! Exclusive ownership of something, by a lock file that the kernel releases with the process.

use std::{os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, fchmod, flock, fstat, openat},
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

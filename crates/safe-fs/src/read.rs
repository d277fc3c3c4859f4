//! Reads whole files under a limit; never waits for a FIFO or a device.

use std::{io::Read, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
};

use crate::{SafeFsError, private::judge_private_file, walk};

/// Reads a regular file of at most `limit` bytes. Links are followed: this is for files that an
/// operator names and that are not secret.
///
/// # Errors
///
/// [`SafeFsError::TooLarge`] with one byte more; FIFOs, devices and folders are refused unread.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, SafeFsError> {
    // Without NONBLOCK the opening of a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(CWD, path, flags, Mode::empty())
        .map_err(|errno| SafeFsError::io("open", path, errno))?;
    let stat = fstat(&fd).map_err(|errno| SafeFsError::io("examine", path, errno))?;
    if walk::file_type(&stat) != FileType::RegularFile {
        return Err(SafeFsError::NotARegularFile {
            path: path.to_owned(),
        });
    }
    read_to_limit(fd, path, limit)
}

/// Reads a private file (see [`crate::check_private_file`]) of at most `limit` bytes.
///
/// # Errors
///
/// As [`crate::check_private_file`], judged on the opened file, and [`SafeFsError::TooLarge`].
pub fn read_private_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, SafeFsError> {
    let entry = walk::entry(path)?;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd =
        openat(&entry.parent, &entry.name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP => SafeFsError::SymbolicLink {
                path: path.to_owned(),
                link: entry.path.clone(),
            },
            errno => SafeFsError::io("open", &entry.path, errno),
        })?;
    let stat = fstat(&fd).map_err(|errno| SafeFsError::io("examine", &entry.path, errno))?;
    judge_private_file(&entry.path, &stat)?;
    read_to_limit(fd, &entry.path, limit)
}

fn read_to_limit(fd: OwnedFd, path: &Path, limit: u64) -> Result<Vec<u8>, SafeFsError> {
    let file = fs_err::File::from_parts(fd.into(), path);
    let mut bytes = Vec::new();
    // One byte more than allowed tells "too long" from "just as long as allowed".
    let read = file
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| SafeFsError::io("read", path, source))?;
    if u64::try_from(read).is_ok_and(|read| read > limit) {
        return Err(SafeFsError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}

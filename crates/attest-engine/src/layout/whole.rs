//! New files that nobody sees a part of: written under another name, synchronised, then renamed.
//!
//! A file's bytes are on the disk before it has its name. The name itself is on the disk when the
//! folder was synchronised, which callers with several files do once.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use super::{LayoutError, failed, left_over};

/// How many temporary names are tried, each of which only a crash could have left behind.
const NAMES: usize = 100;

/// Writes a new file as a whole and makes it outlast a crash; false if the name is taken.
///
/// # Errors
/// The operating system's refusal; no part of the file stays.
pub fn create_whole(path: &Path, bytes: &[u8]) -> Result<bool, LayoutError> {
    let created = create_unsynchronised(path, bytes)?;
    if created {
        let synchronised = path.parent().map_or(Ok(()), synchronise);
        if let Err(error) = synchronised {
            // Whoever is told of an error must not find the file.
            fs_err::remove_file(path).ok();
            return Err(error);
        }
    }
    Ok(created)
}

/// Does the same but for the folder, which has to be given to [`synchronise`] afterwards.
///
/// # Errors
/// The operating system's refusal; no part of the file stays.
pub(crate) fn create_unsynchronised(path: &Path, bytes: &[u8]) -> Result<bool, LayoutError> {
    let (temporary, _locked) = write_aside(path, bytes, true)?;
    let placed = place(&temporary, path);
    if !matches!(placed, Ok(true)) {
        discard(&temporary);
    }
    placed.map_err(|errno| LayoutError::Io {
        action: "put a new file in its place",
        source: io::Error::new(
            io::Error::from(errno).kind(),
            format!("`{}`: {errno}", path.display()),
        ),
    })
}

/// Replaces a file as a whole, without waiting for the disk: for what may be lost.
///
/// # Errors
/// The operating system's refusal; what stood there stays.
pub(crate) fn replace_soon(path: &Path, bytes: &[u8]) -> Result<(), LayoutError> {
    let (temporary, _locked) = write_aside(path, bytes, false)?;
    fs_err::rename(&temporary, path).map_err(|error| {
        discard(&temporary);
        failed("replace a file")(error)
    })
}

/// Makes the names in a folder outlast a crash.
///
/// # Errors
/// The operating system's refusal.
pub(crate) fn synchronise(folder: &Path) -> Result<(), LayoutError> {
    fs_err::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("synchronise a folder"))
}

/// Writes the bytes beside their place, under a name that starts with it. The file stays open, and
/// so locked, until the caller is done with it.
fn write_aside(
    path: &Path,
    bytes: &[u8],
    synchronised: bool,
) -> Result<(PathBuf, fs_err::File), LayoutError> {
    let (temporary, mut file) = open_aside(path).map_err(failed("make a new file"))?;
    let mut written = file.write_all(bytes);
    if synchronised && written.is_ok() {
        written = file.sync_all();
    }
    match written {
        Ok(()) => Ok((temporary, file)),
        Err(error) => {
            discard(&temporary);
            Err(failed("write a new file")(error))
        }
    }
}

fn open_aside(path: &Path) -> io::Result<(PathBuf, fs_err::File)> {
    // The name is nobody else's: other processes have another id, other threads another number.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(left_over::ending(number));
        let temporary = PathBuf::from(temporary);
        let opened = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary);
        match opened {
            Ok(file) => {
                // Tells others that its writer lives. Where there are no locks, nobody sweeps.
                flock(&file, FlockOperation::NonBlockingLockExclusive).ok();
                return Ok((temporary, file));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// The first error is the one to report.
fn discard(temporary: &Path) {
    fs_err::remove_file(temporary).ok();
}

fn place(temporary: &Path, path: &Path) -> Result<bool, Errno> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // A file system without that flag has hard links, or neither.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match rustix::fs::link(temporary, path) {
                Ok(()) => rustix::fs::unlink(temporary).map(|()| true),
                Err(Errno::EXIST) => Ok(false),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}

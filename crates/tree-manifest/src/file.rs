//! One file: small ones in a single read, large ones in pieces.

use std::{os::fd::OwnedFd, path::Path};

use blake3::{Hash, Hasher};
use rustix::{
    fs::{Stat, fstat},
    io::{Errno, pread},
};

use crate::{
    Options,
    error::ManifestError,
    folder::Folder,
    job,
    pieces::{self, Pieces},
    worker::Task,
};

/// What a thread reads into: as much as stays in a processor's own cache.
pub(crate) const BUFFER: usize = 256 * 1024;

/// From this length on a file is divided among the threads.
const LARGE: u64 = 2 * pieces::PIECE;

/// Hashes one regular file with BLAKE3.
///
/// Links in the folders above it are followed, a link in its place is not.
///
/// # Errors
/// It cannot be read, is no regular file, or changed meanwhile.
pub fn hash_file(path: &Path, options: &Options) -> Result<[u8; 32], ManifestError> {
    let name = path.to_str().ok_or_else(|| ManifestError::Name {
        path: path.to_string_lossy().into_owned(),
        reason: "is not UTF-8",
    })?;
    let here = Folder::workspace(Path::new("."))?;
    let kind = here
        .kind(name)
        .map_err(|errno| ManifestError::io("open", name, errno))?;
    if let Some(kind) = crate::worker::special(kind) {
        return Err(ManifestError::Special {
            path: name.to_owned(),
            kind,
        });
    }
    job::hash_one(Task::files(here, name), *options)
}

/// A file that several threads may read.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) path: String,
    pub(crate) pieces: Pieces,
    fd: OwnedFd,
    before: Stat,
}

/// What the first look at a file leads to.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It is hashed.
    Done(Hash),
    /// It is to be hashed in pieces.
    Large(Box<Large>),
}

/// Hashes a file, or opens it to be hashed in pieces.
pub(crate) fn open(
    folder: &Folder,
    name: &str,
    path: &str,
    buffer: &mut [u8],
) -> Result<Opened, ManifestError> {
    let (fd, before) = folder.open_file(name, path)?;
    let length = length(&before);
    if length >= LARGE {
        return Ok(Opened::Large(Box::new(Large {
            path: path.to_owned(),
            pieces: Pieces::new(length),
            fd,
            before,
        })));
    }
    at_once(&fd, &before, path, buffer).map(Opened::Done)
}

/// Hashes a file that one thread reads.
fn at_once(
    fd: &OwnedFd,
    before: &Stat,
    path: &str,
    buffer: &mut [u8],
) -> Result<Hash, ManifestError> {
    let length = length(before);
    // One byte more is asked for than should be there: a read that comes back short has seen the end.
    let whole = usize::try_from(length + 1)
        .ok()
        .and_then(|length| buffer.get_mut(..length));
    match whole {
        Some(space) => {
            let filled = fill(fd, space, 1, 0, path)?;
            if filled + 1 != space.len() {
                return Err(changed(path));
            }
            still_the_same(fd, before, path)?;
            Ok(blake3::hash(space.get(..filled).unwrap_or_default()))
        }
        None => {
            let mut hasher = Hasher::new();
            let read = update(&mut hasher, fd, 0, length + 1, buffer, path)?;
            if read != length {
                return Err(changed(path));
            }
            still_the_same(fd, before, path)?;
            Ok(hasher.finalize())
        }
    }
}

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

impl Large {
    /// Hashes pieces until none is left; the thread that ends the last one gets the file's hash.
    pub(crate) fn work(&self, buffer: &mut [u8]) -> Result<Option<Hash>, ManifestError> {
        let mut whole = None;
        while let Some(piece) = self.pieces.take() {
            let mut hasher = piece.hasher();
            let read = update(
                &mut hasher,
                &self.fd,
                piece.offset,
                piece.length,
                buffer,
                &self.path,
            )?;
            if read != piece.length {
                return Err(changed(&self.path));
            }
            if let Some(hash) = self.pieces.put(piece, pieces::value(&hasher)) {
                still_the_same(&self.fd, &self.before, &self.path)?;
                whole = Some(hash);
            }
        }
        Ok(whole)
    }
}

/// Feeds a range of a file to a hasher, and tells how much of it there was.
fn update(
    hasher: &mut Hasher,
    fd: &OwnedFd,
    offset: u64,
    length: u64,
    buffer: &mut [u8],
    path: &str,
) -> Result<u64, ManifestError> {
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).unwrap_or(usize::MAX);
        let space = buffer.len().min(wanted);
        let space = buffer.get_mut(..space).unwrap_or_default();
        let filled = fill(fd, space, 0, offset + done, path)?;
        hasher.update(space.get(..filled).unwrap_or_default());
        done += filled as u64;
        if filled < space.len() {
            break;
        }
    }
    Ok(done)
}

/// Reads until the space is full but for `spare` bytes, or the file ends.
///
/// A read may come back short for other reasons than the end, so more is asked for. At least one
/// read is made: some file systems have files that say they are empty and are not.
fn fill(
    fd: &OwnedFd,
    space: &mut [u8],
    spare: usize,
    offset: u64,
    path: &str,
) -> Result<usize, ManifestError> {
    let mut filled = 0;
    while let Some(rest) = space.get_mut(filled..) {
        if rest.is_empty() || (filled > 0 && rest.len() <= spare) {
            break;
        }
        match pread(fd, rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ManifestError::io("read", path, errno)),
        }
    }
    Ok(filled)
}

/// Refuses a file that is not what it was before it was read. The time of its last change counts
/// too, since that of its content can be set back.
fn still_the_same(fd: &OwnedFd, before: &Stat, path: &str) -> Result<(), ManifestError> {
    let now = fstat(fd).map_err(|errno| ManifestError::io("examine", path, errno))?;
    if state(&now) == state(before) {
        Ok(())
    } else {
        Err(changed(path))
    }
}

fn state(stat: &Stat) -> impl Eq {
    (
        (stat.st_dev, stat.st_ino, stat.st_size),
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    )
}

fn changed(path: &str) -> ManifestError {
    ManifestError::Changed {
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests;

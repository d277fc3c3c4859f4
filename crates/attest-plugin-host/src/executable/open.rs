//! Opens a program once, hashes what was opened, and holds it.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use bounded::text::visible_bytes;
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::fs::{accessat, fstat, openat, readlinkat, stat};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::process::getpid;

use super::memory::{NoCopy, each_chunk, sealed_copy};
use super::{Executable, ExecutableError, Held, MAX_BYTES, hold};
use crate::declare::Digest;

/// The longest interpreter line that the system reads.
const INTERPRETER: usize = 256;

/// What a program is opened in; tests put other things in the places of the system's.
pub(super) struct Surroundings {
    pub(super) proc: PathBuf,
    pub(super) limit: u64,
    /// Decides on the opened file, by its path in `/proc` and its real path.
    pub(super) look: fn(&OwnedFd, &Path, &Path) -> Held,
    /// Called between the hash of a file in place and the second look at it.
    pub(super) hashed: fn(&OwnedFd),
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            limit: MAX_BYTES,
            look: hold::look,
            hashed: |_| {},
        }
    }
}

pub(super) fn open(path: &Path, around: &Surroundings) -> Result<Executable, ExecutableError> {
    let opening = Opening { path, around };
    let (file, here) = opening.file()?;
    let real = readlinkat(CWD, &here, Vec::new())
        .map_err(|errno| opening.failed("find the real path of", errno))?;
    let real = PathBuf::from(OsString::from_vec(real.into_bytes()));
    let (descriptor, digest, held) = match (around.look)(&file, &here, &real) {
        Held::InPlace => match opening.hash_still(&file)? {
            Some(digest) => (file, digest, Held::InPlace),
            None => opening.copy(&file)?,
        },
        Held::Copy => opening.copy(&file)?,
    };
    Ok(Executable {
        path: real,
        program: opening.shown(&descriptor)?,
        digest,
        interpreter: opening.interpreter(&descriptor)?,
        held,
        _descriptor: descriptor,
    })
}

#[derive(Clone, Copy)]
struct Opening<'a> {
    path: &'a Path,
    around: &'a Surroundings,
}

impl Opening<'_> {
    /// Opens the file for reading, and says where `/proc` shows it.
    fn file(self) -> Result<(OwnedFd, PathBuf), ExecutableError> {
        let path = || self.path.to_owned();
        // Opening for reading could block or do something; this does neither.
        let looked_at = openat(
            CWD,
            self.path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let looked_at = looked_at.map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => ExecutableError::NotFound { path: path() },
            errno => self.failed("open", errno),
        })?;
        let found = self.stat(&looked_at)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(ExecutableError::Directory { path: path() }),
            _ => return Err(ExecutableError::NotARegularFile { path: path() }),
        }
        if u64::try_from(found.st_size).is_ok_and(|size| size > self.around.limit) {
            return Err(ExecutableError::TooLarge { path: path() });
        }
        let reading = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = self.again(&looked_at, reading)?;
        let here = self.shown(&file)?;
        accessat(CWD, &here, Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|_| ExecutableError::NotExecutable { path: path() })?;
        Ok((file, here))
    }

    /// Opens what a descriptor holds once more.
    fn again(self, descriptor: &OwnedFd, flags: OFlags) -> Result<OwnedFd, ExecutableError> {
        let here = self.shown(descriptor)?;
        openat(CWD, &here, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM => ExecutableError::NotReadable {
                path: self.path.to_owned(),
            },
            errno => self.failed("open", errno),
        })
    }

    /// Says where `/proc` shows a descriptor to other processes, once it is certain that it does.
    fn shown(self, descriptor: &OwnedFd) -> Result<PathBuf, ExecutableError> {
        let here = self
            .around
            .proc
            .join(getpid().as_raw_nonzero().to_string())
            .join("fd")
            .join(descriptor.as_raw_fd().to_string());
        let held = self.stat(descriptor)?;
        // Another namespace's `/proc` shows another process under this number.
        match stat(&here) {
            Ok(seen) if (seen.st_dev, seen.st_ino) == (held.st_dev, held.st_ino) => Ok(here),
            Ok(_) | Err(_) => Err(ExecutableError::NoProc {
                path: self.path.to_owned(),
            }),
        }
    }

    /// Hashes the file; none if it changed meanwhile.
    fn hash_still(self, file: &OwnedFd) -> Result<Option<Digest>, ExecutableError> {
        let before = self.stat(file)?;
        let digest = self.hash(file)?;
        (self.around.hashed)(file);
        Ok((state(&before) == state(&self.stat(file)?)).then_some(digest))
    }

    fn hash(self, file: &OwnedFd) -> Result<Digest, ExecutableError> {
        let mut hasher = blake3::Hasher::new();
        each_chunk(file, |bytes| {
            hasher.update(bytes);
            Ok::<(), Errno>(())
        })
        .map_err(|errno| self.failed("read", errno))?;
        Ok(Digest::from_bytes(hasher.finalize().into()))
    }

    /// Copies the file into memory, seals the copy, and only then hashes it.
    fn copy(self, file: &OwnedFd) -> Result<(OwnedFd, Digest, Held), ExecutableError> {
        let path = || self.path.to_owned();
        let copy = sealed_copy(file, self.around.limit).map_err(|error| match error {
            NoCopy::Forbidden => ExecutableError::NoPrograms { path: path() },
            NoCopy::TooLarge => ExecutableError::TooLarge { path: path() },
            NoCopy::Read(errno) => self.failed("read", errno),
            NoCopy::Write(errno) => self.failed("copy into memory", errno),
        })?;
        let digest = self.hash(&copy)?;
        // The system starts nothing that somebody holds open for writing.
        let copy = self.again(&copy, OFlags::RDONLY | OFlags::CLOEXEC)?;
        Ok((copy, digest, Held::Copy))
    }

    fn interpreter(self, held: &OwnedFd) -> Result<Option<String>, ExecutableError> {
        let mut buffer = [0; INTERPRETER];
        let count = retry_on_intr(|| pread(held, buffer.as_mut_slice(), 0))
            .map_err(|errno| self.failed("read", errno))?;
        let line = buffer
            .get(..count)
            .and_then(|head| head.strip_prefix(b"#!"));
        Ok(line.map(|line| {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            visible_bytes(line.trim_ascii())
        }))
    }

    fn stat(self, descriptor: &OwnedFd) -> Result<Stat, ExecutableError> {
        fstat(descriptor).map_err(|errno| self.failed("examine", errno))
    }

    fn failed(self, action: &'static str, errno: Errno) -> ExecutableError {
        ExecutableError::Io {
            action,
            path: self.path.to_owned(),
            source: errno.into(),
        }
    }
}

/// What changes with the content of a file, as far as the system tells.
fn state(stat: &Stat) -> impl PartialEq + use<> {
    (
        stat.st_size,
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    )
}

#[cfg(test)]
mod tests;

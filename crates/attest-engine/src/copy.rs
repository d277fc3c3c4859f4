//! Copies parts of a workspace into private folders.
//!
//! Everything is opened from the descriptor of the folder above it and no link is followed, so
//! whatever is moved meanwhile, only the workspace is read. File systems that share blocks do so.
//! Times are not copied: a build that depends on them is not reproducible, and should be seen so.

use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dev, Dir, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, mkdirat, openat,
    readlinkat, statat, symlinkat,
};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

/// Deepest nesting; each level holds two descriptors.
const DEPTH: usize = 100;
/// How much of a file is copied before the caller's wish to stop is looked at.
#[cfg(target_os = "linux")]
const PIECE: usize = 64 << 20;

/// Says why a copy could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A FIFO, socket or device; it was not opened.
    #[error("`{path}` is a {kind}, which cannot be copied; remove it or put it elsewhere")]
    Special {
        /// Its path below the workspace.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// Something became something else.
    #[error("`{path}` changed while it was copied")]
    Changed {
        /// Its path below the workspace.
        path: String,
    },
    /// More levels than are walked.
    #[error("`{path}` lies deeper than {DEPTH} folders")]
    TooDeep {
        /// Its path below the workspace.
        path: String,
    },
    /// The operating system refused.
    #[error("cannot copy `{path}`")]
    Io {
        /// Its path below the workspace.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The caller wishes no more.
    #[error("cancelled")]
    Cancelled,
}

/// One copy under way.
#[derive(Debug)]
pub(crate) struct Copier<'a> {
    /// Names that are left out wherever they stand.
    leave_out: &'a [&'a str],
    /// The folder that holds the copy, should it lie in what is copied.
    target: Option<(Dev, u64)>,
    cancel: &'a CancellationToken,
    /// The links that lead out of the workspace; they are left out.
    pub(crate) links_left_out: Vec<PathBuf>,
    path: PathBuf,
    depth: usize,
}

impl<'a> Copier<'a> {
    pub(crate) fn new(leave_out: &'a [&'a str], cancel: &'a CancellationToken) -> Self {
        Self {
            leave_out,
            target: None,
            cancel,
            links_left_out: Vec::new(),
            path: PathBuf::new(),
            depth: 0,
        }
    }

    /// Leaves the folder `target` out, which the copies are made in.
    pub(crate) fn without(mut self, target: &Path) -> Self {
        self.target = statat(CWD, target, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|found| identity(&found));
        self
    }

    /// Copies all that is in the folder `from` into the folder `to`, which is there.
    pub(crate) fn whole(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        let from = self.at(open_folder(CWD.as_fd(), from.as_os_str()))?;
        let to = self.at(open_folder(CWD.as_fd(), to.as_os_str()))?;
        self.folder(&from, &to)
    }

    /// Copies what is at `path` below `from`, with the folders above it, into the folder `to`.
    pub(crate) fn one(&mut self, from: &Path, to: &Path, path: &Path) -> Result<(), CopyError> {
        let mut from = self.at(open_folder(CWD.as_fd(), from.as_os_str()))?;
        let mut to = self.at(open_folder(CWD.as_fd(), to.as_os_str()))?;
        self.path = PathBuf::new();
        let mut parts = path.components().peekable();
        while let Some(Component::Normal(part)) = parts.next() {
            if parts.peek().is_none() {
                return self.entry(&from, &to, part);
            }
            self.path.push(part);
            match mkdirat(&to, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.refused(errno)),
            }
            from = self.at(open_folder(from.as_fd(), part))?;
            to = self.at(open_folder(to.as_fd(), part))?;
            let found = self.at(fstat(&from))?;
            self.at(fchmod(&to, permissions(&found) | Mode::RWXU))?;
        }
        Err(self.refused(Errno::INVAL))
    }

    fn folder(&mut self, from: &OwnedFd, to: &OwnedFd) -> Result<(), CopyError> {
        if self.depth >= DEPTH {
            return Err(CopyError::TooDeep { path: self.shown() });
        }
        let mut names = Vec::new();
        for entry in self.at(Dir::read_from(from))? {
            let entry = self.at(entry)?;
            if !is_dots(entry.file_name()) {
                names.push(entry.file_name().to_owned());
            }
        }
        // In one order, so that two copies of the same tree are made the same way.
        names.sort_unstable();
        self.depth += 1;
        for name in &names {
            let name = OsStr::from_bytes(name.to_bytes());
            if !self.leave_out.iter().any(|left| OsStr::new(left) == name) {
                self.entry(from, to, name)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> Result<(), CopyError> {
        if self.cancel.is_cancelled() {
            return Err(CopyError::Cancelled);
        }
        self.path.push(name);
        let found = self.at(statat(from, name, AtFlags::SYMLINK_NOFOLLOW))?;
        match file_type(&found) {
            FileType::RegularFile => self.file(from, to, name)?,
            FileType::Symlink => self.link(from, to, name)?,
            FileType::Directory if self.target == Some(identity(&found)) => {}
            FileType::Directory => {
                self.at(mkdirat(to, name, Mode::RWXU))?;
                let inner = self.at(open_folder(from.as_fd(), name))?;
                let copy = self.at(open_folder(to.as_fd(), name))?;
                self.folder(&inner, &copy)?;
                self.at(fchmod(&copy, permissions(&found)))?;
            }
            other => {
                return Err(CopyError::Special {
                    path: self.shown(),
                    kind: kind(other),
                });
            }
        }
        self.path.pop();
        Ok(())
    }

    fn file(&self, from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> Result<(), CopyError> {
        // Without NONBLOCK the opening of a FIFO that came here meanwhile would wait.
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = self.at(openat(from, name, read, Mode::empty()))?;
        let found = self.at(fstat(&source))?;
        if file_type(&found) != FileType::RegularFile {
            return Err(CopyError::Changed { path: self.shown() });
        }
        let write =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = self.at(openat(to, name, write, Mode::RUSR | Mode::WUSR))?;
        self.content(&source, &copy)?;
        self.at(fchmod(&copy, permissions(&found)))
    }

    fn content(&self, source: &OwnedFd, copy: &OwnedFd) -> Result<(), CopyError> {
        if self.in_kernel(source, copy)? {
            return Ok(());
        }
        self.by_hand(source, copy)
    }

    /// Lets the system copy, which shares blocks where it can; false where it copied nothing.
    #[cfg(target_os = "linux")]
    fn in_kernel(&self, source: &OwnedFd, copy: &OwnedFd) -> Result<bool, CopyError> {
        let mut any = false;
        loop {
            if self.cancel.is_cancelled() {
                return Err(CopyError::Cancelled);
            }
            match rustix::fs::copy_file_range(source, None, copy, None, PIECE) {
                Ok(count) if count > 0 => any = true,
                // Some file systems say "nothing" of files that do have content.
                Ok(_) => return Ok(any),
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM)
                    if !any =>
                {
                    return Ok(false);
                }
                Err(errno) => return Err(self.refused(errno)),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the same shape as on Linux"
    )]
    fn in_kernel(&self, _source: &OwnedFd, _copy: &OwnedFd) -> Result<bool, CopyError> {
        Ok(false)
    }

    fn by_hand(&self, source: &OwnedFd, copy: &OwnedFd) -> Result<(), CopyError> {
        let own = |fd: &OwnedFd| fd.try_clone().map_err(|error| self.failed(error));
        let mut source = fs_err::File::from_parts(own(source)?.into(), &self.path);
        let mut copy = fs_err::File::from_parts(own(copy)?.into(), &self.path);
        let mut piece = vec![0; 1 << 16];
        loop {
            if self.cancel.is_cancelled() {
                return Err(CopyError::Cancelled);
            }
            let count = source.read(&mut piece).map_err(|e| self.failed(e))?;
            if count == 0 {
                return Ok(());
            }
            let read = piece.get(..count).unwrap_or_default();
            copy.write_all(read).map_err(|e| self.failed(e))?;
        }
    }

    /// Copies a link that stays inside. One that leads out would let the copy reach what it is
    /// meant to stand apart from, also for writing.
    fn link(&mut self, from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> Result<(), CopyError> {
        let target = self.at(readlinkat(from, name, Vec::new()))?;
        let leads = Path::new(OsStr::from_bytes(target.to_bytes()));
        if stays_inside(self.path.parent().unwrap_or(Path::new("")), leads) {
            self.at(symlinkat(&target, to, name))
        } else {
            self.links_left_out.push(self.path.clone());
            Ok(())
        }
    }

    fn at<T>(&self, result: Result<T, Errno>) -> Result<T, CopyError> {
        result.map_err(|errno| self.refused(errno))
    }

    fn refused(&self, errno: Errno) -> CopyError {
        match errno {
            // What was listed as a file or folder is a link now.
            Errno::LOOP => CopyError::Changed { path: self.shown() },
            errno => self.failed(errno.into()),
        }
    }

    fn failed(&self, source: io::Error) -> CopyError {
        CopyError::Io {
            path: self.shown(),
            source,
        }
    }

    fn shown(&self) -> String {
        if self.path.as_os_str().is_empty() {
            return ".".to_owned();
        }
        bounded::text::visible_bytes(self.path.as_os_str().as_bytes())
    }
}

fn open_folder(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Follows a target word by word from the folder `from`, which is relative to the workspace.
fn stays_inside(from: &Path, target: &Path) -> bool {
    let mut depth = from.components().count();
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return false,
            },
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// A declared path without the dots that change nothing; empty for the workspace itself.
pub(crate) fn plain(declared: &str) -> PathBuf {
    let parts = Path::new(declared).components();
    parts
        .filter(|part| !matches!(part, Component::CurDir))
        .collect()
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn identity(found: &Stat) -> (Dev, u64) {
    (found.st_dev, found.st_ino)
}

fn file_type(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn permissions(found: &Stat) -> Mode {
    let bits: RawMode = found.st_mode & 0o777;
    Mode::from_raw_mode(bits)
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    }
}

#[cfg(test)]
mod tests;

//! Directories and files, opened one component at a time so that no link redirects an opening.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use plugin_archive::{Budget, MODE_MASK};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::ReadError;

/// The directory of a package, by its real path.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    dir: OwnedFd,
}

/// Which directory it is, whatever path leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(rustix::fs::Dev, u64);

/// The content of a file and its low nine permission bits.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

impl Root {
    /// Links on the way to the package are followed once, here.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |source| ReadError::Root {
            path: path.to_owned(),
            source,
        };
        let real = std::fs::canonicalize(path).map_err(failed)?;
        let dir =
            openat(CWD, &real, DIRECTORY, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        Ok(Self { path: real, dir })
    }

    pub(crate) fn directory(&self) -> Result<OwnedFd, Errno> {
        open_directory(&self.dir, Path::new("."))
    }

    /// Opens the directory that holds a real path below the root, and tells the last name in it;
    /// the root is in itself.
    pub(crate) fn holder<'a>(&self, real: &'a Path) -> Result<(OwnedFd, &'a Path), Errno> {
        let mut dir = self.directory()?;
        let mut components = real.components().peekable();
        while let Some(Component::Normal(name)) = components.next() {
            if components.peek().is_none() {
                return Ok((dir, Path::new(name)));
            }
            dir = open_directory(&dir, Path::new(name))?;
        }
        Ok((dir, Path::new(".")))
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

// without NONBLOCK a FIFO that took the place of a file would be waited for
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens a directory by its name in another one.
pub(crate) fn open_directory(parent: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    openat(parent, name, DIRECTORY, Mode::empty())
}

/// Looks at an entry itself, never at what a link points to.
pub(crate) fn look(parent: impl AsFd, name: &Path) -> Result<FileType, Errno> {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| file_type(&stat))
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn identity(dir: impl AsFd) -> Result<Identity, Errno> {
    let stat = fstat(dir)?;
    Ok(Identity(stat.st_dev, stat.st_ino))
}

/// Says what something is that is read nowhere, with an article.
pub(crate) fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Unknown => {
            "no file"
        }
    }
}

/// Reads a file whole. Its length is taken from the budget first, and holds: whatever is longer or
/// shorter in the end changed meanwhile.
pub(crate) fn read_file(
    parent: impl AsFd,
    name: &Path,
    shown: &str,
    budget: &mut Budget,
) -> Result<Content, ReadError> {
    let opened = openat(parent, name, FILE, Mode::empty());
    let opened = opened.map_err(|errno| ReadError::io("open", shown, errno))?;
    let stat = fstat(&opened).map_err(|errno| ReadError::io("examine", shown, errno))?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(ReadError::changed(shown));
    }
    let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    budget.file(shown, length)?;
    let bytes = exactly(File::from(opened), length, shown)?;
    let mode = Mode::from_raw_mode(stat.st_mode).bits() & MODE_MASK;
    Ok(Content { bytes, mode })
}

fn exactly(file: impl Read, length: u64, shown: &str) -> Result<Vec<u8>, ReadError> {
    let read = |source| ReadError::io("read", shown, source);
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    // one more, so that the end is seen without growing the buffer
    bytes
        .try_reserve_exact(wanted.saturating_add(1))
        .map_err(|error| read(std::io::Error::new(std::io::ErrorKind::OutOfMemory, error)))?;
    file.take(length.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(read)?;
    if bytes.len() != wanted {
        return Err(ReadError::changed(shown));
    }
    Ok(bytes)
}

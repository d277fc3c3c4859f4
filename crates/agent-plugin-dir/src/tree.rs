//! Directories and files, opened one component at a time so that no link redirects an opening.

use std::io;
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity(Stat);

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.0.st_dev == other.0.st_dev && self.0.st_ino == other.0.st_ino
    }
}

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

#[cfg_attr(
    target_os = "linux",
    expect(
        clippy::useless_conversion,
        reason = "the width of a mode differs between systems"
    )
)]
fn permissions(stat: &Stat) -> u32 {
    u32::from(Mode::from_raw_mode(stat.st_mode).bits())
}

pub(crate) fn identity(dir: impl AsFd) -> Result<Identity, Errno> {
    fstat(dir).map(Identity)
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
    Ok(Content {
        bytes: exactly(&opened, length, shown)?,
        mode: permissions(&stat) & MODE_MASK,
    })
}

/// Reads to the end, which is where it must be.
fn exactly(file: &OwnedFd, length: u64, shown: &str) -> Result<Vec<u8>, ReadError> {
    let failed = |source| ReadError::io("read", shown, source);
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    // one more, so that a longer file is seen without a larger buffer
    bytes
        .try_reserve_exact(wanted.saturating_add(1))
        .map_err(|error| failed(io::Error::new(io::ErrorKind::OutOfMemory, error)))?;
    while bytes.len() <= wanted {
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    if bytes.len() != wanted {
        return Err(ReadError::changed(shown));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use plugin_archive::Limits;

    use super::*;

    #[test]
    fn every_kind_of_special_file_is_named() {
        // a device can be made by root alone, so no directory of the tests has one
        assert_eq!(kind(FileType::CharacterDevice), "a device");
        assert_eq!(kind(FileType::BlockDevice), "a device");
        assert_eq!(kind(FileType::Fifo), "a FIFO");
        assert_eq!(kind(FileType::Socket), "a socket");
        assert_eq!(kind(FileType::Unknown), "no file");
    }

    #[test]
    fn what_became_a_link_after_it_was_looked_at_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("real")).unwrap();
        fs_err::write(folder.path().join("real/file"), "x").unwrap();
        symlink("real", folder.path().join("d")).unwrap();
        symlink("real/file", folder.path().join("f")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let dir = root.directory().unwrap();
        assert!(open_directory(&dir, Path::new("real")).is_ok());
        assert!(open_directory(&dir, Path::new("d")).is_err());
        assert!(root.holder(Path::new("real/file")).is_ok());
        assert!(root.holder(Path::new("d/file")).is_err());
        let mut budget = Budget::new(&Limits::default());
        let error = read_file(&dir, Path::new("f"), "f", &mut budget).unwrap_err();
        assert!(matches!(error, ReadError::Io { action: "open", .. }));
    }

    #[test]
    fn what_became_a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("f"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let dir = Root::open(folder.path()).unwrap().directory().unwrap();
        let mut budget = Budget::new(&Limits::default());
        let error = read_file(&dir, Path::new("f"), "f", &mut budget).unwrap_err();
        assert!(matches!(error, ReadError::Changed { path } if path == "f"));
    }

    #[test]
    fn a_file_that_became_longer_or_shorter_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for (length, content) in [(3, "abc"), (2, "abc"), (4, "abc"), (0, "a"), (1, "")] {
            fs_err::write(&path, content).unwrap();
            let file = openat(CWD, &path, FILE, Mode::empty()).unwrap();
            match exactly(&file, length, "f") {
                Ok(bytes) => assert_eq!((bytes, length), (content.into(), 3)),
                Err(error) => {
                    assert!(matches!(error, ReadError::Changed { .. }) && length != 3);
                }
            }
        }
    }
}

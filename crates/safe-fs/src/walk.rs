//! Opens a path component by component, so that no symbolic link can redirect it.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, statat},
    io::Errno,
};

use crate::SafeFsError;

/// A folder reached without a link, and the name of an entry that may or may not exist in it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) parent: OwnedFd,
    pub(crate) name: OsString,
    /// The whole path, absolute.
    pub(crate) path: PathBuf,
}

impl Entry {
    /// Looks at the entry itself, never at what a link points to.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, SafeFsError> {
        match statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(SafeFsError::io("examine", &self.path, errno)),
        }
    }
}

/// What a descriptor of a folder is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Only to reach entries in it, which needs no permission to list the folder.
    Pass,
    /// To list or to synchronise it.
    Read,
}

impl Purpose {
    fn flags(self) -> OFlags {
        let common = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self {
            #[cfg(target_os = "linux")]
            Self::Pass => common | OFlags::PATH,
            #[cfg(not(target_os = "linux"))]
            Self::Pass => common | OFlags::RDONLY,
            Self::Read => common | OFlags::RDONLY,
        }
    }
}

/// Opens the folder that holds `path`, refusing a symbolic link in any component but the last.
pub(crate) fn entry(path: &Path) -> Result<Entry, SafeFsError> {
    let absolute = absolute(path)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it has no last component",
        });
    };
    let fd = open_dir(parent, Purpose::Pass)?;
    Ok(Entry {
        parent: fd,
        name: name.to_owned(),
        path: absolute,
    })
}

/// Opens a folder, refusing a symbolic link in every component.
pub(crate) fn open_dir(path: &Path, purpose: Purpose) -> Result<OwnedFd, SafeFsError> {
    let absolute = absolute(path)?;
    let mut reached = PathBuf::from("/");
    let mut current = openat(CWD, "/", Purpose::Pass.flags(), Mode::empty())
        .map_err(|errno| SafeFsError::io("open", &reached, errno))?;
    for component in absolute.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        reached.push(name);
        current = open_child(&current, name, &reached, path, Purpose::Pass)?;
    }
    if purpose == Purpose::Pass {
        return Ok(current);
    }
    openat(&current, ".", purpose.flags(), Mode::empty())
        .map_err(|errno| SafeFsError::io("open", &reached, errno))
}

fn open_child(
    parent: &OwnedFd,
    name: &OsStr,
    reached: &Path,
    whole: &Path,
    purpose: Purpose,
) -> Result<OwnedFd, SafeFsError> {
    match openat(parent, name, purpose.flags(), Mode::empty()) {
        Ok(fd) => Ok(fd),
        // Which of the two a link answers with differs between systems and flags.
        Err(errno @ (Errno::NOTDIR | Errno::LOOP)) => {
            Err(match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if file_type(&stat) == FileType::Symlink => SafeFsError::SymbolicLink {
                    path: whole.to_owned(),
                    link: reached.to_owned(),
                },
                Ok(_) => SafeFsError::NotADirectory {
                    path: reached.to_owned(),
                },
                Err(_) => SafeFsError::io("open", reached, errno),
            })
        }
        Err(errno) => Err(SafeFsError::io("open", reached, errno)),
    }
}

/// The kind of what `stat` describes.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The permission bits, set-id and sticky bits included.
#[cfg_attr(
    target_os = "linux",
    expect(
        clippy::useless_conversion,
        reason = "the width of a mode differs between systems"
    )
)]
pub(crate) fn permissions(stat: &Stat) -> u32 {
    u32::from(Mode::from_raw_mode(stat.st_mode).bits())
}

fn absolute(path: &Path) -> Result<PathBuf, SafeFsError> {
    let unusable = |reason| SafeFsError::UnusablePath {
        path: path.to_owned(),
        reason,
    };
    if path.as_os_str().is_empty() {
        return Err(unusable("it is empty"));
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(unusable("it contains a NUL byte"));
    }
    if path
        .components()
        .any(|component| component == Component::ParentDir)
    {
        return Err(unusable("it contains `..`"));
    }
    std::path::absolute(path)
        .map_err(|source| SafeFsError::io("find the current directory for", path, source))
}

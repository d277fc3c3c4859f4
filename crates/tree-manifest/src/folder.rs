//! Folders held open, and the declared paths found from them without following a link.

use std::{os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};

use attest_receipt::declared::Declared;

use crate::error::{ManifestError, Role};

/// A folder that was reached without a link, below the workspace.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) fd: OwnedFd,
    /// Below the workspace; empty for the workspace itself.
    pub(crate) path: String,
    /// Components of the path.
    pub(crate) depth: usize,
}

/// What stands at a declared path.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) parent: Arc<Folder>,
    pub(crate) name: String,
    pub(crate) kind: FileType,
}

impl Folder {
    /// Opens the workspace; the links that lead to it are the caller's.
    pub(crate) fn workspace(path: &Path) -> Result<Arc<Self>, ManifestError> {
        let flags = pass_flags() - OFlags::NOFOLLOW;
        let fd =
            openat(CWD, path, flags, Mode::empty()).map_err(|errno| ManifestError::Workspace {
                path: path.to_owned(),
                source: errno.into(),
            })?;
        Ok(Arc::new(Self {
            fd,
            path: String::new(),
            depth: 0,
        }))
    }

    /// Opens a folder in this one, to be listed.
    pub(crate) fn open(&self, name: &str) -> Result<Self, ManifestError> {
        let path = self.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(self.child(fd, path)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(ManifestError::Changed { path }),
            Err(errno) => Err(ManifestError::io("open", &path, errno)),
        }
    }

    /// Opens a regular file in this one and tells its size and times.
    pub(crate) fn open_file(
        &self,
        name: &str,
        path: &str,
    ) -> Result<(OwnedFd, Stat), ManifestError> {
        // Without NONBLOCK a FIFO that took the file's place would hold the open for ever.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let changed = || ManifestError::Changed {
            path: path.to_owned(),
        };
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::LOOP | Errno::NXIO => changed(),
            errno => ManifestError::io("open", path, errno),
        })?;
        let stat = fstat(&fd).map_err(|errno| ManifestError::io("examine", path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            Ok((fd, stat))
        } else {
            Err(changed())
        }
    }

    /// The path of an entry, below the workspace.
    pub(crate) fn join(&self, name: &str) -> String {
        if self.path.is_empty() {
            // The workspace is listed as its own entry.
            return if name == "." { "" } else { name }.to_owned();
        }
        let mut path = String::with_capacity(self.path.len() + 1 + name.len());
        path.push_str(&self.path);
        path.push('/');
        path.push_str(name);
        path
    }

    /// Looks at an entry itself, never at what it points to.
    pub(crate) fn kind(&self, name: &str) -> Result<FileType, Errno> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    /// Finds a declared path.
    pub(crate) fn find(
        self: &Arc<Self>,
        declared: &Declared<'_>,
        role: Role,
    ) -> Result<Found, ManifestError> {
        let missing = || ManifestError::Missing {
            role,
            path: declared.text.to_owned(),
        };
        let through = |link: String| ManifestError::ThroughLink {
            role,
            path: declared.text.to_owned(),
            link,
        };
        let (above, name) = match declared.path.rsplit_once('/') {
            Some((above, name)) => (Some(above), name),
            None if declared.path.is_empty() => (None, "."),
            None => (None, declared.path),
        };
        let mut parent = Arc::clone(self);
        for part in above.into_iter().flat_map(|above| above.split('/')) {
            let path = parent.join(part);
            match openat(&parent.fd, part, pass_flags(), Mode::empty()) {
                Ok(fd) => parent = Arc::new(parent.child(fd, path)),
                Err(Errno::NOENT) => return Err(missing()),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return Err(match parent.kind(part) {
                        Ok(FileType::Symlink) => through(path),
                        Ok(FileType::Directory) => ManifestError::Changed { path },
                        _ => missing(),
                    });
                }
                Err(errno) => return Err(ManifestError::io("open", &path, errno)),
            }
        }
        let kind = match parent.kind(name) {
            Ok(kind) => kind,
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(missing()),
            Err(errno) => return Err(ManifestError::io("examine", declared.path, errno)),
        };
        match kind {
            FileType::Symlink if declared.folder => Err(through(declared.path.to_owned())),
            FileType::RegularFile if declared.folder => Err(missing()),
            _ => Ok(Found {
                parent,
                name: name.to_owned(),
                kind,
            }),
        }
    }

    fn child(&self, fd: OwnedFd, path: String) -> Self {
        let depth = if path.is_empty() { 0 } else { self.depth + 1 };
        Self { fd, path, depth }
    }
}

/// To reach entries in a folder, which needs no permission to list it.
fn pass_flags() -> OFlags {
    let common = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    return common | OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    return common | OFlags::RDONLY;
}

//! Replaces a file as a whole: a reader sees the old bytes or the new ones, also after a crash.

use std::{ffi::OsString, io::Write, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RawMode, fchmod, fsync, openat, renameat, unlinkat},
    io::Errno,
};

use crate::{
    SafeFsError, left_over,
    lock::{Taken, is_named, try_lock},
    temp_dir::random_hex,
};

/// Writes `bytes` to `path` with exactly the permission bits of `mode`: a temporary file beside
/// it, fsync, rename, fsync of the folder. A symbolic link at `path` is replaced, not followed.
///
/// # Errors
///
/// The folder is missing or not writable, or a folder stands at `path`. The temporary file is
/// removed then, and what stood at `path` is unchanged.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), SafeFsError> {
    let Some(name) = path.file_name() else {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it has no last component",
        });
    };
    let parent_path = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent_path, flags, Mode::empty())
        .map_err(|errno| SafeFsError::io("open", parent_path, errno))?;
    let (temporary, fd) = create_locked(&parent, path)?;

    // The file stays open, and so locked, until it has its name.
    let written = write_new(fd, path, bytes, mode).and_then(|_file| {
        renameat(&parent, &temporary, &parent, name).map_err(|errno| match errno {
            Errno::ISDIR => SafeFsError::NotARegularFile {
                path: path.to_owned(),
            },
            errno => SafeFsError::io("replace", path, errno),
        })
    });
    if let Err(error) = written {
        // The first error is the one to report; the left-over name is unique and harmless.
        unlinkat(&parent, &temporary, AtFlags::empty()).ok();
        return Err(error);
    }
    fsync(&parent).map_err(|errno| SafeFsError::io("synchronise", parent_path, errno))
}

/// Creates the temporary file and locks it, which tells others that its writer lives.
fn create_locked(parent: &OwnedFd, path: &Path) -> Result<(OsString, OwnedFd), SafeFsError> {
    let failed = |errno| SafeFsError::io("write", path, errno);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let name = OsString::from(left_over::name(&random_hex()?));
        let fd = openat(parent, &name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        // Before it was locked somebody may have taken it for left over. Where there are no locks
        // nobody gets one, so nothing is swept and the file is safe.
        match try_lock(&fd) {
            Ok(Taken::Yes) if !is_named(&fd, parent, &name) => {}
            Ok(Taken::Yes) | Err(_) => return Ok((name, fd)),
            Ok(Taken::ByAnother) => {}
        }
    }
}

fn write_new(
    fd: OwnedFd,
    path: &Path,
    bytes: &[u8],
    mode: u32,
) -> Result<fs_err::File, SafeFsError> {
    let failed = |source: std::io::Error| SafeFsError::io("write", path, source);
    let mode =
        RawMode::try_from(mode & 0o7777).map_or(Mode::RUSR | Mode::WUSR, Mode::from_raw_mode);
    fchmod(&fd, mode).map_err(|errno| failed(errno.into()))?;
    let mut file = fs_err::File::from_parts(fd.into(), path);
    file.write_all(bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(file)
}

//! The file that somebody named to be written: an existing one is replaced only if it is a file.

use std::{
    fs::FileType,
    io::{self, ErrorKind},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::{SafeFsError, sweep_left_over, write_atomic};

/// Finds the file that a write to `path` makes or replaces. A symbolic link leads to the file that
/// it names. Whatever is no regular file is refused: a rename over a device or a pipe takes it away
/// from everybody who uses it.
///
/// # Errors
///
/// The folder is missing or not writable, a link leads nowhere, or something else stands there.
/// Nothing is changed.
pub fn writable_target(path: &Path) -> Result<PathBuf, SafeFsError> {
    let Some(name) = path.file_name() else {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it has no last component",
        });
    };
    if is_descriptor(path) {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it leads through an open descriptor; name a file itself",
        });
    }
    let examine = |error| SafeFsError::io("examine", path, error);
    match fs_err::metadata(path) {
        Ok(found) if found.is_file() => {
            let target = fs_err::canonicalize(path).map_err(examine)?;
            let folder = target.parent().unwrap_or(Path::new("/"));
            check_writable(folder)?;
            return Ok(target);
        }
        Ok(found) => return Err(in_the_way(path, kind(found.file_type()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(examine(error)),
    }
    if fs_err::symlink_metadata(path).is_ok() {
        return Err(in_the_way(path, "a symbolic link that leads nowhere"));
    }
    if names_a_folder(path) {
        return Err(SafeFsError::UnusablePath {
            path: path.to_owned(),
            reason: "it ends as that of a folder does; name a file",
        });
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let open = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => {
            let told = io::Error::new(ErrorKind::NotFound, "there is no such folder");
            SafeFsError::io("open", folder, told)
        }
        _ => SafeFsError::io("open", folder, error),
    };
    let folder = fs_err::canonicalize(folder).map_err(open)?;
    check_writable(&folder)?;
    Ok(folder.join(name))
}

/// Writes the file that [`writable_target`] finds, as [`write_atomic`] does. `mode` is that of a new
/// file; one that is replaced keeps its own. What killed writers left beside it is swept.
///
/// # Errors
///
/// As for both; what stood there is unchanged then.
pub fn write_target(path: &Path, bytes: &[u8], mode: u32) -> Result<(), SafeFsError> {
    let target = writable_target(path)?;
    target.parent().map(sweep_left_over);
    let found = fs_err::metadata(&target);
    let mode = found.map_or(mode, |found| found.permissions().mode() & 0o777);
    write_atomic(&target, bytes, mode)
}

/// Whether this can only be a folder: a slash or a dot at the end, which components leave out.
fn names_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

/// Whether this leads through an open descriptor, as `/dev/stderr` does. A rename over what stands
/// behind it would take away what was written there, such as the log of a whole build.
fn is_descriptor(path: &Path) -> bool {
    // As many links as the system follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let here = Path::new(".");
        let folder = if folder == Path::new("") {
            here
        } else {
            folder
        };
        let Ok(folder) = fs_err::canonicalize(folder) else {
            return false;
        };
        if folder.starts_with("/proc") && folder.ends_with("fd") {
            return true;
        }
        match fs_err::read_link(folder.join(name)) {
            Ok(link) => path = folder.join(link),
            Err(_) => return false,
        }
    }
    false
}

fn check_writable(folder: &Path) -> Result<(), SafeFsError> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| SafeFsError::io("write into", folder, errno))
}

fn in_the_way(path: &Path, found: &'static str) -> SafeFsError {
    SafeFsError::InTheWay {
        path: path.to_owned(),
        found,
    }
}

/// Says what something is that is no regular file, with an article.
#[must_use]
pub fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a FIFO"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_char_device() || found.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

//! Private folders and files: made with exactly the right mode, or found and judged, never repaired.

use std::path::Path;

use rustix::{
    fs::{FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat},
    io::Errno,
    process::geteuid,
};

use crate::{
    SafeFsError,
    walk::{self, Purpose},
};

/// Makes sure that `path` is a private folder: creates its last level with mode 0700 if it is
/// absent, else verifies it as [`check_private_dir`] does.
///
/// # Errors
///
/// Missing higher levels, a symbolic link in any component, another owner, or access for others.
pub fn private_dir(path: &Path) -> Result<(), SafeFsError> {
    let entry = walk::entry(path)?;
    match mkdirat(&entry.parent, &entry.name, Mode::RWXU) {
        Ok(()) => {
            // The umask may have taken bits away; this folder is ours and new, so set them.
            let fd = walk::open_dir(&entry.path, Purpose::Read)?;
            fchmod(&fd, Mode::RWXU)
                .map_err(|errno| SafeFsError::io("set the mode of", &entry.path, errno))?;
        }
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(SafeFsError::io("create the directory", &entry.path, errno)),
    }
    check_private_dir(&entry.path)
}

/// Verifies that `path` is a folder of the effective user without any access for group or others,
/// reached without a symbolic link.
///
/// # Errors
///
/// The path is absent, or one of these does not hold.
pub fn check_private_dir(path: &Path) -> Result<(), SafeFsError> {
    let fd = walk::open_dir(path, Purpose::Pass)?;
    let stat = fstat(&fd).map_err(|errno| SafeFsError::io("examine", path, errno))?;
    check_owner(path, &stat)?;
    let mode = walk::permissions(&stat);
    if mode & 0o077 != 0 {
        let rule = "group and others must have no access";
        return Err(SafeFsError::WrongMode {
            path: path.to_owned(),
            mode,
            rule,
            fix: "700",
        });
    }
    Ok(())
}

/// Verifies that `path` is a regular file of the effective user with mode 0600 exactly and one
/// name, reached without a symbolic link.
///
/// # Errors
///
/// The path is absent (see [`SafeFsError::is_not_found`]), or one of these does not hold.
pub fn check_private_file(path: &Path) -> Result<(), SafeFsError> {
    let entry = walk::entry(path)?;
    let Some(stat) = entry.stat()? else {
        return Err(SafeFsError::io("examine", &entry.path, Errno::NOENT));
    };
    judge_private_file(&entry.path, &stat)
}

/// Creates a file with mode 0600 for reading and writing, which must not exist yet, in a folder
/// reached without a symbolic link.
///
/// # Errors
///
/// [`SafeFsError::AlreadyExists`] if anything, even a dangling link, has that name.
pub fn create_private_file(path: &Path) -> Result<fs_err::File, SafeFsError> {
    let entry = walk::entry(path)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let fd = openat(&entry.parent, &entry.name, flags, mode).map_err(|errno| match errno {
        Errno::EXIST => SafeFsError::AlreadyExists {
            path: entry.path.clone(),
        },
        errno => SafeFsError::io("create", &entry.path, errno),
    })?;
    fchmod(&fd, mode).map_err(|errno| SafeFsError::io("set the mode of", &entry.path, errno))?;
    Ok(fs_err::File::from_parts(fd.into(), entry.path))
}

/// Judges what `stat` says of a file that has to be private.
pub(crate) fn judge_private_file(path: &Path, stat: &Stat) -> Result<(), SafeFsError> {
    match walk::file_type(stat) {
        FileType::RegularFile => {}
        FileType::Symlink => {
            return Err(SafeFsError::SymbolicLink {
                path: path.to_owned(),
                link: path.to_owned(),
            });
        }
        _ => {
            return Err(SafeFsError::NotARegularFile {
                path: path.to_owned(),
            });
        }
    }
    check_owner(path, stat)?;
    let mode = walk::permissions(stat);
    if mode != 0o600 {
        let rule = "it must be 0600 exactly";
        return Err(SafeFsError::WrongMode {
            path: path.to_owned(),
            mode,
            rule,
            fix: "600",
        });
    }
    if stat.st_nlink > 1 {
        return Err(SafeFsError::HardLinked {
            path: path.to_owned(),
        });
    }
    Ok(())
}

fn check_owner(path: &Path, stat: &Stat) -> Result<(), SafeFsError> {
    let expected = geteuid().as_raw();
    if stat.st_uid == expected {
        return Ok(());
    }
    Err(SafeFsError::WrongOwner {
        path: path.to_owned(),
        owner: stat.st_uid,
        expected,
    })
}

//! Temporary files of writers that were killed: told from those of living ones, and removed.

use std::{ffi::OsStr, path::Path};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, unlinkat},
    process::geteuid,
};

use crate::{
    lock::{Taken, is_named, try_lock},
    walk,
};

const START: &str = ".safe-fs-";
const END: &str = ".tmp";
/// How many digits are between them.
const DIGITS: usize = 16;
/// A longer folder is not read to its end: this is tidying, and somebody waits for it.
const ENTRIES: usize = 10_000;

/// The name of a temporary file.
pub(crate) fn name(digits: &str) -> String {
    format!("{START}{digits}{END}")
}

/// Removes what killed calls of [`crate::write_atomic`] left in a folder: files of exactly that
/// name and of this user, which nobody has locked any more. Whatever stands in the way of that is
/// no error, since nothing depends on it. Returns how many are gone.
pub fn sweep_left_over(folder: &Path) -> usize {
    let entries = fs_err::read_dir(folder).into_iter().flatten();
    let names = entries
        .take(ENTRIES)
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| is_temporary(name));
    names.filter(|name| sweep(folder, name).is_some()).count()
}

fn is_temporary(name: &OsStr) -> bool {
    let digits = name
        .to_str()
        .and_then(|name| name.strip_prefix(START)?.strip_suffix(END));
    digits.is_some_and(|digits| {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.len() == DIGITS && digits.bytes().all(digit)
    })
}

/// Removes one, if its lock is free: a writer keeps it for as long as the file has this name.
fn sweep(folder: &Path, name: &OsStr) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, folder, flags, Mode::empty()).ok()?;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(&parent, name, flags, Mode::empty()).ok()?;
    let found = fstat(&fd).ok()?;
    let ours = found.st_uid == geteuid().as_raw()
        && found.st_nlink == 1
        && walk::file_type(&found) == FileType::RegularFile;
    if ours && try_lock(&fd) == Ok(Taken::Yes) && is_named(&fd, &parent, name) {
        return unlinkat(&parent, name, AtFlags::empty()).ok();
    }
    None
}

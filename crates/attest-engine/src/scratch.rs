//! Private temporary folders, and those that earlier runs left because they were killed.
//!
//! The name of a folder tells its owner's process, and the owner keeps a lock on the folder. Only
//! where the process is dead and the lock is free is a folder left over: the number alone may be
//! that of a process in another container, which shares the place and not the numbers.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::process::{Pid, geteuid};
use safe_fs::{PrivateTempDir, SafeFsError};

use crate::layout::is_dead;

/// How many digits tell the process, and how many the folder.
const PROCESS: usize = 8;
const RANDOM: usize = 16;
/// How many entries of the temporary folder are looked at: this is tidying, and somebody waits.
const ENTRIES: usize = 10_000;
/// How many folders are removed at once.
const FOLDERS: usize = 16;

/// A folder with mode 0700 that goes away with its owner.
#[derive(Debug)]
pub(crate) struct Scratch {
    // Removed before the lock is given up.
    folder: PrivateTempDir,
    _lock: Option<OwnedFd>,
}

impl Scratch {
    /// Makes a folder of a kind, and removes those of the kind that are left over. Blocks.
    pub(crate) fn new_in(place: &Path, kind: &str) -> Result<Self, SafeFsError> {
        sweep(place, kind);
        let process = std::process::id();
        let folder = PrivateTempDir::new_in(place, &format!("{kind}{process:08x}-"))?;
        let lock = lock(folder.path());
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder and says whether that went well.
    pub(crate) fn close(self) -> Result<(), SafeFsError> {
        self.folder.close()
    }
}

/// Removes what is left over. Whatever stands in the way is no error: nothing depends on it.
fn sweep(place: &Path, kind: &str) {
    let Ok(entries) = fs_err::read_dir(place) else {
        return;
    };
    let left_over = entries
        .take(ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| owner(&entry.file_name(), kind).is_some_and(is_dead))
        .take(FOLDERS);
    for entry in left_over {
        let path = entry.path();
        let Some(_lock) = lock(&path) else { continue };
        if let Err(error) = safe_fs::remove_tree_no_follow(&path) {
            tracing::debug!(%error, "a folder that a killed run left cannot be removed");
        }
    }
}

/// Returns the process that a name of exactly our form tells of.
fn owner(name: &OsStr, kind: &str) -> Option<Pid> {
    let (process, random) = name.to_str()?.strip_prefix(kind)?.split_once('-')?;
    let digits = |text: &str, count: usize| {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == count && text.bytes().all(digit)
    };
    if !digits(process, PROCESS) || !digits(random, RANDOM) {
        return None;
    }
    let process = i32::from_str_radix(process, 16).ok()?;
    Pid::from_raw(process)
}

/// Takes the lock of a folder of this user, unless somebody has it.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, path, flags, Mode::empty()).ok()?;
    if fstat(&folder).ok()?.st_uid != geteuid().as_raw() {
        return None;
    }
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const RANDOM: &str = "0123456789abcdef";
    /// No process has it: it is above the highest that the system gives.
    const NOBODY: &str = "7ffffffe";

    #[test]
    fn only_what_the_dead_left_goes() {
        let place = tempfile::tempdir().unwrap();
        let place = fs_err::canonicalize(place.path()).unwrap();
        let path = |name: &str| place.join(name);
        let gone = path(&format!("kind-{NOBODY}-{RANDOM}"));
        fs_err::create_dir_all(gone.join("a/b")).unwrap();
        let locked = path(&format!("kind-{NOBODY}-{RANDOM}").replace("abc", "aaa"));
        fs_err::create_dir(&locked).unwrap();
        let _lock = lock(&locked).unwrap();
        let stay = [
            format!("kind-{:08x}-{RANDOM}", std::process::id()),
            format!("other-{NOBODY}-{RANDOM}"),
            format!("kind-{NOBODY}-{RANDOM}0"),
            format!("kind-{NOBODY}0-{RANDOM}"),
            format!("kind-ffffffff-{RANDOM}"),
            format!("kind-00000000-{RANDOM}"),
            format!("kind-{RANDOM}"),
        ];
        for name in &stay {
            fs_err::create_dir(path(name)).unwrap();
        }
        let link = path(&format!("kind-{NOBODY}-{RANDOM}").replace('0', "1"));
        symlink(path(&stay[1]), &link).unwrap();
        let scratch = Scratch::new_in(&place, "kind-").unwrap();
        assert!(!gone.exists());
        assert!(locked.exists());
        for name in &stay {
            assert!(path(name).exists(), "{name}");
        }
        assert!(link.is_symlink());
        let own = scratch.path().to_owned();
        let name = own.file_name().unwrap();
        assert_eq!(owner(name, "kind-"), Some(rustix::process::getpid()));
        assert!(lock(&own).is_none(), "its owner has it");
        drop(scratch);
        assert!(!own.exists());
    }
}

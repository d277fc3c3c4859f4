//! Whether a file can stay where it is: only if nobody but root could write into it, and this
//! user could not move it either.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FileType, Stat, accessat, fgetxattr, fstat, stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Held;

const ROOT: u32 = 0;
const SET_ID: u32 = 0o6000;
const GROUP_AND_OTHERS: u32 = 0o022;

/// What counts of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) owner: u32,
    /// The permission bits, set-id bits included.
    pub(super) mode: u32,
    /// The system would let this user write, or does not say that it would not.
    pub(super) writable: bool,
}

/// Looks at the opened file, through `here` in `/proc`, and at the folders of its real path.
pub(super) fn look(file: &OwnedFd, here: &Path, real: &Path) -> Held {
    look_closely(file, here, real).unwrap_or(Held::Copy)
}

fn look_closely(file: &OwnedFd, here: &Path, real: &Path) -> io::Result<Held> {
    let found = fstat(file)?;
    // A file that is not at this path any more has folders that nobody knows.
    let there = stat(real)?;
    if (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino) || has_capability(file) {
        return Ok(Held::Copy);
    }
    let folders = real.ancestors().skip(1).map(|folder| {
        let found = stat(folder)?;
        Ok(facts(&found, folder))
    });
    let folders = folders.collect::<io::Result<Vec<Facts>>>()?;
    let user = geteuid().as_raw();
    Ok(decide(user, facts(&found, here), &folders))
}

/// The rule itself.
pub(super) fn decide(user: u32, file: Facts, folders: &[Facts]) -> Held {
    // The owner of a file without write permission gives it to himself.
    let ours = |facts: &Facts| facts.writable || facts.owner == user;
    let others = file.owner != ROOT || file.mode & GROUP_AND_OTHERS != 0;
    let more_rights = file.mode & SET_ID != 0;
    if ours(&file) || others || more_rights || folders.iter().any(ours) {
        Held::Copy
    } else {
        Held::InPlace
    }
}

fn facts(stat: &Stat, path: &Path) -> Facts {
    Facts {
        owner: stat.st_uid,
        mode: stat.st_mode & !FileType::from_raw_mode(stat.st_mode).as_raw_mode(),
        writable: !matches!(
            accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS),
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM)
        ),
    }
}

fn has_capability(file: &OwnedFd) -> bool {
    let nothing: &mut [u8] = &mut [];
    !matches!(
        fgetxattr(file, "security.capability", nothing),
        Err(Errno::NODATA | Errno::OPNOTSUPP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1000;
    const FILE: Facts = facts(ROOT, 0o755, false);
    const FOLDER: Facts = facts(ROOT, 0o755, false);

    const fn facts(owner: u32, mode: u32, writable: bool) -> Facts {
        Facts {
            owner,
            mode,
            writable,
        }
    }

    #[test]
    fn what_only_root_can_change_stays_in_place() {
        assert_eq!(decide(USER, FILE, &[FOLDER, FOLDER]), Held::InPlace);
        assert_eq!(decide(USER, facts(ROOT, 0o555, false), &[]), Held::InPlace);
        // A store whose folder belongs to a group of which this user is none.
        let store = facts(ROOT, 0o1775, false);
        assert_eq!(decide(USER, FILE, &[FOLDER, store]), Held::InPlace);
    }

    #[test]
    fn what_this_user_could_change_is_copied() {
        for file in [
            facts(ROOT, 0o755, true),
            facts(USER, 0o555, false),
            facts(USER, 0o755, true),
        ] {
            assert_eq!(decide(USER, file, &[FOLDER]), Held::Copy, "{file:?}");
        }
        for folder in [facts(ROOT, 0o1777, true), facts(USER, 0o555, false)] {
            let folders = [FOLDER, folder, FOLDER];
            assert_eq!(decide(USER, FILE, &folders), Held::Copy, "{folder:?}");
        }
    }

    #[test]
    fn what_another_user_could_write_is_copied() {
        for file in [
            facts(7, 0o755, false),
            facts(ROOT, 0o775, false),
            facts(ROOT, 0o757, false),
        ] {
            assert_eq!(decide(USER, file, &[FOLDER]), Held::Copy, "{file:?}");
        }
    }

    #[test]
    fn what_would_give_more_rights_is_copied() {
        for mode in [0o4755, 0o2755] {
            let file = facts(ROOT, mode, false);
            assert_eq!(decide(USER, file, &[FOLDER]), Held::Copy, "{mode:o}");
        }
    }

    #[test]
    fn a_file_capability_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin");
        fs_err::write(&path, "").unwrap();
        let file = OwnedFd::from(std::fs::OpenOptions::new().read(true).open(&path).unwrap());
        assert!(!has_capability(&file));
        // Version 2, and in the first permitted word the right to open any socket.
        let mut capability = [0; 20];
        (capability[3], capability[5]) = (2, 0x20);
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::fsetxattr(&file, "security.capability", &capability, flags) {
            Ok(()) => assert!(has_capability(&file)),
            // Only root gives capabilities, and not on every file system.
            Err(errno) => assert!(matches!(errno, Errno::PERM | Errno::OPNOTSUPP), "{errno}"),
        }
    }

    #[test]
    fn root_can_change_everything() {
        assert_eq!(decide(ROOT, FILE, &[FOLDER]), Held::Copy);
    }
}

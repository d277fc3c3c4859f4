//! A folder that cannot be written. Shared with the unit tests and the tests of the program.

use std::fs::{Permissions, metadata, read_dir, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that cannot be written, also by root, until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    folder: PathBuf,
    mounted: bool,
}

impl ReadOnly {
    /// What the operating system says of a write, to root and to others.
    pub(crate) const TOLD: [&str; 2] = ["Read-only file system", "Permission denied"];

    /// Makes it so; nothing where root may not mount, which is said.
    pub(crate) fn make(folder: &Path) -> Option<Self> {
        let mounted = metadata("/proc/self").unwrap().uid() == 0;
        if mounted {
            // Modes do not bind root.
            if !mount(&["--bind".as_ref(), folder, folder]) {
                println!("NOT RUN: modes do not bind root, and this root may not mount");
                return None;
            }
        } else {
            modes(folder, 0o555);
        }
        let made = Self {
            folder: folder.to_owned(),
            mounted,
        };
        let remount: [&Path; 3] = ["-o".as_ref(), "remount,bind,ro".as_ref(), folder];
        assert!(!mounted || mount(&remount), "who mounts can also remount");
        Some(made)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        if self.mounted {
            assert!(succeeds("umount", &[&self.folder]));
        } else {
            modes(&self.folder, 0o755);
        }
    }
}

fn mount(words: &[&Path]) -> bool {
    succeeds("mount", words)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no other way to mount"
)]
fn succeeds(program: &str, words: &[&Path]) -> bool {
    let done = Command::new(program).args(words).status();
    done.is_ok_and(|status| status.success())
}

/// Sets the mode of a folder and of those in it.
fn modes(folder: &Path, mode: u32) {
    // Those that cannot be listed are made so first.
    set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    for entry in read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            modes(&entry.path(), mode);
        }
    }
    set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}

//! Folders that cannot be written and disks without room: an error, and nothing half.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use keys::{KeyDir, KeysError};

use crate::support::{Workspace, chmod, is_root, name, time, words};

/// A small file system over a folder, if this machine lets the test make one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        if !is_root() {
            println!("only root can mount a file system; the other tests here need none");
            return None;
        }
        let words = ["-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs"];
        assert!(mount(&words, folder), "root can mount a file system");
        Some(Self(folder.to_owned()))
    }

    fn fill(&self) {
        let file = self.0.join(".filler");
        let room = vec![0; 4096];
        let mut written = Vec::new();
        loop {
            written.extend_from_slice(&room);
            if fs::write(&file, &written).is_err() {
                return;
            }
        }
    }

    /// Leaves room for so many small files.
    fn leave(&self, files: u64) {
        let filler = fs::OpenOptions::new()
            .write(true)
            .open(self.0.join(".filler"));
        let filler = filler.unwrap();
        let length = filler.metadata().unwrap().len();
        filler.set_len(length - files * 4096).unwrap();
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join(".filler")).unwrap();
    }

    fn read_only(&self, on: bool) {
        let words = if on { "remount,ro" } else { "remount,rw" };
        assert!(mount(&["-o", words], &self.0));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut command = Command::new("umount");
        command.arg(&self.0).stderr(Stdio::null());
        drop(command.status());
    }
}

fn mount(words: &[&str], folder: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(words).arg(folder).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Tries every change, which all have to fail and change nothing.
fn all_changes_fail(workspace: &Workspace, id: &str, foreign: &Path) -> Vec<KeysError> {
    let before = workspace.files();
    let now = time("2026-11-30T12:00:00Z");
    let errors = vec![
        workspace
            .keys
            .generate(&workspace.trust, &name("b"))
            .unwrap_err(),
        workspace.trust.import(foreign, &name("b")).unwrap_err(),
        workspace.trust.revoke(id, now).unwrap_err(),
    ];
    assert_eq!(workspace.files(), before);
    errors
}

/// Another key to import, outside of the store that is in trouble.
fn foreign() -> (Workspace, PathBuf) {
    let other = Workspace::new();
    let id = other.generate();
    let file = other.public_file(&id);
    (other, file)
}

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let workspace = Workspace::new();
    let (_other, foreign) = foreign();
    let Some(disk) = SmallDisk::over(&workspace.path.join(".attest")) else {
        return;
    };
    let id = workspace.generate();
    disk.fill();
    for error in all_changes_fail(&workspace, id.as_str(), &foreign) {
        let text = words(&error);
        assert!(text.contains("No space left"), "{text}");
    }
    // A key needs room for three files; with less no step of it stays.
    for room in 1..=2 {
        let before = workspace.files().len();
        disk.leave(1);
        let error = workspace.keys.generate(&workspace.trust, &name("b"));
        let text = words(&error.unwrap_err());
        assert!(text.contains("No space left"), "{room}: {text}");
        assert_eq!(workspace.files().len(), before, "{room}");
    }
    // Reading and signing go on.
    assert_eq!(
        workspace
            .keys
            .signer(&workspace.trust, None)
            .unwrap()
            .key_id(),
        id
    );
    disk.make_room();
    let second = workspace.generate();
    assert!(workspace.keys.holds(&second));
    assert_eq!(workspace.trust.list(&workspace.keys).unwrap().len(), 2);
}

#[test]
fn a_disk_that_is_full_for_the_private_key_alone_leaves_no_public_half() {
    let workspace = Workspace::new();
    let elsewhere = workspace.path.join("elsewhere");
    let Some(disk) = SmallDisk::over(&elsewhere) else {
        return;
    };
    let id = workspace.generate();
    let before = workspace.files();
    disk.fill();
    let keys = workspace.with_keys_in("elsewhere");
    let error = keys.generate(&workspace.trust, &name("b")).unwrap_err();
    assert!(words(&error).contains("No space left"), "{}", words(&error));
    assert_eq!(workspace.files(), before);
    assert_eq!(
        fs::read_dir(&elsewhere).unwrap().count(),
        1,
        "the filler alone"
    );
    assert_eq!(workspace.trust.list(&workspace.keys).unwrap()[0].id, id);
}

#[test]
fn a_read_only_disk_is_read_and_not_changed() {
    let workspace = Workspace::new();
    let (_other, foreign) = foreign();
    let Some(disk) = SmallDisk::over(&workspace.path.join(".attest")) else {
        return;
    };
    let id = workspace.generate();
    disk.read_only(true);
    for error in all_changes_fail(&workspace, id.as_str(), &foreign) {
        let text = words(&error);
        assert!(text.contains("Read-only file system"), "{text}");
    }
    assert!(workspace.keys.signer(&workspace.trust, None).is_ok());
    disk.read_only(false);
}

#[test]
fn a_folder_without_permission_is_named() {
    if is_root() {
        println!("permissions do not hold root back; the read-only disk has to do");
        return;
    }
    let workspace = Workspace::new();
    let (_other, foreign) = foreign();
    let id = workspace.generate();
    chmod(workspace.trust.path(), 0o555);
    for error in all_changes_fail(&workspace, id.as_str(), &foreign) {
        let text = words(&error);
        assert!(text.contains("Permission denied"), "{text}");
    }
    chmod(workspace.trust.path(), 0o755);
}

#[test]
fn a_key_that_cannot_be_kept_leaves_no_public_half() {
    let workspace = Workspace::new();
    workspace.generate();
    let before = workspace.files();
    // Whoever this runs as: a file where the folder of private keys has to be.
    fs::write(workspace.path.join("taken"), "").unwrap();
    let taken: KeyDir = workspace.with_keys_in("taken/keys");
    let error = taken.generate(&workspace.trust, &name("b")).unwrap_err();
    assert!(words(&error).contains("taken"), "{}", words(&error));
    assert_eq!(workspace.files(), before);
    let taken = workspace.with_keys_in("taken");
    assert!(taken.generate(&workspace.trust, &name("b")).is_err());
    assert!(taken.signer(&workspace.trust, None).is_err());
    assert_eq!(workspace.files(), before);
}

#[test]
fn a_store_that_is_no_folder_is_an_error() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path.join(".attest")).unwrap();
    fs::write(workspace.trust.path(), "").unwrap();
    let error = workspace
        .keys
        .generate(&workspace.trust, &name("a"))
        .unwrap_err();
    assert!(words(&error).contains("trust"), "{}", words(&error));
    let trust = keys::load_trust(workspace.trust.path(), None);
    assert!(
        matches!(trust, attest_verify::trust::Trust::Unreadable(_)),
        "{trust:?}"
    );
    assert!(!workspace.keys.path().exists());
}

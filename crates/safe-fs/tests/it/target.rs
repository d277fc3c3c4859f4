//! Files that somebody named to be written.

use std::os::fd::AsRawFd;
use std::os::unix::{fs::symlink, net::UnixListener};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use safe_fs::{SafeFsError, writable_target, write_target};

use crate::support::{Scratch, chmod, is_root, mode_of};

#[test]
fn a_new_file_gets_the_mode_and_one_that_is_there_keeps_its_own() {
    let scratch = Scratch::new();
    let path = scratch.join("file");
    assert_eq!(writable_target(&path).unwrap(), path);
    assert!(!path.exists(), "nothing is made before the write");
    write_target(&path, b"one", 0o644).unwrap();
    assert_eq!(mode_of(&path), 0o644);
    chmod(&path, 0o600);
    write_target(&path, b"two", 0o644).unwrap();
    assert_eq!(mode_of(&path), 0o600);
    assert_eq!(fs_err::read(&path).unwrap(), b"two");
}

#[test]
fn a_link_stays_and_leads_to_the_file_that_is_written() {
    let scratch = Scratch::new();
    fs_err::create_dir(scratch.join("folder")).unwrap();
    fs_err::write(scratch.join("folder/file"), "old").unwrap();
    symlink("folder/file", scratch.join("link")).unwrap();
    symlink("link", scratch.join("second")).unwrap();
    let second = scratch.join("second");
    assert_eq!(
        writable_target(&second).unwrap(),
        scratch.join("folder/file")
    );
    write_target(&second, b"new", 0o644).unwrap();
    assert!(second.is_symlink() && scratch.join("link").is_symlink());
    assert_eq!(fs_err::read(scratch.join("folder/file")).unwrap(), b"new");
}

#[test]
fn a_path_is_told_without_dots_and_links_in_its_folders() {
    let scratch = Scratch::new();
    fs_err::create_dir(scratch.join("folder")).unwrap();
    symlink("folder", scratch.join("link")).unwrap();
    for path in ["link/new", "folder/../link/./new"] {
        assert_eq!(
            writable_target(&scratch.join(path)).unwrap(),
            scratch.join("folder/new")
        );
    }
}

#[test]
fn what_is_no_file_is_refused_and_stays() {
    let scratch = Scratch::new();
    mknodat(CWD, scratch.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(scratch.join("socket")).unwrap();
    fs_err::create_dir(scratch.join("folder")).unwrap();
    symlink("gone", scratch.join("dangling")).unwrap();
    symlink("/dev/null", scratch.join("null")).unwrap();
    for (name, what) in [
        ("fifo", "a FIFO"),
        ("socket", "a socket"),
        ("folder", "a folder"),
        ("dangling", "a symbolic link that leads nowhere"),
        ("null", "a device"),
        ("/dev/null", "a device"),
    ] {
        let path = scratch.join(name);
        let before = fs_err::symlink_metadata(&path).unwrap().file_type();
        // No test writes to a device of this machine, which root could replace.
        let error = if what == "a device" {
            writable_target(&path).unwrap_err()
        } else {
            write_target(&path, b"new", 0o644).unwrap_err()
        };
        assert_eq!(
            error.to_string(),
            format!(
                "`{}` is {what}, and only a regular file is replaced",
                path.display()
            )
        );
        let after = fs_err::symlink_metadata(&path).unwrap().file_type();
        assert_eq!(after, before, "{name}");
    }
    assert!(!scratch.join("gone").exists());
    assert_eq!(fs_err::read_dir(&scratch.path).unwrap().count(), 5);
}

#[test]
fn a_file_that_stands_behind_an_open_descriptor_is_refused_and_stays() {
    let scratch = Scratch::new();
    let kept = scratch.join("build.log");
    fs_err::write(&kept, "a long build\n").unwrap();
    let open = fs_err::File::options().append(true).open(&kept).unwrap();
    let number = open.as_raw_fd();
    symlink(format!("/dev/fd/{number}"), scratch.join("link")).unwrap();
    for path in [
        PathBuf::from(format!("/dev/fd/{number}")),
        PathBuf::from(format!("/proc/self/fd/{number}")),
        PathBuf::from(format!("/proc/thread-self/fd/../fd/{number}")),
        scratch.join("link"),
        PathBuf::from("/dev/stdout"),
        PathBuf::from("/dev/stderr"),
    ] {
        let error = writable_target(&path).unwrap_err().to_string();
        assert!(
            error.contains("it leads through an open descriptor"),
            "{error}"
        );
    }
    write_target(&scratch.join("link"), b"new", 0o644).unwrap_err();
    assert_eq!(fs_err::read_to_string(&kept).unwrap(), "a long build\n");
    // The name of such a folder alone is nothing special, nor is a link to a file.
    fs_err::create_dir(scratch.join("fd")).unwrap();
    writable_target(&scratch.join("fd/1")).unwrap();
    symlink("build.log", scratch.join("other")).unwrap();
    assert!(writable_target(&scratch.join("other")).is_ok());
}

#[test]
fn a_folder_that_is_missing_or_not_writable_is_found_early() {
    let scratch = Scratch::new();
    fs_err::write(scratch.join("file"), "").unwrap();
    let error = writable_target(&scratch.join("gone/file")).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    writable_target(&scratch.join("file/file")).unwrap_err();
    for path in ["/", "..", "gone/.."] {
        let error = writable_target(path.as_ref()).unwrap_err();
        assert!(matches!(error, SafeFsError::UnusablePath { .. }), "{error}");
    }
    // Modes do not bind root.
    if !is_root() {
        fs_err::create_dir(scratch.join("locked")).unwrap();
        chmod(&scratch.join("locked"), 0o500);
        let error = writable_target(&scratch.join("locked/file")).unwrap_err();
        assert!(error.to_string().starts_with("failed to write into"));
    }
}

#[test]
fn a_path_that_can_only_be_a_folder_is_no_file_to_make() {
    let scratch = Scratch::new();
    for path in ["new/", "new//", "new/.", "new/./"] {
        let path = scratch.join(path);
        let error = writable_target(&path).unwrap_err().to_string();
        assert!(
            error.contains("it ends as that of a folder does"),
            "{error}"
        );
        write_target(&path, b"new", 0o644).unwrap_err();
    }
    assert!(!scratch.join("new").exists());
}

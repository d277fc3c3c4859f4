//! Removal of trees that do not want to be removed, and of nothing else.

use std::{
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::symlink},
    },
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use safe_fs::{PrivateTempDir, SafeFsError, remove_tree_no_follow};

use crate::support::{Scratch, chmod, mode_of};

#[test]
fn an_absent_path_a_file_and_a_link_are_removed_as_such() {
    let scratch = Scratch::new();
    let (tree, kept) = (scratch.join("tree"), scratch.join("kept"));
    remove_tree_no_follow(&tree).unwrap();
    remove_tree_no_follow(&tree.join("deeper")).unwrap();
    fs_err::write(&tree, "").unwrap();
    remove_tree_no_follow(&tree).unwrap();

    fs_err::create_dir(&kept).unwrap();
    fs_err::write(kept.join("file"), "").unwrap();
    symlink(&kept, &tree).unwrap();
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.is_symlink());
    assert!(kept.join("file").exists());
}

#[test]
fn links_in_a_tree_are_not_followed() {
    let scratch = Scratch::new();
    let (tree, kept) = (scratch.join("tree"), scratch.join("kept"));
    fs_err::create_dir_all(tree.join("a/b")).unwrap();
    fs_err::create_dir(&kept).unwrap();
    fs_err::write(kept.join("file"), "").unwrap();
    for (target, link) in [
        ("../kept", "up"),
        ("..", "parent"),
        ("/", "root"),
        ("link", "link"),
    ] {
        symlink(target, tree.join(link)).unwrap();
        symlink(&kept, tree.join("a/b").join(link)).unwrap();
    }
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.exists());
    assert!(kept.join("file").exists());
}

#[test]
fn a_link_among_the_parents_is_refused() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("real/tree")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    let error = remove_tree_no_follow(&scratch.join("link/tree")).unwrap_err();
    assert!(matches!(error, SafeFsError::SymbolicLink { .. }), "{error}");
    assert!(scratch.join("real/tree").exists());
}

#[test]
fn folders_without_any_permission_are_removed() {
    let scratch = Scratch::new();
    let tree = scratch.join("tree");
    for (name, mode) in [
        ("a", 0o000),
        ("b", 0o500),
        ("c", 0o600),
        ("d", 0o300),
        ("e", 0o1555),
    ] {
        let folder = tree.join(name);
        fs_err::create_dir_all(folder.join("inner")).unwrap();
        fs_err::write(folder.join("inner/file"), "").unwrap();
        chmod(&folder.join("inner/file"), 0o000);
        chmod(&folder.join("inner"), mode);
        chmod(&folder, mode);
    }
    chmod(&tree, 0o000);
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn names_of_any_bytes_are_removed() {
    let scratch = Scratch::new();
    let tree = scratch.join("tree");
    fs_err::create_dir(&tree).unwrap();
    for name in [
        &b"\xff\xfe"[..],
        b"new\nline",
        b"quote'\"",
        b"-rf",
        b"\\",
        b"\x1b[31m",
        b" ",
    ] {
        let folder = tree.join(OsStr::from_bytes(name));
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join(OsStr::from_bytes(name)), "").unwrap();
    }
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_tree_deeper_than_any_path_is_removed() {
    let scratch = Scratch::new();
    let tree = scratch.join("tree");
    fs_err::create_dir(&tree).unwrap();
    // 3 000 levels of 4 bytes: three times the longest path that the kernel takes.
    let mut deepest: OwnedFd = openat(CWD, &tree, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..3_000 {
        for name in ["deep", "side"] {
            mkdirat(&deepest, name, Mode::RWXU).unwrap();
        }
        deepest = openat(&deepest, "deep", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    drop(deepest);
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_writer_that_stops_does_not_prevent_removal() {
    let scratch = Scratch::new();
    let tree = scratch.join("tree");
    fs_err::create_dir_all(tree.join("busy")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                // Fails once the folder is gone.
                std::fs::write(tree.join(format!("busy/{number}")), "").ok();
            }
        });
        // Either it wins against the writer or it says that it gave up; it never hangs.
        if let Err(error) = remove_tree_no_follow(&tree) {
            assert!(matches!(error, SafeFsError::Changing { .. }), "{error}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    remove_tree_no_follow(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_temporary_folder_is_private_and_goes_away() {
    let scratch = Scratch::new();
    let first = PrivateTempDir::new_in(&scratch.path, "forge-runtime-").unwrap();
    let second = PrivateTempDir::new_in(&scratch.path, "forge-runtime-").unwrap();
    assert_ne!(first.path(), second.path());
    let name = first.path().file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("forge-runtime-") && name.len() == "forge-runtime-".len() + 16);
    assert_eq!(mode_of(first.path()), 0o700);
    fs_err::write(first.path().join("file"), "").unwrap();

    first.close().unwrap();
    drop(second);
    assert_eq!(fs_err::read_dir(&scratch.path).unwrap().count(), 0);

    let kept = PrivateTempDir::new_in(&scratch.path, "kept-")
        .unwrap()
        .keep();
    assert!(kept.is_dir());
}

#[test]
fn a_temporary_folder_is_removed_where_it_was_made() {
    let scratch = Scratch::new();
    let (root, moved) = (scratch.join("root"), scratch.join("moved"));
    fs_err::create_dir(&root).unwrap();
    let temporary = PrivateTempDir::new_in(&root, "t-").unwrap();
    let name = temporary.path().file_name().unwrap().to_owned();
    // Somebody puts a decoy where the path leads now.
    fs_err::rename(&root, &moved).unwrap();
    fs_err::create_dir_all(root.join(&name)).unwrap();
    temporary.close().unwrap();
    assert!(root.join(&name).exists());
    assert!(!moved.join(&name).exists());
}

#[test]
fn a_prefix_names_no_other_folder() {
    let scratch = Scratch::new();
    for prefix in ["../x", "a/b", "\0"] {
        let error = PrivateTempDir::new_in(&scratch.path, prefix).unwrap_err();
        assert!(matches!(error, SafeFsError::UnusablePath { .. }), "{error}");
    }
}

#[test]
fn a_folder_put_aside_has_another_name_and_still_goes_away() {
    let scratch = Scratch::new();
    let mut temporary = PrivateTempDir::new_in(&scratch.path, "t-").unwrap();
    let before = temporary.path().to_owned();
    fs_err::write(before.join("file"), "x").unwrap();
    temporary.put_aside("u-").unwrap();
    let after = temporary.path().to_owned();
    assert!(!before.exists() && after.join("file").exists());
    assert!(
        after
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("u-")
    );
    let error = temporary.put_aside("../u-").unwrap_err();
    assert!(matches!(error, SafeFsError::UnusablePath { .. }), "{error}");
    temporary.close().unwrap();
    assert!(!after.exists());

    let mut gone = PrivateTempDir::new_in(&scratch.path, "t-").unwrap();
    fs_err::remove_dir(gone.path()).unwrap();
    gone.put_aside("u-").unwrap();
}

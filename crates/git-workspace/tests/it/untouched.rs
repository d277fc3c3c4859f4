//! Whether a workspace that has waited is still as it was made.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use crate::support::{Lab, raw_in};

#[tokio::test]
async fn a_workspace_that_nobody_touched_is_as_it_was_made() {
    let lab = Lab::new();
    let commit = lab.head();
    fs_err::create_dir_all(lab.repo.join("deep/er")).unwrap();
    fs_err::write(lab.repo.join("deep/er/file"), "x").unwrap();
    symlink("/nonexistent", lab.repo.join("link")).unwrap();
    let entry = format!("160000,{commit},modules/sub");
    lab.raw(&["add", "--all"]);
    lab.raw(&["update-index", "--add", "--cacheinfo", &entry]);
    lab.raw(&["commit", "--quiet", "-m", "of every kind"]);
    let mut workspace = lab.workspace().await;
    assert!(workspace.is_as_made().await);
    // What a plugin of the operator's own would do first.
    assert_eq!(raw_in(workspace.path(), &["status", "--porcelain"]), "");
    assert!(workspace.is_as_made().await);
    workspace.snapshot().await.unwrap();
    assert!(workspace.is_as_made().await);
}

#[tokio::test]
async fn an_empty_workspace_is_as_it_was_made_until_something_is_there() {
    let lab = Lab::empty();
    lab.raw(&["init", "--quiet", "--initial-branch=main", "."]);
    lab.commit_all("nothing");
    let workspace = lab.workspace().await;
    assert!(workspace.is_as_made().await);
    fs_err::write(workspace.path().join("file"), "").unwrap();
    assert!(!workspace.is_as_made().await);
}

/// What is done, and how.
type Touch<'a> = (&'a str, &'a dyn Fn(&Path));

#[tokio::test]
async fn each_way_to_touch_a_workspace_is_noticed() {
    let lab = Lab::new();
    let touches: [Touch<'_>; 14] = [
        ("edited", &|path| {
            fs_err::write(path.join("README"), "READ ME\n").unwrap()
        }),
        ("edited and dated back", &|path| {
            let file = path.join("README");
            let before = fs_err::metadata(&file).unwrap().modified().unwrap();
            fs_err::write(&file, "READ ME\n").unwrap();
            let file = fs_err::OpenOptions::new().write(true).open(&file).unwrap();
            file.file().set_modified(before).unwrap();
        }),
        ("replaced by itself", &|path| {
            fs_err::copy(path.join("README"), path.join("copy")).unwrap();
            fs_err::rename(path.join("copy"), path.join("README")).unwrap();
        }),
        ("made executable", &|path| {
            let mode = PermissionsExt::from_mode(0o755);
            fs_err::set_permissions(path.join("README"), mode).unwrap();
        }),
        ("removed", &|path| {
            fs_err::remove_file(path.join("README")).unwrap()
        }),
        ("added", &|path| {
            fs_err::write(path.join("src/new"), "").unwrap()
        }),
        ("added and ignored", &|path| {
            fs_err::create_dir(path.join("ignored")).unwrap()
        }),
        ("a folder replaced by a link", &|path| {
            fs_err::rename(path.join("src"), path.parent().unwrap().join("src")).unwrap();
            symlink("../src", path.join("src")).unwrap();
        }),
        ("a folder removed", &|path| {
            fs_err::remove_dir_all(path.join("src")).unwrap()
        }),
        ("an empty folder of git removed", &|path| {
            fs_err::remove_dir(path.join(".git/refs/tags")).unwrap();
        }),
        ("HEAD moved", &|path| {
            fs_err::write(path.join(".git/HEAD"), "ref: refs/heads/x\n").unwrap()
        }),
        ("the folder removed", &|path| {
            fs_err::remove_dir_all(path).unwrap()
        }),
        ("the folder exchanged", &|path| {
            fs_err::rename(path, path.parent().unwrap().join("elsewhere")).unwrap();
            fs_err::create_dir(path).unwrap();
        }),
        ("made shallow", &|path| {
            fs_err::write(path.join(".git/shallow"), "").unwrap()
        }),
    ];
    for (what, touch) in touches {
        let workspace = lab.workspace().await;
        assert!(workspace.is_as_made().await, "before: {what}");
        touch(workspace.path());
        assert!(!workspace.is_as_made().await, "{what}");
        drop(workspace);
        for entry in fs_err::read_dir(&lab.worktrees).unwrap() {
            fs_err::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    }
}

#[tokio::test]
async fn a_private_folder_that_is_not_whole_is_noticed() {
    let lab = Lab::new();
    for name in ["HEAD", "index", "objects/info/alternates", "config"] {
        let workspace = lab.workspace().await;
        fs_err::remove_file(lab.private_git().join(name)).unwrap();
        assert!(!workspace.is_as_made().await, "{name}");
    }
    let workspace = lab.workspace().await;
    fs_err::remove_dir_all(lab.private_git()).unwrap();
    assert!(!workspace.is_as_made().await);
}

#[tokio::test]
async fn rules_that_the_operator_has_changed_make_a_workspace_outdated() {
    let lab = Lab::new();
    for name in ["exclude", "attributes"] {
        let workspace = lab.workspace().await;
        let rules = lab.repo.join(".git/info").join(name);
        fs_err::write(rules, "*.log\n").unwrap();
        assert!(!workspace.is_as_made().await, "{name}");
        drop(workspace);
        assert!(lab.workspace().await.is_as_made().await);
    }
}

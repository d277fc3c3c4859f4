//! What counts as a change, for names and files of every kind.

use std::{
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    time::Duration,
};

use git_workspace::{GitError, GitLimits, WorkspaceFault};

use crate::support::{Lab, candidate, raw_in, subject};

#[tokio::test]
async fn r51_a_plugin_that_changes_nothing_leaves_the_tree_of_the_base() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let snapshot = workspace.snapshot().await.unwrap();
    assert!(!snapshot.changed());
    assert_eq!(snapshot.tree(), workspace.base().tree());
}

#[tokio::test]
async fn r51_ignored_files_and_touched_ones_are_no_change() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    fs_err::create_dir_all(path.join("ignored/deep")).unwrap();
    fs_err::write(path.join("ignored/deep/file"), "ignored").unwrap();
    fs_err::create_dir(path.join("empty")).unwrap();
    // Touched, rewritten with the same content, added to the plugin's own index.
    fs_err::write(path.join("README"), "read me\n").unwrap();
    fs_err::write(path.join("temporary"), "x").unwrap();
    raw_in(&path, &["add", "temporary"]);
    fs_err::remove_file(path.join("temporary")).unwrap();
    assert!(!workspace.snapshot().await.unwrap().changed());
}

#[tokio::test]
async fn r51_additions_edits_removals_modes_and_links_out_of_the_tree_are_changes() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    fs_err::write(path.join("src/lib.txt"), "edited\n").unwrap();
    fs_err::remove_file(path.join("README")).unwrap();
    fs_err::create_dir(path.join("new")).unwrap();
    fs_err::write(path.join("new/script"), "#!/bin/sh\n").unwrap();
    fs_err::set_permissions(path.join("new/script"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", path.join("outside")).unwrap();
    symlink("..", path.join("up")).unwrap();

    let snapshot = workspace.snapshot().await.unwrap();
    assert!(snapshot.changed());
    let expected = [".gitignore", "new/script", "outside", "src/lib.txt", "up"];
    assert_eq!(lab.files(snapshot.tree()), expected);
    let listing = lab.raw_inside(&["ls-tree", "-r", snapshot.tree().as_str()]);
    assert!(
        listing.contains("100755") && listing.matches("120000").count() == 2,
        "{listing}"
    );
    // A link is stored as such, whatever it points to.
    assert_eq!(lab.content(snapshot.tree(), "outside"), "/etc/passwd");
}

#[tokio::test]
async fn r51_a_folder_replaced_by_a_link_takes_nothing_from_its_target() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let (path, outside) = (workspace.path().to_owned(), lab.root.join("outside"));
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("lib.txt"), "secret").unwrap();
    fs_err::remove_dir_all(path.join("src")).unwrap();
    symlink(&outside, path.join("src")).unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    assert_eq!(lab.files(snapshot.tree()), [".gitignore", "README", "src"]);
    assert_eq!(
        lab.content(snapshot.tree(), "src"),
        outside.to_str().unwrap()
    );
}

#[tokio::test]
async fn r51_names_of_any_bytes_are_kept() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"quote\"and'",
        b"\xff\xfenot-utf8",
        b"-leading-dash",
        b":(top)magic",
        b"tab\there",
        b" spaces ",
        b"readme",
        b"#hash",
    ];
    for name in names {
        fs_err::write(workspace.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    assert_eq!(lab.files(snapshot.tree()).len(), 3 + names.len());
    // `README` and `readme` are two files.
    assert_eq!(lab.content(snapshot.tree(), "readme"), "readme");
    assert_eq!(lab.content(snapshot.tree(), "README"), "read me");
}

#[tokio::test]
async fn checks_may_not_change_what_belongs_to_the_candidate() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    fs_err::write(path.join("new"), "new\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();

    // Touched, and ignored output of a build.
    fs_err::write(path.join("new"), "new\n").unwrap();
    fs_err::create_dir(path.join("ignored")).unwrap();
    fs_err::write(path.join("ignored/output"), "").unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();

    let refused = async |named: &str| {
        let error = workspace.verify_unchanged(&snapshot).await.unwrap_err();
        assert!(
            matches!(&error, GitError::ChecksMutated { paths } if paths == named),
            "{error}"
        );
    };
    fs_err::write(path.join("README"), "changed").unwrap();
    refused("`README`").await;
    fs_err::remove_file(path.join("README")).unwrap();
    refused("`README`").await;
    fs_err::write(path.join("README"), "read me\n").unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    for number in 0..7 {
        fs_err::write(path.join(format!("out{number}\u{1b}")), "").unwrap();
    }
    let error = workspace
        .verify_unchanged(&snapshot)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(" and 2 more") && error.contains("`out0\\u{1b}`"),
        "{error}"
    );
}

#[tokio::test]
async fn the_operators_ignore_file_counts() {
    let lab = Lab::new();
    fs_err::write(lab.repo.join(".git/info/exclude"), "*.local\n").unwrap();
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("settings.local"), "secret").unwrap();
    assert!(!workspace.snapshot().await.unwrap().changed());
}

#[tokio::test]
async fn an_ignored_repository_is_no_fault_and_a_nested_one_is() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    let nest = |name: &str, with_commit: bool| {
        fs_err::create_dir_all(path.join(name)).unwrap();
        raw_in(&path.join(name), &["init", "--quiet"]);
        fs_err::write(path.join(name).join("file"), "x").unwrap();
        if with_commit {
            raw_in(&path.join(name), &["add", "file"]);
            raw_in(&path.join(name), &["commit", "--quiet", "-m", "nested"]);
        }
    };
    nest("ignored/dependency", true);
    assert!(!workspace.snapshot().await.unwrap().changed());

    for (name, with_commit) in [("deep/without", false), ("with", true)] {
        nest(name, with_commit);
        let error = workspace.snapshot().await.unwrap_err();
        let GitError::InvalidWorkspace(fault) = error else {
            panic!("{error}")
        };
        let expected = WorkspaceFault::NestedRepository {
            path: name.to_owned(),
        };
        assert_eq!(fault, expected);
        fs_err::remove_dir_all(path.join(name)).unwrap();
    }
}

#[tokio::test]
async fn submodules_stay_what_they_are() {
    let lab = Lab::new();
    let commit = lab.head();
    let entry = format!("160000,{commit},modules/sub");
    lab.raw(&["update-index", "--add", "--cacheinfo", &entry]);
    lab.raw(&["commit", "--quiet", "-m", "a submodule"]);
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    let sub = path.join("modules/sub");
    assert!(sub.is_dir());
    assert!(!workspace.snapshot().await.unwrap().changed());

    fs_err::write(sub.join("file"), "x").unwrap();
    let error = workspace.snapshot().await.unwrap_err();
    let GitError::InvalidWorkspace(fault) = error else {
        panic!("{error}")
    };
    assert_eq!(
        fault,
        WorkspaceFault::SubmoduleFilled {
            path: "modules/sub".to_owned()
        }
    );

    fs_err::remove_dir_all(path.join("modules")).unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    assert!(snapshot.changed());
    assert!(
        !lab.files(snapshot.tree())
            .contains(&"modules/sub".to_owned())
    );
}

/// Above the size from which git takes a file a piece at a time, as it does with one of gigabytes.
#[tokio::test]
async fn r51_a_large_file_becomes_part_of_the_candidate_as_it_is() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let file = fs_err::File::create(workspace.path().join("large")).unwrap();
    file.set_len(48 << 20).unwrap();
    drop(file);
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    let commit = workspace
        .commit(&snapshot, &subject("feat: large"), None, &candidate(1))
        .await
        .unwrap();
    workspace.remove().await.unwrap();
    let size = lab.raw(&["cat-file", "-s", &format!("{commit}:large")]);
    assert_eq!(size, (48_u64 << 20).to_string());
    lab.raw(&["fsck", "--strict"]);
    // It came as a pack, whole: nothing half written lies beside it.
    let packs = fs_err::read_dir(lab.repo.join(".git/objects/pack")).unwrap();
    let names: Vec<_> = packs.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        names.len() >= 2
            && names
                .iter()
                .all(|name| name.as_bytes().starts_with(b"pack-")),
        "{names:?}"
    );
}

#[tokio::test]
async fn r51_a_file_too_large_for_the_time_limit_ends_git_and_leaves_the_repository_alone() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let before = lab.object_files();
    let file = fs_err::File::create(workspace.path().join("large")).unwrap();
    // Without blocks on the disk, but git has to read and compress all of it.
    file.set_len(64 << 30).unwrap();
    drop(file);
    let limits = GitLimits {
        timeout: Duration::from_millis(300),
        ..GitLimits::default()
    };
    workspace.set_git(lab.git.clone().with_limits(limits));
    let error = workspace.snapshot().await.unwrap_err();
    assert!(
        matches!(error, GitError::Timeout { command: "add", .. }),
        "{error}"
    );
    assert_eq!(lab.object_files(), before);
    workspace.remove().await.unwrap();
    assert_eq!(fs_err::read_dir(&lab.runtime).unwrap().count(), 0);
}

#[tokio::test]
async fn r51_thousands_of_new_files_become_part_of_the_candidate() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    for number in 0..4_000 {
        let folder = workspace.path().join(format!("made/{}", number % 40));
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join(format!("{number}")), format!("{number}\n")).unwrap();
    }
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    let commit = workspace
        .commit(&snapshot, &subject("feat: many"), None, &candidate(1))
        .await
        .unwrap();
    workspace.remove().await.unwrap();
    assert_eq!(lab.files(&commit).len(), 4_003);
    assert_eq!(
        lab.raw(&["show", &format!("{commit}:made/39/3999")]),
        "3999"
    );
}

#[tokio::test]
async fn a_base_without_files_can_be_filled() {
    let lab = Lab::empty();
    lab.raw(&["init", "--quiet", "--initial-branch=main", "."]);
    lab.commit_all("nothing");
    let mut workspace = lab.workspace().await;
    assert!(!workspace.snapshot().await.unwrap().changed());
    fs_err::write(workspace.path().join("first"), "first").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    assert_eq!(lab.files(snapshot.tree()), ["first"]);
}

#[tokio::test]
async fn r51_fifos_and_sockets_are_no_files_and_make_nobody_wait() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, path.join("fifo"), kind, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
    assert!(!workspace.snapshot().await.unwrap().changed());

    fs_err::remove_file(path.join("README")).unwrap();
    fs_err::rename(path.join("fifo"), path.join("README")).unwrap();
    let error = workspace.snapshot().await.unwrap_err();
    assert!(
        matches!(error, GitError::Failed { command: "add", .. }),
        "{error}"
    );
    assert!(error.to_string().contains("README"), "{error}");
}

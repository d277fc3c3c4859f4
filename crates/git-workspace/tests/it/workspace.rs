//! What a plugin finds in a workspace, and what is left in the repository and the roots.

use std::{path::Path, time::Duration};

use git_workspace::{GitError, GitLimits};
use tokio_util::sync::CancellationToken;

use crate::support::{Lab, candidate, raw_in, subject};

#[tokio::test]
async fn a_workspace_is_a_clean_repository_at_the_base() {
    let lab = Lab::new();
    let workspace = lab.workspace().await;
    let path = workspace.path();
    assert!(path.starts_with(&lab.worktrees));
    assert_eq!(
        fs_err::read(path.join("src/lib.txt")).unwrap(),
        b"one\ntwo\n"
    );
    assert_eq!(raw_in(path, &["rev-parse", "HEAD"]), lab.head().to_string());
    assert_eq!(
        raw_in(path, &["rev-parse", "--show-toplevel"]),
        path.to_str().unwrap()
    );
    assert_eq!(raw_in(path, &["status", "--porcelain"]), "");
    assert_eq!(raw_in(path, &["log", "--format=%s"]), "base");
    assert_eq!(raw_in(path, &["diff", "HEAD"]), "");
    assert!(!path.join(".git/hooks").exists());
    raw_in(path, &["fsck", "--strict"]);
}

#[tokio::test]
async fn the_repository_gains_a_candidate_and_nothing_else() {
    let lab = Lab::new();
    lab.raw(&["config", "user.name", "Operator"]);
    fs_err::write(lab.repo.join("README"), "the operator is editing").unwrap();
    let before = outside_objects(&lab.repo);
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    workspace
        .commit(&snapshot, &subject("feat: new"), None, &candidate(1))
        .await
        .unwrap();
    workspace.remove().await.unwrap();

    let mut after = outside_objects(&lab.repo);
    after.retain(|(path, _)| !path.starts_with(".git/refs/agent-forge"));
    assert_eq!(after, before);
    assert_eq!(fs_err::read_dir(&lab.worktrees).unwrap().count(), 0);
    assert_eq!(fs_err::read_dir(&lab.runtime).unwrap().count(), 0);
    lab.raw(&["fsck", "--strict"]);
    // The ref keeps the candidate.
    lab.raw(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(
        lab.raw(&["show", "-s", "--format=%s", &candidate(1).to_string()]),
        "feat: new"
    );
}

#[tokio::test]
async fn without_a_candidate_the_repository_gains_nothing() {
    let lab = Lab::new();
    let before = lab.object_files();
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "of a job whose checks fail\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    workspace.remove().await.unwrap();
    assert_eq!(lab.object_files(), before);
}

#[tokio::test]
async fn a_base_with_other_attributes_is_not_moved_to() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    fs_err::write(lab.repo.join("src/.gitattributes"), "*.txt eol=crlf\n").unwrap();
    lab.commit_all("attributes");
    let error = workspace.move_to(&lab.base().await).await.unwrap_err();
    assert!(matches!(error, GitError::CannotMove { .. }), "{error}");
    workspace.remove().await.unwrap();
}

#[tokio::test]
async fn a_workspace_made_ahead_moves_to_a_newer_base() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    lab.raw(&["rm", "--quiet", "README"]);
    fs_err::write(lab.repo.join("src/lib.txt"), "three\n").unwrap();
    fs_err::write(lab.repo.join("added"), "added\n").unwrap();
    lab.commit_all("second");
    let base = lab.base().await;
    workspace.move_to(&base).await.unwrap();

    let path = workspace.path();
    assert_eq!(fs_err::read(path.join("src/lib.txt")).unwrap(), b"three\n");
    assert!(path.join("added").exists() && !path.join("README").exists());
    assert_eq!(raw_in(path, &["rev-parse", "HEAD"]), lab.head().to_string());
    assert_eq!(raw_in(path, &["status", "--porcelain"]), "");
    assert!(!workspace.snapshot().await.unwrap().changed());
}

#[tokio::test]
async fn text_attributes_apply_and_filters_stay_silent() {
    let lab = Lab::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n";
    fs_err::write(lab.repo.join("big.bin"), pointer).unwrap();
    fs_err::write(lab.repo.join("dos.txt"), "a\nb\n").unwrap();
    lab.commit_all("files");
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt text eol=crlf\n";
    fs_err::write(lab.repo.join(".gitattributes"), attributes).unwrap();
    lab.commit_all("attributes");

    let mut workspace = lab.workspace().await;
    let path = workspace.path().to_owned();
    assert_eq!(
        fs_err::read_to_string(path.join("big.bin")).unwrap(),
        pointer
    );
    assert_eq!(fs_err::read(path.join("dos.txt")).unwrap(), b"a\r\nb\r\n");
    assert!(!workspace.snapshot().await.unwrap().changed());
    fs_err::write(path.join("dos.txt"), "a\r\nb\r\nc\r\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    assert_eq!(lab.content(snapshot.tree(), "dos.txt"), "a\nb\nc");
    assert_eq!(lab.content(snapshot.tree(), "big.bin"), pointer.trim_end());
}

#[tokio::test]
async fn limits_and_cancellation_end_git_with_their_own_errors() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("file"), "changed").unwrap();
    let short = GitLimits {
        timeout: Duration::ZERO,
        ..GitLimits::default()
    };
    workspace.set_git(lab.git.clone().with_limits(short));
    let error = workspace.snapshot().await.unwrap_err();
    assert!(
        matches!(error, GitError::Timeout { command: "add", .. }),
        "{error}"
    );

    // The index lock of the killed git is no obstacle. A tree is named in 40 digits and a line feed.
    for (output_bytes, fits) in [(41, true), (40, false)] {
        let limits = GitLimits {
            output_bytes,
            ..GitLimits::default()
        };
        workspace.set_git(lab.git.clone().with_limits(limits));
        match workspace.snapshot().await {
            Ok(_) => assert!(fits),
            Err(GitError::OutputLimit {
                command: "write-tree",
                limit: 40,
            }) => assert!(!fits),
            Err(error) => panic!("{error}"),
        }
    }

    let cancel = CancellationToken::new();
    cancel.cancel();
    workspace.set_git(lab.git.clone().with_cancel(cancel));
    let error = workspace.snapshot().await.unwrap_err();
    assert!(matches!(error, GitError::Cancelled), "{error}");
    workspace.remove().await.unwrap();
}

#[tokio::test]
async fn a_dropped_workspace_leaves_nothing() {
    let lab = Lab::new();
    drop(lab.workspace().await);
    for root in [&lab.worktrees, &lab.runtime] {
        assert_eq!(fs_err::read_dir(root).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_workspace_put_aside_is_where_nobody_looks_until_it_is_removed() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let before = workspace.path().to_owned();
    workspace.put_aside().unwrap();
    assert!(!before.exists());
    let name = workspace.path().file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(git_workspace::REMOVED_PREFIX), "{name}");
    workspace.remove().await.unwrap();
    for root in [&lab.worktrees, &lab.runtime] {
        assert_eq!(fs_err::read_dir(root).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_shared_repository_stays_writable_for_its_group() {
    let lab = Lab::new();
    lab.raw(&["config", "core.sharedRepository", "group"]);
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "shared content").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    let commit = workspace
        .commit(&snapshot, &subject("feat: new"), None, &candidate(1))
        .await
        .unwrap();
    let blob = lab.raw(&["rev-parse", &format!("{commit}:new")]);
    let folder = lab.repo.join(".git/objects").join(&blob[..2]);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs_err::metadata(folder).unwrap().permissions());
    assert_eq!(mode & 0o020, 0o020, "{mode:o}");
}

/// Every file of a repository but its objects, with its content.
fn outside_objects(repo: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![repo.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(repo)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() {
                if name != ".git/objects" {
                    folders.push(path);
                }
            } else {
                found.push((name, fs_err::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

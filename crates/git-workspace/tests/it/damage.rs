//! Repositories that are damaged, half there, or repacked under a workspace.

use std::path::PathBuf;

use git_workspace::{GitError, Workspace};

use crate::support::{Lab, candidate, main_branch, subject};

/// The only file in the repository's folder of packs with this ending.
fn pack_file(lab: &Lab, ending: &str) -> PathBuf {
    let mut files = lab.object_files();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Overwrites a file that git made read-only.
fn overwrite(path: &PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs_err::read(path).unwrap();
    change(&mut bytes);
    fs_err::remove_file(path).unwrap();
    fs_err::write(path, bytes).unwrap();
}

async fn edit_and_commit(workspace: &mut Workspace) -> Result<(), GitError> {
    fs_err::write(workspace.path().join("new"), "new\n").unwrap();
    let snapshot = workspace.snapshot().await?;
    workspace.verify_unchanged(&snapshot).await?;
    workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await?;
    Ok(())
}

#[tokio::test]
async fn r44_an_object_missing_from_the_repository_is_named_and_not_fetched() {
    let lab = Lab::new();
    let blob = lab.raw(&["rev-parse", "HEAD:README"]);
    fs_err::remove_file(
        lab.repo
            .join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..])),
    )
    .unwrap();
    let base = lab.base().await;
    let error = lab
        .git
        .prepare(&base, &lab.worktrees, &lab.runtime)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            GitError::Failed {
                command: "read-tree",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains(&blob), "{error}");
    assert_eq!(fs_err::read_dir(&lab.worktrees).unwrap().count(), 0);
}

#[tokio::test]
async fn r44_a_base_without_its_tree_is_damage_and_no_fault_of_the_task() {
    let lab = Lab::new();
    let tree = lab.raw(&["rev-parse", "HEAD^{tree}"]);
    let path = format!(".git/objects/{}/{}", &tree[..2], &tree[2..]);
    fs_err::remove_file(lab.repo.join(path)).unwrap();
    let head = lab.head();
    let error = lab
        .git
        .check_base(&lab.repo, &head, &main_branch())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::Damaged { .. }), "{error}");
    assert!(!error.is_invalid_task());
    assert!(error.to_string().contains("its tree is missing"), "{error}");
}

#[tokio::test]
async fn r44_a_pack_without_a_usable_index_is_named() {
    let lab = Lab::new();
    let head = lab.head();
    lab.raw(&["gc", "--quiet"]);
    overwrite(&pack_file(&lab, "idx"), |bytes| bytes.truncate(100));
    let error = lab
        .git
        .check_base(&lab.repo, &head, &main_branch())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::Damaged { .. }), "{error}");
    assert!(!error.is_invalid_task());
    let text = error.to_string();
    assert!(text.contains(".idx") && text.contains("git fsck"), "{text}");
}

#[tokio::test]
async fn r44_a_corrupt_pack_is_named_and_leaves_no_workspace() {
    let lab = Lab::new();
    let large: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    fs_err::write(lab.repo.join("large"), large).unwrap();
    lab.commit_all("large");
    lab.raw(&["gc", "--quiet"]);
    let base = lab.base().await;
    overwrite(&pack_file(&lab, "pack"), |bytes| {
        // The largest object fills the middle.
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xa5);
    });
    let error = lab
        .git
        .prepare(&base, &lab.worktrees, &lab.runtime)
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");
    assert!(error.to_string().contains(".pack"), "{error}");
    for root in [&lab.worktrees, &lab.runtime] {
        assert_eq!(fs_err::read_dir(root).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn r44_a_half_clone_is_told_from_a_wrong_commit() {
    let lab = Lab::new();
    let head = lab.head();
    let half = lab.root.join("half.git");
    fs_err::create_dir_all(half.join("objects/pack")).unwrap();
    fs_err::create_dir_all(half.join("refs")).unwrap();
    fs_err::write(half.join("objects/pack/tmp_pack_Ab3xyz"), "half").unwrap();
    let check = async || {
        let checked = lab.git.check_base(&half, &head, &main_branch()).await;
        checked.unwrap_err()
    };
    let error = check().await;
    assert!(matches!(error, GitError::NotARepository { .. }), "{error}");
    fs_err::write(half.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let error = check().await;
    assert!(matches!(error, GitError::BaseMissing { .. }), "{error}");
    assert!(error.to_string().contains("fetch it there"), "{error}");
    // Whoever clones again into the same place heals it.
    fs_err::remove_dir_all(&half).unwrap();
    lab.raw(&["clone", "--quiet", "--bare", ".", half.to_str().unwrap()]);
    lab.git
        .check_base(&half, &head, &main_branch())
        .await
        .unwrap();
}

#[tokio::test]
async fn r44_a_workspace_made_before_a_repack_is_still_right() {
    let lab = Lab::new();
    for housekeeping in [
        &["gc", "--quiet", "--prune=now"][..],
        &["repack", "-a", "-d", "-q"],
    ] {
        let mut workspace = lab.workspace().await;
        lab.commit_all("more");
        let before = lab.object_files();
        lab.raw(housekeeping);
        assert_ne!(lab.object_files(), before);
        assert!(workspace.is_as_made().await);
        edit_and_commit(&mut workspace).await.unwrap();
        workspace.remove().await.unwrap();
        lab.raw(&["fsck", "--strict"]);
        lab.raw(&["update-ref", "-d", &candidate(1).to_string()]);

        let mut moved = lab.workspace().await;
        lab.commit_all("another");
        lab.raw(housekeeping);
        assert!(moved.is_as_made().await);
        moved.move_to(&lab.base().await).await.unwrap();
        edit_and_commit(&mut moved).await.unwrap();
        moved.remove().await.unwrap();
        lab.raw(&["update-ref", "-d", &candidate(1).to_string()]);
    }
}

#[tokio::test]
async fn r47_a_base_pruned_under_the_attempt_is_an_error_of_git_and_no_candidate() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    lab.raw(&["checkout", "--quiet", "--orphan", "other"]);
    lab.raw(&["rm", "--quiet", "-r", "-f", "."]);
    lab.commit_all("unrelated");
    lab.raw(&["branch", "--quiet", "-D", "main"]);
    lab.raw(&["reflog", "expire", "--expire=now", "--all"]);
    lab.raw(&["gc", "--quiet", "--prune=now"]);
    let error = edit_and_commit(&mut workspace).await.unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");
    assert_eq!(lab.raw(&["for-each-ref", "refs/agent-forge"]), "");
    lab.raw(&["fsck", "--strict"]);
}

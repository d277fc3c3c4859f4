//! What processes leave behind that were killed, in the repository and in an attempt's folders.

use git_workspace::GitError;

use crate::support::{Lab, candidate, run, subject};

/// Every kind of lock, and of half-written file, that git knows.
const LEFT_BY_OTHERS: &[&str] = &[
    "HEAD.lock",
    "ORIG_HEAD.lock",
    "config.lock",
    "gc.pid",
    "gc.pid.lock",
    "index.lock",
    "modules/sub/HEAD.lock",
    "modules/sub/config.lock",
    "modules/sub/index.lock",
    "objects/00/tmp_obj_Ab3xyz",
    "objects/info/alternates.lock",
    "objects/info/commit-graph.lock",
    "objects/maintenance.lock",
    "objects/pack/tmp_idx_Ab3xyz",
    "objects/pack/tmp_pack_Ab3xyz",
    "packed-refs.lock",
    "packed-refs.new",
    "refs/agent-forge/candidates/other.lock",
    "refs/heads/main.lock",
    "refs/heads/topic/deep.lock",
    "refs/remotes/origin/main.lock",
    "refs/stash.lock",
    "refs/tags/v1.lock",
    "shallow.lock",
    "worktrees/linked/HEAD.lock",
    "worktrees/linked/index.lock",
];

#[tokio::test]
async fn r44_stale_locks_in_the_repository_stop_no_attempt_and_are_left_to_their_owner() {
    let lab = Lab::new();
    let git_dir = lab.repo.join(".git");
    let left = LEFT_BY_OTHERS.iter().map(|name| git_dir.join(name));
    for path in left.clone() {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "").unwrap();
    }
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    let commit = workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    workspace.remove().await.unwrap();
    assert_eq!(
        lab.raw(&["rev-parse", &candidate(1).to_string()]),
        commit.to_string()
    );
    for path in left {
        assert!(path.exists(), "{}", path.display());
    }
}

#[tokio::test]
async fn r44_the_stale_lock_of_the_candidates_own_ref_is_removed() {
    let lab = Lab::new();
    let own = lab.repo.join(format!(".git/{}.lock", candidate(1)));
    fs_err::create_dir_all(own.parent().unwrap()).unwrap();
    fs_err::write(&own, "").unwrap();
    let neighbour = lab.repo.join(format!(".git/{}.lock", candidate(2)));
    fs_err::write(&neighbour, "").unwrap();
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    assert!(!own.exists());
    assert!(
        neighbour.exists(),
        "the lock of another attempt was removed"
    );
}

#[tokio::test]
async fn r44_locks_in_the_folders_of_the_attempt_stop_nothing() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let private = lab.private_git();
    let dot_git = workspace.path().join(".git");
    let leave_locks = || {
        for dir in [&private, &dot_git] {
            for name in [
                "index.lock",
                "HEAD.lock",
                "config.lock",
                "shallow.lock",
                "packed-refs.lock",
            ] {
                fs_err::write(dir.join(name), "").unwrap();
            }
            for name in ["refs/main.lock", "objects/tmp_obj_Ab3xyz"] {
                fs_err::write(dir.join(name), "").unwrap();
            }
        }
    };
    leave_locks();
    fs_err::write(lab.repo.join("later"), "later").unwrap();
    lab.commit_all("second");
    workspace.move_to(&lab.base().await).await.unwrap();
    leave_locks();
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    leave_locks();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    leave_locks();
    assert!(workspace.snapshot().await.unwrap().changed());
    lab.raw(&["fsck", "--strict"]);
    assert!(!lab.repo.join(".git/objects/tmp_obj_Ab3xyz").exists());
}

/// With refs in tables there is one lock for all of them, which other jobs hold for a moment.
#[tokio::test]
async fn r44_a_lock_of_all_refs_is_waited_for_and_named() {
    let lab = Lab::empty();
    let arguments = [
        "init",
        "--quiet",
        "--ref-format=reftable",
        "--initial-branch=main",
        ".",
    ];
    if !run("git", &lab.repo, &arguments).0 {
        // This git knows no such repositories.
        return;
    }
    fs_err::write(lab.repo.join("README"), "read me\n").unwrap();
    lab.commit_all("base");
    let lock = lab.repo.join(".git/reftable/tables.list.lock");
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    let draft = workspace
        .draft(&snapshot, &subject("fix: it"), None)
        .await
        .unwrap();

    fs_err::write(&lock, "").unwrap();
    let error = workspace.publish(&draft, &candidate(1)).await.unwrap_err();
    assert!(matches!(error, GitError::Locked { .. }), "{error}");
    assert!(
        error.to_string().contains(lock.to_str().unwrap()),
        "{error}"
    );
    assert!(lock.exists(), "somebody else's lock was removed");

    let held = lock.clone();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        fs_err::remove_file(held).unwrap();
    });
    let commit = workspace.publish(&draft, &candidate(1)).await.unwrap();
    holder.join().unwrap();
    assert_eq!(
        lab.raw(&["rev-parse", &candidate(1).to_string()]),
        commit.to_string()
    );
}

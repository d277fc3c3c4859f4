//! Several attempts on one repository, and a repository that changes under an attempt.

use std::sync::Arc;

use git_workspace::{GitError, Workspace};
use tokio::{sync::Barrier, task::JoinSet};

use crate::support::{Lab, candidate, main_branch, subject};

/// All eight are at the same step at the same time: one that held something the others wait for,
/// between its steps, would stop all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r45_eight_attempts_on_one_repository_go_side_by_side() {
    let lab = Lab::new();
    let base = lab.base().await;
    let barrier = Arc::new(Barrier::new(8));
    let mut attempts = JoinSet::new();
    for number in 0..8 {
        let (git, base, barrier) = (lab.git.clone(), base.clone(), Arc::clone(&barrier));
        let (worktrees, runtime) = (lab.worktrees.clone(), lab.runtime.clone());
        attempts.spawn(async move {
            let mut workspace = git.prepare(&base, &worktrees, &runtime).await.unwrap();
            barrier.wait().await;
            let file = workspace.path().join("src/lib.txt");
            fs_err::write(file, format!("attempt {number}\n")).unwrap();
            // The same content in all, so that all have the same object to store.
            fs_err::write(workspace.path().join("same"), "same\n").unwrap();
            let snapshot = workspace.snapshot().await.unwrap();
            barrier.wait().await;
            let name = candidate(number);
            let commit = workspace
                .commit(&snapshot, &subject("fix: one"), None, &name)
                .await
                .unwrap();
            barrier.wait().await;
            workspace.remove().await.unwrap();
            (number, commit)
        });
    }
    let done = attempts.join_all().await;
    assert_eq!(done.len(), 8);
    for (number, commit) in done {
        assert_eq!(
            lab.content(&commit, "src/lib.txt"),
            format!("attempt {number}")
        );
        let held = lab.raw(&["rev-parse", &candidate(number).to_string()]);
        assert_eq!(held, commit.to_string());
    }
    lab.raw(&["fsck", "--strict"]);
}

async fn commit(workspace: &mut Workspace) -> String {
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    let commit = workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    commit.to_string()
}

#[tokio::test]
async fn r47_a_base_branch_deleted_during_an_attempt_changes_nothing_for_it() {
    let lab = Lab::new();
    let base = lab.head();
    let mut workspace = lab.workspace().await;
    lab.raw(&["checkout", "--quiet", "--orphan", "other"]);
    lab.commit_all("unrelated");
    lab.raw(&["branch", "--quiet", "-D", "main"]);
    let made = commit(&mut workspace).await;
    assert_eq!(
        lab.raw(&["rev-parse", &format!("{made}^")]),
        base.to_string()
    );
    let error = lab
        .git
        .check_base(&lab.repo, &base, &main_branch())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::BranchMissing { .. }), "{error}");
}

#[tokio::test]
async fn r47_a_base_branch_rewritten_during_an_attempt_changes_nothing_for_it() {
    let lab = Lab::new();
    let first = lab.head();
    let base = lab.commit_all("second");
    let mut workspace = lab.workspace().await;
    lab.raw(&["reset", "--quiet", "--hard", first.as_str()]);
    lab.commit_all("rewritten");
    let made = commit(&mut workspace).await;
    assert_eq!(
        lab.raw(&["rev-parse", &format!("{made}^")]),
        base.to_string()
    );
    let error = lab
        .git
        .check_base(&lab.repo, &base, &main_branch())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::BaseNotOnBranch { .. }), "{error}");
    assert!(error.to_string().contains(base.as_str()), "{error}");

    // Once nothing refers to it any more, the repository forgets it.
    lab.raw(&["update-ref", "-d", &candidate(1).to_string()]);
    lab.raw(&["reflog", "expire", "--expire=now", "--all"]);
    lab.raw(&["gc", "--quiet", "--prune=now"]);
    let error = lab
        .git
        .check_base(&lab.repo, &base, &main_branch())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::BaseMissing { .. }), "{error}");
    assert!(error.is_invalid_task() && error.to_string().contains(base.as_str()));
}

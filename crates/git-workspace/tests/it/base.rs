//! Which repositories, branches and commits can be a base, and what is said of the others.

use std::os::unix::fs::symlink;

use git_workspace::{GitError, Repository};

use crate::support::{Lab, main_branch, raw_in};

#[tokio::test]
async fn the_tip_and_its_ancestors_are_bases() {
    let lab = Lab::new();
    let first = lab.head();
    let second = lab.commit_all("second");
    for commit in [first, second] {
        let base = lab
            .git
            .check_base(&lab.repo, &commit, &main_branch())
            .await
            .unwrap();
        assert_eq!(*base.commit(), commit);
        assert_eq!(
            base.tree().as_str(),
            lab.raw(&["rev-parse", &format!("{commit}^{{tree}}")])
        );
    }
}

#[tokio::test]
async fn each_way_to_be_no_base_has_its_own_error() {
    let lab = Lab::new();
    let base = lab.head();
    lab.raw(&["checkout", "--quiet", "-b", "side/branch"]);
    let aside = lab.commit_all("aside");
    lab.raw(&["checkout", "--quiet", "main"]);
    lab.raw(&["tag", "-a", "-m", "annotated", "v1"]);
    let tag = lab.raw(&["rev-parse", "v1"]).parse().unwrap();
    let tree = lab.raw(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
    let missing = "0123456789012345678901234567890123456789".parse().unwrap();

    let check = async |commit, branch: &str| {
        let branch = branch.parse().unwrap();
        let error = lab
            .git
            .check_base(&lab.repo, &commit, &branch)
            .await
            .unwrap_err();
        assert!(error.is_invalid_task(), "{error}");
        error
    };
    assert!(matches!(
        check(aside, "main").await,
        GitError::BaseNotOnBranch { .. }
    ));
    assert!(matches!(
        check(base, "absent").await,
        GitError::BranchMissing { .. }
    ));
    // `side` is a folder of branches, not a branch.
    assert!(matches!(
        check(base, "side").await,
        GitError::BranchMissing { .. }
    ));
    assert!(matches!(
        check(missing, "main").await,
        GitError::BaseMissing { .. }
    ));
    for (object, name) in [(tag, "tag"), (tree, "tree")] {
        let error = check(object, "main").await;
        assert!(matches!(error, GitError::BaseNotACommit { kind, .. } if kind == name));
    }
}

#[tokio::test]
async fn a_path_without_a_repository_says_what_is_missing() {
    let lab = Lab::new();
    let base = lab.head();
    fs_err::create_dir(lab.root.join("plain")).unwrap();
    fs_err::create_dir(lab.root.join("pointing")).unwrap();
    fs_err::write(lab.root.join("pointing/.git"), "gitdir: nowhere\n").unwrap();
    for (name, reason) in [
        ("absent", "does not exist"),
        ("plain", "no HEAD"),
        ("pointing", "no HEAD"),
    ] {
        let path = lab.root.join(name);
        let error = lab
            .git
            .check_base(&path, &base, &main_branch())
            .await
            .unwrap_err();
        assert!(matches!(error, GitError::NotARepository { .. }), "{error}");
        assert!(
            error.is_invalid_task() && error.to_string().contains(reason),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_sha256_repository_is_refused_by_name() {
    let lab = Lab::empty();
    lab.raw(&[
        "init",
        "--quiet",
        "--object-format=sha256",
        "--initial-branch=main",
        ".",
    ]);
    lab.raw(&["commit", "--quiet", "--allow-empty", "-m", "base"]);
    let full = lab.raw(&["rev-parse", "HEAD"]);
    // Its first 40 digits are a valid abbreviation there.
    for commit in [full[..40].to_owned(), "1".repeat(40)] {
        let base = commit.parse().unwrap();
        let error = lab
            .git
            .check_base(&lab.repo, &base, &main_branch())
            .await
            .unwrap_err();
        assert!(
            matches!(&error, GitError::ObjectFormat { format, .. } if format == "sha256"),
            "{error}"
        );
    }
    let error = lab.git.resolve(&lab.repo, "HEAD").await.unwrap_err();
    assert!(matches!(error, GitError::ObjectFormat { .. }), "{error}");
}

#[tokio::test]
async fn bare_shallow_and_linked_repositories_serve() {
    let lab = Lab::new();
    lab.commit_all("second");
    let tip = lab.head();
    let url = format!("file://{}", lab.repo.display());
    for (name, options) in [("bare", &["--bare"][..]), ("shallow", &["--depth=1"])] {
        let path = lab.root.join(name);
        let target = path.to_str().unwrap();
        let mut arguments = vec!["clone", "--quiet"];
        arguments.extend(options);
        arguments.extend([url.as_str(), target]);
        lab.raw(&arguments);
    }
    lab.raw(&["worktree", "add", "--quiet", "-b", "linked", "../linked"]);
    symlink("repo", lab.root.join("link")).unwrap();

    for name in ["repo", "bare", "shallow", "linked", "link"] {
        let path = lab.root.join(name);
        let base = lab
            .git
            .check_base(&path, &tip, &main_branch())
            .await
            .unwrap();
        let workspace = lab
            .git
            .prepare(&base, &lab.worktrees, &lab.runtime)
            .await
            .unwrap();
        assert_eq!(
            raw_in(workspace.path(), &["status", "--porcelain"]),
            "",
            "{name}"
        );
        assert_eq!(
            raw_in(workspace.path(), &["log", "-1", "--format=%s"]),
            "second",
            "{name}"
        );
        raw_in(workspace.path(), &["log"]);
        workspace.remove().await.unwrap();
    }
}

#[tokio::test]
async fn a_repository_with_relative_alternates_serves() {
    let lab = Lab::new();
    let clone = lab.root.join("clone");
    lab.raw(&["clone", "--quiet", "--shared", ".", clone.to_str().unwrap()]);
    let alternates = clone.join(".git/objects/info/alternates");
    fs_err::write(alternates, "../../../repo/.git/objects\n").unwrap();
    let base = lab
        .git
        .check_base(&clone, &lab.head(), &main_branch())
        .await
        .unwrap();
    let workspace = lab
        .git
        .prepare(&base, &lab.worktrees, &lab.runtime)
        .await
        .unwrap();
    assert_eq!(raw_in(workspace.path(), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_repository_is_found_from_a_folder_in_it() {
    let lab = Lab::new();
    let found = Repository::discover(&lab.repo.join("src")).unwrap();
    assert_eq!(found.path(), lab.repo);
    assert!(matches!(
        Repository::discover(&lab.runtime).unwrap_err(),
        GitError::NotARepository { .. }
    ));
}

#[tokio::test]
async fn the_installed_git_is_new_enough() {
    let lab = Lab::empty();
    let version = lab.git.version().await.unwrap();
    assert!(
        version.starts_with(|first: char| first.is_ascii_digit()),
        "{version}"
    );
}

#[test]
fn git_is_looked_for_in_absolute_entries_only() {
    let error = git_workspace::Git::find("bin:.:".as_ref()).unwrap_err();
    assert!(matches!(error, GitError::GitNotFound { .. }), "{error}");
}

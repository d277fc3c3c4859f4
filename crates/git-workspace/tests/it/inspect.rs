//! What an operator asks: revisions, patches, and candidates from another repository.

use git_workspace::{GitError, GitLimits};

use crate::support::{Lab, candidate, raw_in, run, subject};

#[tokio::test]
async fn revisions_resolve_to_commits() {
    let lab = Lab::new();
    let first = lab.head();
    lab.raw(&["tag", "-a", "-m", "annotated", "v1"]);
    let second = lab.commit_all("second");
    for (revision, commit) in [
        ("HEAD", second),
        ("main", second),
        ("v1", first),
        ("HEAD~1", first),
        (first.as_str(), first),
    ] {
        assert_eq!(
            lab.git.resolve(&lab.repo, revision).await.unwrap(),
            commit,
            "{revision}"
        );
    }
    for revision in [
        "absent",
        "HEAD:README",
        "--all",
        "-h",
        "HEAD main",
        "HEAD\nmain",
        "^HEAD",
    ] {
        let error = lab.git.resolve(&lab.repo, revision).await.unwrap_err();
        assert!(
            matches!(error, GitError::UnknownRevision { .. }),
            "{revision}: {error}"
        );
    }
    for revision in ["", "\0", &"a".repeat(1025)] {
        let error = lab.git.resolve(&lab.repo, revision).await.unwrap_err();
        assert!(
            matches!(error, GitError::UnusableArgument { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_linked_work_tree_has_its_own_head() {
    let lab = Lab::new();
    let first = lab.head();
    lab.raw(&["worktree", "add", "--quiet", "--detach", "../linked"]);
    let second = lab.commit_all("second");
    let linked = lab.root.join("linked");
    assert_eq!(lab.git.resolve(&linked, "HEAD").await.unwrap(), first);
    assert_eq!(lab.git.resolve(&linked, "main").await.unwrap(), second);
}

#[tokio::test]
async fn a_diff_is_a_plain_patch_within_the_limit() {
    let lab = Lab::new();
    let base = lab.head();
    lab.raw(&["config", "color.ui", "always"]);
    lab.raw(&["config", "diff.noprefix", "true"]);
    fs_err::write(lab.repo.join("README"), "read you\n").unwrap();
    let tip = lab.commit_all("second");
    let patch = lab.git.diff(&lab.repo, &base, &tip).await.unwrap();
    let text = String::from_utf8(patch.clone()).unwrap();
    assert!(text.starts_with("diff --git a/README b/README\n"), "{text}");
    assert!(text.contains("\n-read me\n+read you\n"), "{text}");

    let length = u64::try_from(patch.len()).unwrap();
    for (output_bytes, fits) in [(length, true), (length - 1, false)] {
        let limits = GitLimits {
            output_bytes,
            ..GitLimits::default()
        };
        let answer = lab
            .git
            .clone()
            .with_limits(limits)
            .diff(&lab.repo, &base, &tip)
            .await;
        match answer {
            Ok(_) => assert!(fits),
            Err(error) => assert!(!fits && matches!(error, GitError::OutputLimit { .. })),
        }
    }
}

#[tokio::test]
async fn a_candidate_is_fetched_from_a_path_or_url() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    let name = candidate(1);
    let commit = workspace
        .commit(&snapshot, &subject("feat: new"), None, &name)
        .await
        .unwrap();
    // A path that a shell would read otherwise.
    let source = lab.root.join("it's a; $(source)");
    lab.raw(&[
        "clone",
        "--quiet",
        "--mirror",
        ".",
        source.to_str().unwrap(),
    ]);

    let url = format!("file://{}", source.display());
    for (number, from) in [source.to_str().unwrap(), &url].into_iter().enumerate() {
        let into = lab.root.join(format!("into{number}"));
        fs_err::create_dir(&into).unwrap();
        raw_in(&into, &["init", "--quiet"]);
        for _ in 0..2 {
            let fetched = lab
                .git
                .fetch_candidate(&into, from.as_ref(), &name, &[])
                .await
                .unwrap();
            assert_eq!(fetched, commit);
        }
        assert_eq!(
            raw_in(&into, &["for-each-ref", "--format=%(refname)"]),
            name.to_string()
        );
        assert!(!into.join(".git/FETCH_HEAD").exists());
    }
}

#[tokio::test]
async fn a_source_of_another_owner_serves() {
    let lab = Lab::new();
    lab.raw(&["update-ref", &candidate(1).to_string(), "HEAD"]);
    if rustix::process::geteuid().is_root() {
        let (ok, _, stderr) = run("chown", &lab.root, &["-R", "65534", "repo"]);
        assert!(ok, "{stderr}");
    }
    let into = lab.root.join("into");
    fs_err::create_dir(&into).unwrap();
    raw_in(&into, &["init", "--quiet"]);
    let from = lab.repo.as_os_str();
    lab.git
        .fetch_candidate(&into, from, &candidate(1), &[])
        .await
        .unwrap();
}

#[tokio::test]
async fn other_sources_are_refused_before_git_runs() {
    let lab = Lab::new();
    for from in [
        "",
        "origin",
        "../repo",
        "ext::sh -c id",
        "http://host/x",
        "git://host/x",
        "--upload-pack=x",
        "host:path",
    ] {
        let error = lab
            .git
            .fetch_candidate(&lab.repo, from.as_ref(), &candidate(1), &[])
            .await
            .unwrap_err();
        assert!(
            matches!(error, GitError::UnusableArgument { .. }),
            "{from}: {error}"
        );
    }
    let error = lab
        .git
        .fetch_candidate(&lab.repo, lab.repo.as_os_str(), &candidate(9), &[])
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            GitError::Failed {
                command: "fetch",
                ..
            }
        ),
        "{error}"
    );
}

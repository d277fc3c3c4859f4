//! The commit and its ref, to the byte.

use git_workspace::{GitError, Identity, Snapshot, Workspace};

use crate::support::{Lab, candidate, subject};

async fn changed(lab: &Lab) -> (Workspace, Snapshot) {
    let mut workspace = lab.workspace().await;
    fs_err::write(workspace.path().join("new"), "new\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    (workspace, snapshot)
}

#[tokio::test]
async fn r52_a_candidate_has_one_parent_the_snapshots_tree_and_the_fixed_identity() {
    let lab = Lab::new();
    // None of this may have a say.
    for (key, value) in [
        ("user.name", "Wrong"),
        ("commit.gpgSign", "true"),
        ("i18n.commitEncoding", "latin1"),
    ] {
        lab.raw(&["config", key, value]);
    }
    let (workspace, snapshot) = changed(&lab).await;
    let text = "fix: größer, it's \"quoted\"";
    let commit = workspace
        .commit(&snapshot, &subject(text), None, &candidate(1))
        .await
        .unwrap();
    let object = lab.raw(&["cat-file", "commit", commit.as_str()]);
    let mut lines = object.lines();
    assert_eq!(lines.next().unwrap(), format!("tree {}", snapshot.tree()));
    assert_eq!(lines.next().unwrap(), format!("parent {}", lab.head()));
    let author = lines.next().unwrap();
    assert!(
        author.starts_with("author Agent Forge <forge@example.invalid> "),
        "{author}"
    );
    let committer = lines.next().unwrap();
    assert!(committer.starts_with("committer Agent Forge <forge@example.invalid> "));
    assert_eq!(lines.collect::<Vec<_>>(), ["", text]);
    let held = lab.raw(&["rev-parse", &candidate(1).to_string()]);
    assert_eq!(held, commit.to_string());
}

#[tokio::test]
async fn the_author_is_the_tasks_and_the_committer_never() {
    let lab = Lab::new();
    let (workspace, snapshot) = changed(&lab).await;
    let author = Identity {
        name: "Ada Lovelace".parse().unwrap(),
        email: "ada@example.invalid".parse().unwrap(),
    };
    let commit = workspace
        .commit(
            &snapshot,
            &subject("feat: engine"),
            Some(&author),
            &candidate(1),
        )
        .await
        .unwrap();
    let names = lab.raw(&[
        "show",
        "-s",
        "--format=%an <%ae> %cn <%ce>",
        commit.as_str(),
    ]);
    assert_eq!(
        names,
        "Ada Lovelace <ada@example.invalid> Agent Forge <forge@example.invalid>"
    );
}

#[tokio::test]
async fn r52_subjects_that_look_like_something_else_are_one_argument() {
    let lab = Lab::new();
    let (workspace, snapshot) = changed(&lab).await;
    for (number, text) in [
        "--amend",
        "# a comment",
        "-m x",
        "fixup! x",
        "a%sb",
        "\"",
        "\\n",
        "Signed-off-by: x",
    ]
    .iter()
    .enumerate()
    {
        let name = candidate(u8::try_from(number).unwrap());
        let commit = workspace
            .commit(&snapshot, &subject(text), None, &name)
            .await
            .unwrap();
        let object = lab.raw(&["cat-file", "commit", commit.as_str()]);
        assert_eq!(object.split_once("\n\n").unwrap().1, *text);
    }
}

#[tokio::test]
async fn a_ref_is_created_once_and_never_moved() {
    let lab = Lab::new();
    let (workspace, snapshot) = changed(&lab).await;
    let name = candidate(1);
    let first = workspace
        .commit(&snapshot, &subject("one"), None, &name)
        .await
        .unwrap();
    let error = workspace
        .commit(&snapshot, &subject("two"), None, &name)
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::CandidateExists { .. }), "{error}");
    assert_eq!(
        lab.raw(&["rev-parse", &name.to_string()]),
        first.to_string()
    );
    workspace
        .commit(&snapshot, &subject("two"), None, &candidate(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn packed_refs_and_a_folder_in_the_way_are_handled() {
    let lab = Lab::new();
    let (workspace, snapshot) = changed(&lab).await;
    let name = candidate(1);
    workspace
        .commit(&snapshot, &subject("one"), None, &name)
        .await
        .unwrap();
    lab.raw(&["pack-refs", "--all"]);
    let error = workspace
        .commit(&snapshot, &subject("two"), None, &name)
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::CandidateExists { .. }), "{error}");

    lab.raw(&["update-ref", &format!("{}/x", candidate(2)), "HEAD"]);
    let error = workspace
        .commit(&snapshot, &subject("two"), None, &candidate(2))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            GitError::Failed {
                command: "update-ref",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn nothing_is_committed_without_a_change() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let snapshot = workspace.snapshot().await.unwrap();
    let error = workspace
        .commit(&snapshot, &subject("none"), None, &candidate(1))
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::NoChanges), "{error}");
    assert_eq!(lab.raw(&["for-each-ref", "refs/agent-forge"]), "");
}

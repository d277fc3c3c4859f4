//! HEAD of the workspace has to stay where it is.

use serde_json::json;
use test_case::test_case;

use crate::fake::{bare, place};
use crate::repository::{git, repository};
use crate::support::Session;

const DONE: &str = "\nprintf '%s' \"$good\" >\"$final\"";
const COMMIT: &str =
    "git -c user.name=x -c user.email=x@example.invalid commit -qm mine --allow-empty";

#[test_case(COMMIT; "a_commit")]
#[test_case("git -c user.name=x -c user.email=x@example.invalid commit -q --amend -m mine"; "an_amended_commit")]
#[test_case("git checkout -q --detach"; "a_detached_head")]
#[test_case("git checkout -qb mine"; "another_branch_at_the_same_commit")]
#[test_case("echo 1111111111111111111111111111111111111111 >.git/refs/heads/main"; "a_branch_moved_by_hand")]
#[test_case("git update-ref -d refs/heads/main"; "a_branch_that_is_gone")]
#[test_case("rm -rf .git; git init -q -b main ."; "another_repository")]
#[test_case("rm -rf .git"; "no_repository")]
fn a_head_that_moved_fails_the_operation(body: &str) {
    let place = place(&format!("{body}{DONE}"));
    place.run(&[]).failed("execution_failed", "HEAD");
}

#[test]
fn reading_and_packing_leave_head_where_it_is() {
    let place = place(&format!(
        "echo x >new.txt; git status >/dev/null; git diff; git log -1; git add .; git pack-refs --all; git gc -q{DONE}"
    ));
    let end = place.run(&[]);
    assert_eq!(end.answer()["type"], "result", "{}", end.stderr);
}

#[test]
fn a_linked_work_tree_is_a_workspace_too() {
    for (body, good) in [("echo x >new.txt", true), (COMMIT, false)] {
        let place = bare(&format!("{body}{DONE}"));
        repository(&place.start());
        let workspace = place.workspace();
        git(
            &place.start(),
            &["worktree", "add", "-q", workspace.to_str().unwrap()],
        );
        let end = place.run(&[]);
        if good {
            assert_eq!(end.answer()["type"], "result", "{}", end.stderr);
        } else {
            end.failed("execution_failed", "HEAD");
        }
    }
}

#[test]
fn a_workspace_without_a_repository_is_not_touched() {
    let place = bare(": >touched");
    place
        .run(&[])
        .failed("execution_failed", "HEAD of the workspace");
    assert!(!place.workspace().join("touched").exists());
}

#[test]
fn a_workspace_that_is_none_is_an_invalid_request() {
    let place = place(DONE);
    let missing = place.workspace().join("missing");
    Session::start(&place, &[], &["workspace_edit"], 60_000, "edit", &missing)
        .end()
        .failed("invalid_request", "missing` is no directory");
}

#[test]
fn nothing_that_the_repository_configures_is_run() {
    let place = place(&format!(
        "for name in core.fsmonitor core.sshCommand core.pager diff.external; do\n\
             git config $name \"touch $FORGE_TEST_MARKER\"\n\
         done\n\
         printf '#!/bin/sh\\ntouch %s\\n' \"$FORGE_TEST_MARKER\" >.git/hooks/post-index-change\n\
         chmod +x .git/hooks/post-index-change{DONE}"
    ));
    let mut place = place;
    place.set("FORGE_TEST_MARKER", place.seen());
    let end = place.run(&[]);
    assert_eq!(
        end.answer(),
        json!({"type": "result", "commit_subject": "feat: add it", "summary": "Added it.", "changes": ["one <file>", "two"]}),
        "{}",
        end.stderr
    );
    assert!(!place.seen().exists());
}

//! Workspaces made ahead, repositories that are damaged, Workers killed in the midst of git work.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::bed::{Bed, Worker, until};
use crate::gate::{ATTEMPT, JOB, failed};

/// The latest workspace that waits, as soon as the Worker has said so `times` times.
async fn made_ahead(worker: &Worker, times: usize) -> PathBuf {
    const SAYS: &str = "a workspace waits for the next job";
    let has_said = || worker.log().matches(SAYS).count() >= times;
    until("a workspace made ahead", has_said).await;
    let log = worker.log();
    let line = log.lines().rfind(|line| line.contains(SAYS)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    PathBuf::from(line["workspace"].as_str().unwrap())
}

fn reference() -> String {
    format!("refs/agent-forge/candidates/{JOB}/{ATTEMPT}")
}

#[tokio::test]
async fn a_workspace_made_ahead_is_used_once_and_gone_after_its_job() {
    let change = |bed: &mut Bed| bed.config["prepared_workspaces"] = json!(1);
    let (bed, _gate, worker, mut slot) = Bed::connected_with(change).await;
    let mut seen = Vec::new();
    for round in 1..=3 {
        let lease = bed.coding_lease("pwd > answer.txt", json!([]), |_| {});
        let (_, answer) = slot.run(lease).await;
        assert!(answer.contains("candidate_sha"), "{answer}");
        let used = bed.git(&["show", &format!("{}:answer.txt", reference())]);
        assert!(!fs::exists(&used).unwrap(), "{used} is still there");
        if let Some(waited) = seen.last() {
            assert_eq!(*waited, used, "the one that waited was not used");
        }
        bed.git(&["update-ref", "-d", &reference()]);
        let next = made_ahead(&worker, round).await.display().to_string();
        assert!(
            !seen.contains(&next) && next != used,
            "{next} was there before"
        );
        seen.push(next);
    }
    until("what was used to be removed", || {
        bed.in_folders().len() == 2
    })
    .await;
}

#[tokio::test]
async fn r44_a_workspace_made_ahead_that_went_bad_is_thrown_away_and_the_job_makes_its_own() {
    let change = |bed: &mut Bed| bed.config["prepared_workspaces"] = json!(1);
    let (bed, _gate, worker, mut slot) = Bed::connected_with(change).await;
    let spoil: [&dyn Fn(&Path); 4] = [
        &|path| fs::write(path.join("README"), "HELLO\n").unwrap(),
        &|path| fs::write(path.join("stray"), "of another process").unwrap(),
        &|path| fs::remove_dir_all(path).unwrap(),
        &|path| {
            let runtime = path.ancestors().nth(2).unwrap().join("runtime");
            for entry in fs::read_dir(runtime).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    fs::remove_dir_all(path).unwrap();
                }
            }
        },
    ];
    for number in 0..=spoil.len() {
        let lease = bed.coding_lease("ls > answer.txt", json!([["./check.sh"]]), |_| {});
        let (_, answer) = slot.run(lease).await;
        assert!(answer.contains("candidate_sha"), "{answer}");
        let changed = bed.git(&["diff", "--name-only", &bed.base, &reference()]);
        assert_eq!(changed, "answer.txt");
        assert_eq!(worker.log().matches("not as it was made").count(), number);
        bed.git(&["update-ref", "-d", &reference()]);
        let waiting = made_ahead(&worker, number + 1).await;
        if let Some(spoil) = spoil.get(number) {
            spoil(&waiting);
        }
    }
}

#[tokio::test]
async fn r44_a_workspace_made_ahead_survives_housekeeping_in_the_repository() {
    let change = |bed: &mut Bed| bed.config["prepared_workspaces"] = json!(1);
    let (bed, _gate, worker, mut slot) = Bed::connected_with(change).await;
    for round in 1..=2 {
        let lease = bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |_| {});
        let (_, answer) = slot.run(lease).await;
        assert!(answer.contains("candidate_sha"), "{answer}");
        made_ahead(&worker, round).await;
        bed.git(&["update-ref", "-d", &reference()]);
        bed.git(&["repack", "-a", "-d", "-q"]);
        bed.git(&["gc", "-q", "--prune=now"]);
    }
    assert!(!worker.log().contains("not as it was made"));
    bed.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn r44_damage_in_the_repository_fails_the_preparation_and_is_named_in_the_log() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    let blob = bed.git(&["rev-parse", "HEAD:README"]);
    let tree = bed.git(&["rev-parse", "HEAD^{tree}"]);
    for (object, reason) in [
        (blob, "worktree_setup_failed"),
        (tree, "preparation_failed"),
    ] {
        let path = format!(".git/objects/{}/{}", &object[..2], &object[2..]);
        let (path, aside) = (bed.repository().join(path), bed.root.join(&object));
        fs::rename(&path, &aside).unwrap();
        let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
        let (evidence, answer) = slot.run(lease).await;
        assert_eq!(answer, failed("execution_failed", "retryable"));
        assert_eq!(evidence.len(), 1);
        assert_eq!(evidence[0]["phase"], "preparation");
        assert_eq!(evidence[0]["reason"], reason);
        fs::rename(&aside, &path).unwrap();
        assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
        let log = worker.log();
        let named = log.contains(&object) || log.contains("its tree is missing");
        assert!(named, "{log}");
    }
    // Mended, it serves again.
    let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
    let (_, answer) = slot.run(lease).await;
    assert!(answer.contains("candidate_sha"), "{answer}");
}

#[tokio::test]
async fn r47_a_base_that_cannot_be_reached_is_an_invalid_task_and_named_in_the_log() {
    let (mut bed, _gate, worker, mut slot) = Bed::connected().await;
    bed.git(&["checkout", "-q", "-b", "aside"]);
    bed.git(&["commit", "-q", "--allow-empty", "-m", "aside"]);
    let aside = bed.git(&["rev-parse", "HEAD"]);
    for (base, text) in [
        (aside, "is not an ancestor of branch `main`"),
        ("1".repeat(40), "has no commit"),
    ] {
        bed.base.clone_from(&base);
        let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
        let (_, answer) = slot.run(lease).await;
        assert_eq!(answer, failed("invalid_task", "terminal"));
        let log = worker.log();
        assert!(log.contains(text) && log.contains(&base), "{log}");
    }
}

#[tokio::test]
async fn r49_git_variables_of_the_host_reach_no_git() {
    let marker = std::cell::OnceCell::new();
    let (bed, _gate, _worker, mut slot) = Bed::connected_with(|bed| {
        let trap = bed.root.join("bin/trap");
        let path = bed.root.join("marker");
        fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", path.display())).unwrap();
        fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        marker.set(path).unwrap();
        let trap = trap.display().to_string();
        for (name, value) in [
            ("GIT_DIR", "/nonexistent"),
            ("GIT_WORK_TREE", "/nonexistent"),
            ("GIT_INDEX_FILE", "/nonexistent/index"),
            ("GIT_OBJECT_DIRECTORY", "/nonexistent/objects"),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nonexistent/objects"),
            ("GIT_EXEC_PATH", "/nonexistent"),
            ("GIT_NAMESPACE", "elsewhere"),
            ("GIT_AUTHOR_NAME", "Wrong"),
            ("GIT_COMMITTER_EMAIL", "wrong@example.invalid"),
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", &trap),
            ("GIT_CONFIG_KEY_1", "gpg.program"),
            ("GIT_CONFIG_VALUE_1", &trap),
            ("GIT_CONFIG_GLOBAL", "/nonexistent/config"),
            ("GIT_CONFIG_PARAMETERS", "'commit.gpgSign=true'"),
            ("GIT_SSH_COMMAND", &trap),
            ("GIT_EXTERNAL_DIFF", &trap),
            ("GIT_EDITOR", &trap),
            ("GIT_PAGER", &trap),
            ("GIT_TRACE", "/nonexistent/trace"),
        ] {
            bed.set_env(name, Some(value));
        }
    })
    .await;
    let lease = bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |_| {});
    let (_, answer) = slot.run(lease).await;
    assert!(answer.contains("candidate_sha"), "{answer}");
    let shown = bed.git(&["show", "-s", "--format=%an|%ce|%P", &reference()]);
    let base = &bed.base;
    assert_eq!(shown, format!("Agent Forge|forge@example.invalid|{base}"));
    assert!(!marker.get().unwrap().exists());
}

#[tokio::test]
async fn r51_ignored_files_alone_are_no_changes() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    fs::write(bed.repository().join(".git/info/exclude"), "made/\n").unwrap();
    let lease = bed.coding_lease("mkdir made && echo x > made/file", json!([]), |_| {});
    let (evidence, answer) = slot.run(lease).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_eq!(evidence[0]["reason"], "no_changes");
    assert_eq!(bed.candidate_refs(), "");
}

#[tokio::test]
async fn r51_a_nested_repository_is_an_invalid_change_and_named_in_the_log() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    let lease = bed.coding_lease(
        "git init -q nested; echo x > nested/file",
        json!([]),
        |_| {},
    );
    let (evidence, answer) = slot.run(lease).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_eq!(evidence[0]["reason"], "invalid_workspace_change");
    let log = worker.log();
    assert!(
        log.contains("`nested` is a git repository of its own"),
        "{log}"
    );
}

/// Killed at moments that lie all over the git work of a job.
#[tokio::test]
async fn r44_after_kill_9_at_any_moment_the_next_start_goes_on_and_the_repository_is_whole() {
    let (bed, gate, mut worker, mut slot) = Bed::connected_with(|bed| {
        for number in 0..300 {
            fs::write(bed.repository().join(format!("file-{number}")), "x\n").unwrap();
        }
        bed.git(&["add", "."]);
        bed.git(&["commit", "-q", "-m", "many"]);
        bed.base = bed.git(&["rev-parse", "HEAD"]);
        bed.config["prepared_workspaces"] = json!(1);
    })
    .await;
    for round in 0_u64..8 {
        let lease = bed.coding_lease("echo y > file-7; echo x > answer.txt", json!([]), |lease| {
            lease["attempt_id"] = json!(format!("{round:032x}"));
        });
        slot.say(lease).await;
        tokio::time::sleep(Duration::from_millis(25 * round)).await;
        worker.kill().await;
        worker = bed.start();
        slot = gate.accept().await;
        assert!(bed.in_folders().is_empty(), "{:?}", bed.in_folders());
    }
    let lease = bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |_| {});
    let (_, answer) = slot.run(lease).await;
    assert!(answer.contains("candidate_sha"), "{answer}");
    bed.git(&["fsck", "--strict"]);
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(0));
    assert!(bed.in_folders().is_empty(), "{:?}", bed.in_folders());
}

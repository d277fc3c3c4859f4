//! Coding jobs that end with a candidate, and those that end before one.

use std::fs;

use serde_json::json;

use crate::bed::{Bed, TOKEN};
use crate::gate::{ATTEMPT, JOB, failed, message};

fn reference() -> String {
    format!("refs/agent-forge/candidates/{JOB}/{ATTEMPT}")
}

#[tokio::test]
async fn a_candidate_descends_from_the_base_and_nothing_else_changes() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let before = bed.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
    let lease = bed.coding_lease(
        "echo conformance > answer.txt",
        json!([["./check.sh"], ["sh", "-c", "echo loud; echo louder >&2"]]),
        |_| {},
    );
    let (evidence, answer) = slot.run(lease).await;
    let sha = bed.git(&["rev-parse", &reference()]);
    assert_eq!(
        answer,
        message("result", &format!(",\"candidate_sha\":\"{sha}\""))
    );

    let format = "--format=%P|%an|%ae|%cn|%ce|%B";
    let shown = bed.git(&["show", "-s", format, &sha]);
    let forge = "Agent Forge|forge@example.invalid";
    assert_eq!(
        shown.trim_end(),
        format!("{}|{forge}|{forge}|chore: apply coding task", bed.base)
    );
    assert_eq!(
        bed.git(&["show", &format!("{sha}:answer.txt")]),
        "conformance"
    );
    assert_eq!(
        bed.git(&["diff", "--name-only", &bed.base, &sha]),
        "answer.txt"
    );

    assert_eq!(evidence.len(), 2);
    for (index, record) in evidence.iter().enumerate() {
        assert_eq!(record["phase"], "scoped_check");
        assert_eq!(record["reason"], "scoped_check_passed");
        assert_eq!(record["check_index"], index);
        assert_eq!(record["exit_code"], 0);
        assert_eq!(record["base_sha"], bed.base.as_str());
        assert_eq!(record["candidate_sha"], sha.as_str());
        assert!(record["duration_ms"].as_u64().unwrap() < 60_000);
    }
    assert!(evidence[0].get("output").is_none());
    assert_eq!(evidence[1]["output"], "[REDACTED]");
    assert_eq!(evidence[1]["output_redacted"], true);
    assert!(evidence[1].get("output_truncated").is_none());

    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
    bed.git(&["update-ref", "-d", &reference()]);
    assert_eq!(
        bed.git(&["for-each-ref", "--format=%(objectname) %(refname)"]),
        before
    );
}

#[tokio::test]
async fn the_messages_are_what_a_gate_expects_byte_for_byte() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    slot.say(bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |_| {}))
        .await;
    let evidence = slot.answer().await;
    // Nothing follows before the evidence is acknowledged.
    assert_eq!(bed.leftovers().len(), 2, "{:?}", bed.leftovers());
    let sha = bed.git(&["rev-parse", &reference()]);
    let parsed: serde_json::Value = serde_json::from_str(&evidence).unwrap();
    let record = &parsed["evidence"][0];
    let expected = message(
        "evidence",
        &format!(
            ",\"evidence\":[{{\"evidence_id\":{},\"phase\":\"scoped_check\",\"reason\":\"scoped_check_passed\",\"check_index\":0,\"exit_code\":0,\"duration_ms\":{},\"base_sha\":\"{}\",\"candidate_sha\":\"{sha}\"}}]",
            record["evidence_id"], record["duration_ms"], bed.base
        ),
    );
    assert_eq!(evidence, expected);
    slot.ack().await;
    assert_eq!(
        slot.answer().await,
        message("result", &format!(",\"candidate_sha\":\"{sha}\""))
    );
    assert!(bed.leftovers().is_empty(), "cleaned up before the result");
    slot.ack().await;
}

#[tokio::test]
async fn author_subject_and_report_come_through() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let instruction = "#subject -n feat: \"quoted\" #1\n#report did <it> & more|first change|second\necho x > answer.txt";
    let lease = bed.coding_lease(instruction, json!(null), |lease| {
        lease["task"]["commit_author_name"] = json!("Ada Lovelace");
        lease["task"]["commit_author_email"] = json!("ada@example.org");
    });
    let (evidence, answer) = slot.run(lease).await;
    assert!(evidence.is_empty(), "no checks, no evidence: {evidence:?}");
    let sha = bed.git(&["rev-parse", &reference()]);
    let report = "{\\\"summary\\\":\\\"did \\\\u003cit\\\\u003e \\\\u0026 more\\\",\\\"changes\\\":[\\\"first change\\\",\\\"second\\\"]}";
    let rest = format!(",\"result\":\"{report}\",\"candidate_sha\":\"{sha}\"");
    assert_eq!(answer, message("result", &rest));
    let shown = bed.git(&["show", "-s", "--format=%an|%ae|%cn|%ce|%s", &sha]);
    let expected =
        "Ada Lovelace|ada@example.org|Agent Forge|forge@example.invalid|-n feat: \"quoted\" #1";
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn r51_a_plugin_that_changes_nothing_ends_with_no_changes() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let (evidence, answer) = slot
        .run(bed.coding_lease("true", json!([["true"]]), |_| {}))
        .await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0]["phase"], "workspace_validation");
    assert_eq!(evidence[0]["reason"], "no_changes");
    assert_eq!(evidence[0]["base_sha"], bed.base.as_str());
    assert_eq!(bed.candidate_refs(), "");
    assert!(bed.leftovers().is_empty());
}

#[tokio::test]
async fn a_plugin_that_commits_is_refused() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    let instruction =
        "echo x > answer.txt; git add . && git -c user.name=x -c user.email=x@x commit -q -m x";
    let (evidence, answer) = slot
        .run(bed.coding_lease(instruction, json!([]), |_| {}))
        .await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_eq!(evidence[0]["reason"], "invalid_workspace_change");
    assert_eq!(bed.candidate_refs(), "");
    let log = worker.log();
    assert_eq!(log.matches("is no longer at base").count(), 1, "{log}");
}

#[tokio::test]
async fn a_prepared_repository_of_the_gate_needs_no_registration() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let prepared = bed.root.join("prepared.git");
    bed.git(&["clone", "-q", "--bare", ".", prepared.to_str().unwrap()]);
    let lease = bed.coding_lease("echo x > answer.txt", json!([]), |lease| {
        lease["task"]["repository_id"] = json!("unregistered");
        lease["task"]["repository"] = json!(prepared);
        lease["policy"]["execution"]["repository_id"] = json!("unregistered");
    });
    let (_, answer) = slot.run(lease).await;
    let sha = crate::bed::git(&prepared, &["rev-parse", &reference()]);
    assert_eq!(
        answer,
        message("result", &format!(",\"candidate_sha\":\"{sha}\""))
    );
    assert_eq!(bed.candidate_refs(), "");
}

#[tokio::test]
async fn plugin_and_check_see_what_they_may_and_nothing_more() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let sees = bed.root.join("sees");
    let plugin_saw = sees.join("plugin").display().to_string();
    let check_saw = sees.join("check").display().to_string();
    fs::create_dir(&sees).unwrap();
    let instruction = format!(
        "env | sort > {plugin_saw}; ls -l /proc/self/fd | sed 's/.* -> //' > {plugin_saw}-fds; echo x > answer.txt"
    );
    let check = format!(
        "env | sort > {check_saw}; pwd > {check_saw}-pwd; stat -c %a $HOME $TMPDIR $XDG_CACHE_HOME > {check_saw}-modes"
    );
    let lease = bed.coding_lease(&instruction, json!([["sh", "-c", check]]), |_| {});
    let (evidence, _) = slot.run(lease).await;
    assert_eq!(evidence[0]["reason"], "scoped_check_passed");

    let plugin = fs::read_to_string(&plugin_saw).unwrap();
    let names = |text: &str| -> Vec<String> {
        let own = ["PWD", "_", "SHLVL", "OLDPWD", "LC_CTYPE"]; // of the shell and of python
        text.lines()
            .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
            .filter(|name| !own.contains(&name.as_str()))
            .collect()
    };
    assert_eq!(
        names(&plugin),
        ["PATH", "PLUGIN_ONLY", "TMPDIR"],
        "{plugin}"
    );
    let check = fs::read_to_string(&check_saw).unwrap();
    assert_eq!(
        names(&check),
        ["HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME"],
        "{check}"
    );
    let runtime = bed
        .root
        .join("runtime/forge-runtime-")
        .display()
        .to_string();
    for line in check
        .lines()
        .filter(|line| line.starts_with("HOME=") || line.starts_with("TMPDIR="))
    {
        assert!(line.contains(&runtime), "{line}");
    }
    let pwd = fs::read_to_string(format!("{check_saw}-pwd")).unwrap();
    let worktree = bed
        .root
        .join("worktrees/forge-worktree-")
        .display()
        .to_string();
    assert!(pwd.starts_with(&worktree), "{pwd}");
    assert_eq!(
        fs::read_to_string(format!("{check_saw}-modes")).unwrap(),
        "700\n700\n700\n"
    );
    for canary in [TOKEN, "canary-of-the-host"] {
        assert!(!plugin.contains(canary) && !check.contains(canary));
    }
    let descriptors = fs::read_to_string(format!("{plugin_saw}-fds")).unwrap();
    assert!(!descriptors.contains("socket:"), "{descriptors}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_token_is_gone_from_the_environment_of_the_worker_too() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    // Root reads it although the process is closed to others; that is what this is for.
    match fs::read(format!("/proc/{}/environ", worker.pid())) {
        Ok(environment) => {
            let text = String::from_utf8_lossy(&environment);
            assert!(!text.contains(TOKEN), "{text}");
            assert!(text.contains("canary-of-the-host"), "{text}");
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    // It goes on serving, and connects with the token that it remembers.
    let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
    let (evidence, _) = slot.run(lease).await;
    assert!(evidence.is_empty(), "{evidence:?}");
}

#[tokio::test]
async fn unless_told_otherwise_the_next_workspace_is_made_while_the_slot_idles() {
    let change = |bed: &mut Bed| {
        let config = bed.config.as_object_mut().unwrap();
        config.remove("prepared_workspaces");
    };
    let (bed, _gate, mut worker, mut slot) = Bed::connected_with(change).await;
    let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
    assert!(slot.run(lease).await.1.contains("candidate_sha"));
    crate::bed::until("a workspace made ahead", || bed.leftovers().len() == 2).await;
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(0));
    assert!(bed.in_folders().is_empty(), "{:?}", bed.in_folders());
}

#[tokio::test]
async fn workspaces_made_ahead_serve_later_jobs_also_at_another_base() {
    let change = |bed: &mut Bed| bed.config["prepared_workspaces"] = json!(1);
    let (mut bed, _gate, mut worker, mut slot) = Bed::connected_with(change).await;
    for round in 0..3 {
        if round == 2 {
            fs::write(bed.repository().join("later"), "x").unwrap();
            bed.git(&["add", "."]);
            bed.git(&["commit", "-q", "-m", "second"]);
            bed.base = bed.git(&["rev-parse", "HEAD"]);
        }
        let lease = bed.coding_lease("ls > answer.txt", json!([["./check.sh"]]), |_| {});
        let (_, answer) = slot.run(lease).await;
        assert!(answer.contains("candidate_sha"), "{answer}");
        let sha = bed.git(&["rev-parse", &reference()]);
        assert_eq!(bed.git(&["show", "-s", "--format=%P", &sha]), bed.base);
        let files = bed.git(&["show", &format!("{sha}:answer.txt")]);
        assert_eq!(files.contains("later"), round == 2, "{files}");
        bed.git(&["update-ref", "-d", &reference()]);
        // One workspace and one folder wait for the next job.
        crate::bed::until("a workspace made ahead", || bed.leftovers().len() == 2).await;
    }
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(0));
    assert!(bed.in_folders().is_empty(), "{:?}", bed.in_folders());
}

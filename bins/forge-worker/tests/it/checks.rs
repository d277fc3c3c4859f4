//! Declared checks: their order, their environment, and every way in which one fails.

use serde_json::{Value, json};

use crate::bed::{Bed, processes_with, unique_sleep};
use crate::gate::failed;

async fn run(tests: Value, change: impl FnOnce(&mut Value)) -> (Bed, Vec<Value>, String) {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let lease = bed.coding_lease("echo x > answer.txt", tests, change);
    let (evidence, answer) = slot.run(lease).await;
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
    (bed, evidence, answer)
}

#[tokio::test]
async fn the_first_failure_ends_the_list_and_makes_no_commit() {
    let tests = json!([["true"], ["sh", "-c", "exit 3"], ["touch", "never"]]);
    let (bed, evidence, answer) = run(tests, |_| {}).await;
    assert_eq!(answer, failed("scoped_test_failed", "terminal"));
    assert_eq!(evidence.len(), 2);
    assert_eq!(evidence[0]["reason"], "scoped_check_passed");
    assert_eq!(evidence[1]["reason"], "scoped_check_failed");
    assert_eq!(evidence[1]["exit_code"], 3);
    assert_eq!(evidence[1]["check_index"], 1);
    for record in &evidence {
        assert!(record.get("candidate_sha").is_none(), "{record}");
    }
    assert_eq!(bed.candidate_refs(), "");
}

#[tokio::test]
async fn output_is_never_sent_and_truncation_is_said() {
    let secret = "printed-secret";
    let script = format!("printf {secret}");
    let long = "i=0; while [ $i -lt 100 ]; do printf 0123456789012345678901234567890123456789; i=$((i+1)); done";
    let tests = json!([["sh", "-c", script], ["sh", "-c", long]]);
    let (_, evidence, _) = run(tests, |_| {}).await;
    assert_eq!(evidence[0]["output"], "[REDACTED]");
    assert!(evidence[0].get("output_truncated").is_none());
    assert_eq!(evidence[1]["output"], "[REDACTED]");
    assert_eq!(evidence[1]["output_redacted"], true);
    assert_eq!(evidence[1]["output_truncated"], true);
    assert_eq!(evidence[1]["reason"], "scoped_check_passed");
    assert!(!format!("{evidence:?}").contains(secret));
}

#[tokio::test]
async fn exactly_the_output_limit_is_not_truncated() {
    let print = |count: u32| format!("head -c {count} /dev/zero");
    let tests = json!([["sh", "-c", print(2048)], ["sh", "-c", print(2049)]]);
    let (_, evidence, _) = run(tests, |_| {}).await;
    assert!(evidence[0].get("output_truncated").is_none());
    assert_eq!(evidence[1]["output_truncated"], true);
}

#[tokio::test]
async fn a_check_that_changes_the_tree_spoils_the_candidate() {
    for script in [
        "echo y > answer.txt",
        "echo y > untracked",
        "rm README",
        "chmod +x README",
    ] {
        let (bed, evidence, answer) = run(json!([["sh", "-c", script]]), |_| {}).await;
        assert_eq!(answer, failed("execution_failed", "retryable"), "{script}");
        assert_eq!(evidence.len(), 2, "{script}");
        assert_eq!(evidence[0]["reason"], "scoped_check_passed");
        assert!(evidence[0].get("candidate_sha").is_none());
        assert_eq!(evidence[1]["phase"], "candidate_commit");
        assert_eq!(evidence[1]["reason"], "candidate_commit_failed");
        assert_eq!(bed.candidate_refs(), "", "{script}");
    }
}

#[tokio::test]
async fn a_daemon_with_its_own_output_is_killed_and_the_check_passes() {
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} </dev/null >/dev/null 2>&1 & sleep 0.05");
    let (_, evidence, answer) = run(json!([["sh", "-c", script]]), |_| {}).await;
    assert_eq!(evidence[0]["reason"], "scoped_check_passed");
    assert!(answer.contains("candidate_sha"));
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
}

#[tokio::test]
async fn a_descendant_that_holds_the_output_fails_the_check() {
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} & sleep 0.05");
    let (bed, evidence, answer) = run(json!([["sh", "-c", script]]), |_| {}).await;
    assert_eq!(answer, failed("scoped_test_failed", "terminal"));
    assert_eq!(evidence[0]["reason"], "scoped_check_failed");
    assert_eq!(evidence[0]["exit_code"], 126);
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert_eq!(bed.candidate_refs(), "");
}

#[tokio::test]
async fn a_check_out_of_time_is_killed_with_all_it_started() {
    let sleep = unique_sleep();
    let script = format!("echo early; setsid sleep {sleep} & sleep {sleep}");
    let limit = |lease: &mut Value| {
        lease["policy"]["execution"]["check_timeout_nanos"] = json!(2_000_000_000);
    };
    let (_, evidence, answer) = run(json!([["sh", "-c", script]]), limit).await;
    assert_eq!(answer, failed("scoped_test_failed", "terminal"));
    assert_eq!(evidence[0]["reason"], "scoped_check_timeout");
    assert!(evidence[0].get("exit_code").is_none());
    assert_eq!(evidence[0]["duration_ms"], 2000);
    assert_eq!(evidence[0]["output"], "[REDACTED]");
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
}

#[tokio::test]
async fn a_check_killed_by_a_signal_has_no_exit_code() {
    let (_, evidence, _) = run(json!([["sh", "-c", "kill -9 $$"]]), |_| {}).await;
    assert_eq!(evidence[0]["reason"], "scoped_check_failed");
    assert!(evidence[0].get("exit_code").is_none());
}

#[tokio::test]
async fn without_path_a_bare_name_is_not_found() {
    let no_path = |lease: &mut Value| {
        lease["policy"]["execution"]["environment"] = json!(["PLUGIN_ONLY"]);
    };
    let (_, evidence, answer) = run(json!([["true"]]), no_path).await;
    assert_eq!(answer, failed("scoped_test_failed", "terminal"));
    assert_eq!(evidence[0]["reason"], "scoped_check_failed");
    assert!(evidence[0].get("exit_code").is_none());
    let no_path = |lease: &mut Value| {
        lease["policy"]["execution"]["environment"] = json!([]);
    };
    let (_, evidence, _) = run(json!([["/bin/true"], ["./check.sh"]]), no_path).await;
    assert_eq!(evidence.len(), 2);
    assert_eq!(evidence[1]["reason"], "scoped_check_passed");
}

#[tokio::test]
async fn relative_names_and_path_entries_mean_the_workspace() {
    let gate = crate::gate::Gate::new().await;
    let mut bed = Bed::new(&gate.url());
    bed.set_env("PATH", Some("tools:/usr/bin:/bin"));
    let _worker = bed.start();
    let mut slot = gate.accept().await;
    let instruction = "mkdir tools; printf '#!/bin/sh\\nexit 7\\n' > tools/special; chmod +x tools/special; echo x > answer.txt";
    let (evidence, _) = slot
        .run(bed.coding_lease(instruction, json!([["./check.sh"], ["special"]]), |_| {}))
        .await;
    assert_eq!(evidence[0]["exit_code"], 0);
    assert_eq!(evidence[1]["exit_code"], 7);
}

#[tokio::test]
async fn a_program_that_is_not_there_fails_the_check() {
    for argv in [
        json!(["/nonexistent/program"]),
        json!(["./nonexistent"]),
        json!(["README"]),
        json!(["./README"]),
    ] {
        let (_, evidence, answer) = run(json!([argv]), |_| {}).await;
        assert_eq!(answer, failed("scoped_test_failed", "terminal"), "{argv}");
        assert_eq!(evidence[0]["reason"], "scoped_check_failed");
        assert!(evidence[0].get("exit_code").is_none());
    }
}

#[tokio::test]
async fn thirty_two_checks_fit_into_one_batch() {
    let tests = vec![json!(["true"]); 32];
    let (_, evidence, answer) = run(json!(tests), |_| {}).await;
    assert_eq!(evidence.len(), 32);
    assert_eq!(evidence[31]["check_index"], 31);
    assert!(answer.contains("candidate_sha"));
    let tests = vec![json!(["true"]); 33];
    let (_, evidence, answer) = run(json!(tests), |_| {}).await;
    assert!(evidence.is_empty());
    assert_eq!(answer, failed("invalid_task", "terminal"));
}

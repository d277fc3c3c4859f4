//! The main job and the ways in which it ends.

use crate::appliance::{Appliance, Setup, words};

const CANDIDATES: &str = "refs/agent-forge/candidates";

#[test]
fn a_task_becomes_a_candidate_whose_parent_is_the_base() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.start_worker();
    let job = appliance.submit(
        "an answer\n",
        &[vec!["grep", "-q", "an answer", "answer.txt"], vec!["true"]],
    );
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{done}\n{}", appliance.logs());
    let candidate = done["candidate_sha"].as_str().unwrap();
    let parents = appliance.git(&["rev-list", "--parents", "-n", "1", candidate]);
    assert_eq!(parents, format!("{candidate} {}", appliance.base()));
    let shown = appliance.git(&["log", "-1", "--format=%an <%ae>|%cn <%ce>|%s", candidate]);
    assert_eq!(
        shown,
        "Agent Forge <forge@example.invalid>|Agent Forge <forge@example.invalid>|chore: apply coding task"
    );
    let changed = appliance.git(&["diff", "--name-status", appliance.base(), candidate]);
    assert_eq!(changed, "A\tanswer.txt");
    let attempt = done["attempt_id"].as_str().unwrap();
    let listed = appliance.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        CANDIDATES,
    ]);
    assert_eq!(listed, format!("{CANDIDATES}/{job}/{attempt} {candidate}"));
    let result = appliance.result(&job);
    let evidence = result["attempts"][0]["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 2, "{result}");
    for record in evidence {
        assert_eq!(record["reason"], "scoped_check_passed");
        assert_eq!(record["candidate_sha"], candidate);
    }
    assert_eq!(
        appliance.git(&["status", "--porcelain"]),
        "",
        "the repository's own tree is untouched"
    );
    assert_eq!(appliance.git(&["rev-parse", "main"]), appliance.base());
}

#[test]
fn subject_and_report_come_from_the_plugin_and_stay_apart_from_evidence() {
    let script = r#"cat > answer.txt
printf '%s' 'feat: answer the task' > "$FORGE_SUBJECT_FILE"
printf '%s' '{"summary":"wrote the answer","changes":["answer.txt holds it"]}' > "$FORGE_REPORT_FILE""#;
    let setup = Setup {
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    let candidate = done["candidate_sha"].as_str().unwrap();
    assert_eq!(
        appliance.git(&["log", "-1", "--format=%s", candidate]),
        "feat: answer the task"
    );
    let (code, out, err) = appliance.forge(&["result", &job]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("self-reported"), "{out}");
    assert!(out.contains("wrote the answer"), "{out}");
}

#[test]
fn a_failed_check_fails_the_job_and_makes_no_commit() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["false"], vec!["true"]]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "failed");
    assert_eq!(done["failure_code"], "scoped_test_failed");
    assert_eq!(appliance.git(&["for-each-ref", CANDIDATES]), "");
    let result = appliance.result(&job);
    let evidence = result["attempts"][0]["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 1, "the second check is not run: {result}");
    assert_eq!(evidence[0]["reason"], "scoped_check_failed");
    assert_eq!(evidence[0]["exit_code"], 1);
}

#[test]
fn r51_a_plugin_that_changes_nothing_is_retried_and_then_fails() {
    let setup = Setup {
        command: words(&["/bin/sh", "-c", "cat > /dev/null"]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("nothing", &[]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["failure_code"], "max_attempts_exceeded");
    let result = appliance.result(&job);
    let attempts = result["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3);
    for attempt in attempts {
        assert_eq!(attempt["evidence"][0]["reason"], "no_changes", "{attempt}");
    }
}

#[test]
fn a_text_job_goes_through_the_reference_plugin() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.start_worker();
    let (code, out, err) = appliance.forge(&["submit", "--format", "json", "--text", "straße"]);
    assert_eq!(code, 0, "{err}");
    let job: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let id = job["id"].as_str().unwrap();
    appliance.wait_for_status(id, &["succeeded"]);
    let (code, out, err) = appliance.forge(&["output", id]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.trim_end(), "FORGE: STRASSE");
}

#[test]
fn a_drained_worker_finishes_its_job_and_exits_with_zero() {
    let setup = Setup {
        command: words(&["/bin/sh", "-c", "cat > answer.txt; sleep 1"]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    appliance.wait_for_status(&job, &["leased"]);
    assert_eq!(appliance.drain_worker(), Some(0), "{}", appliance.logs());
    let done = appliance.wait_for_status(&job, &["succeeded", "failed", "retry_wait"]);
    assert_eq!(done["status"], "succeeded");
    let later = appliance.submit("later", &[]);
    assert_eq!(appliance.job(&later)["status"], "pending");
}

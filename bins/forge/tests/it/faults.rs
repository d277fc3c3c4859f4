//! What must survive: a killed Worker, a killed Gate, a cancelled job, a Worker that slept past
//! its lease, a drain while others wait.

use crate::appliance::{Appliance, Setup, processes_with, signal, wait_until, words};

const CANDIDATES: &str = "refs/agent-forge/candidates";

/// A plugin command that leaves a child in its group, one in a session of its own, and then waits
/// for the file `go` in the throwaway folder. `mark` names its processes.
pub(crate) fn waiting(mark: &str) -> Setup {
    let script = format!(
        "cat > answer.txt; sh -c 'sleep 3600; : {mark}' & setsid sh -c 'sleep 3600; : {mark}' >/dev/null 2>&1 & \
         while [ ! -e '@FOLDER@/go' ]; do sleep 0.05; done; : {mark}"
    );
    Setup {
        command: words(&["/bin/sh", "-c", &script]),
        ..Setup::default()
    }
}

pub(crate) fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

#[test]
fn r03_r37_a_killed_worker_leaves_nothing_running_and_the_job_succeeds() {
    let mark = mark("worker");
    let mut appliance = Appliance::start(&waiting(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    appliance.kill_worker();
    wait_until("nothing of the killed attempt runs", || running(&mark) == 0);
    std::fs::write(appliance.path("go"), "").unwrap();
    appliance.start_worker();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    assert_eq!(result["attempts"][0]["status"], "expired", "{result}");
    assert_eq!(result["attempts"][1]["status"], "succeeded", "{result}");
    wait_until("nothing of either attempt runs", || running(&mark) == 0);
    // One that stops also removes what it had made ahead.
    assert_eq!(appliance.drain_worker(), Some(0));
    assert_eq!(left_in(&appliance, "trees"), 0, "workspaces are swept");
    assert_eq!(
        left_in(&appliance, "runtime"),
        0,
        "runtime folders are swept"
    );
}

#[test]
fn r01_a_killed_gate_loses_nothing_and_the_job_succeeds_once() {
    let mark = mark("gate");
    let mut appliance = Appliance::start(&waiting(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    appliance.kill_gate();
    wait_until("the attempt ends, since nobody can renew it", || {
        running(&mark) == 0
    });
    std::fs::write(appliance.path("go"), "").unwrap();
    appliance.start_gate();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    let succeeded = result["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|attempt| attempt["status"] == "succeeded")
        .count();
    assert_eq!(succeeded, 1, "{result}");
    let refs = appliance.git(&["for-each-ref", "--format=%(refname)", CANDIDATES]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    wait_until("nothing of either attempt runs", || running(&mark) == 0);
}

#[test]
fn a_cancelled_job_ends_at_the_gate_and_its_processes_end_too() {
    let mark = mark("cancel");
    let mut appliance = Appliance::start(&waiting(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let (code, _, err) = appliance.forge(&["cancel", &job]);
    assert_eq!(code, 0, "{err}");
    let done = appliance.job(&job);
    assert_eq!(done["status"], "cancelled");
    assert_eq!(done["failure_code"], "cancelled");
    wait_until("nothing of the cancelled attempt runs", || {
        running(&mark) == 0
    });
    assert_eq!(appliance.git(&["for-each-ref", CANDIDATES]), "");
    let (code, _, err) = appliance.forge(&["cancel", &job]);
    assert_eq!(code, 0, "again is the same answer: {err}");
}

#[test]
fn r04_a_worker_that_slept_past_its_lease_writes_no_candidate_for_it() {
    let mark = mark("sleeper");
    let mut appliance = Appliance::start(&waiting(&mark));
    let worker = appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let first = appliance.job(&job)["attempt_id"]
        .as_str()
        .unwrap()
        .to_owned();
    signal("-STOP", worker);
    appliance.wait_for_status(&job, &["retry_wait", "pending"]);
    std::fs::write(appliance.path("go"), "").unwrap();
    signal("-CONT", worker);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let refs = appliance.git(&["for-each-ref", "--format=%(refname)", CANDIDATES]);
    assert!(
        !refs.contains(&first),
        "the stale attempt left a ref: {refs}"
    );
    assert_eq!(refs.lines().count(), 1, "{refs}");
}

#[test]
fn r41_a_draining_worker_finishes_its_job_and_leaves_the_next_one_untouched() {
    let mark = mark("drain");
    // No lease could run out while this waits.
    let setup = Setup {
        lease_ttl: "1h",
        ..waiting(&mark)
    };
    let mut appliance = Appliance::start(&setup);
    let worker = appliance.start_worker();
    let first = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let second = appliance.submit("another answer", &[vec!["true"]]);
    signal("-TERM", worker);
    wait_until("the Worker drains", || {
        appliance.logs().contains("draining")
    });
    std::fs::write(appliance.path("go"), "").unwrap();
    wait_until("the Worker has stopped", || {
        appliance.logs().contains("worker stopped")
    });
    let logs = appliance.logs();
    assert!(logs.contains("drained: no job runs any more"), "{logs}");
    assert_eq!(appliance.job(&first)["status"], "succeeded", "{logs}");
    let waiting = appliance.job(&second);
    assert_eq!(waiting["status"], "pending", "{waiting}{logs}");
    assert!(waiting.get("attempt_id").is_none(), "{waiting}");
    wait_until("the Gate knows why a busy slot went", || {
        let slot = crate::control::slot(&appliance);
        slot["connected"] == false && slot["refuses"]["reason"] == "draining"
    });

    appliance.start_worker();
    let done = appliance.wait_for_status(&second, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&second);
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn a_second_gate_on_one_database_is_refused() {
    let appliance = Appliance::start(&Setup::default());
    let output = std::process::Command::new(crate::appliance::FORGE)
        .arg("__gate")
        .arg("--config")
        .arg(appliance.path("gate.json"))
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("already_owned") || said.contains("already"),
        "{said}"
    );
}

/// How many shells carry the mark; the Worker's and host's own lines carry it too, as part of the
/// plugin's argument vector, so only shells that were given a script count.
pub(crate) fn running(mark: &str) -> usize {
    processes_with(mark)
        .into_iter()
        .filter(|id| {
            let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            name.trim() == "sh" || name.trim() == "dash" || name.trim() == "setsid"
        })
        .count()
}

fn left_in(appliance: &Appliance, name: &str) -> usize {
    std::fs::read_dir(appliance.path(name))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("forge-"))
        .count()
}

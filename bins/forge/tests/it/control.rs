//! Job control between the real Gate and the real Worker.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::appliance::{Appliance, Setup, processes_with, signal, wait_until, words};

const CANDIDATES: &str = "refs/agent-forge/candidates";

fn mark(name: &str) -> String {
    format!("mark-control-{name}-{}", std::process::id())
}

/// A plugin command that notes each run, is deaf to signals, has a deaf child in its group and
/// one in a session of its own, and waits for the file `go`. `mark` names its processes.
fn stubborn(mark: &str) -> Setup {
    let script = format!(
        "trap '' TERM INT HUP; echo run >> '@FOLDER@/runs'; cat > answer.txt; \
         sh -c 'trap \"\" TERM INT HUP; sleep 3600; : {mark}' & \
         setsid sh -c 'trap \"\" TERM INT HUP; sleep 3600; : {mark}' >/dev/null 2>&1 & \
         while [ ! -e '@FOLDER@/go' ]; do sleep 0.05; done; : {mark}"
    );
    Setup {
        lease_ttl: "20s",
        command: words(&["/bin/sh", "-c", &script]),
        ..Setup::default()
    }
}

/// How many shells carry the mark.
fn running(mark: &str) -> usize {
    processes_with(mark)
        .into_iter()
        .filter(|id| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            ["sh", "dash", "setsid"].contains(&name.trim())
        })
        .count()
}

fn runs(appliance: &Appliance) -> usize {
    let runs = fs::read_to_string(appliance.path("runs")).unwrap_or_default();
    runs.lines().count()
}

fn change_worker(appliance: &Appliance, change: impl FnOnce(&mut Value)) {
    let path = appliance.path("worker.json");
    let mut config = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    fs::write(&path, config.to_string()).unwrap();
}

pub(crate) fn slot(appliance: &Appliance) -> Value {
    let (code, out, err) = appliance.forge(&["workers", "--format", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let first = out.lines().next().unwrap_or_default();
    let parsed: Value = serde_json::from_str(first).unwrap();
    match parsed.get("items") {
        Some(items) => items[0].clone(),
        None => parsed,
    }
}

#[test]
fn r01_r26_a_gate_killed_in_the_middle_of_a_job_costs_the_attempt_nothing() {
    let mark = mark("gate");
    let mut appliance = Appliance::start(&stubborn(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let attempt = appliance.job(&job)["attempt_id"].clone();
    appliance.kill_gate();
    appliance.start_gate();
    wait_until("the Worker has claimed its attempt", || {
        appliance.logs().matches("attempt_reattached").count() >= 2
    });
    assert!(running(&mark) >= 3, "the plugin has noticed nothing");
    fs::write(appliance.path("go"), "").unwrap();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    assert_eq!(done["attempt_id"], attempt, "the same attempt");
    let result = appliance.result(&job);
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(runs(&appliance), 1, "the plugin ran once");
    let refs = appliance.git(&["for-each-ref", "--format=%(refname)", CANDIDATES]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    wait_until("nothing of it runs", || running(&mark) == 0);
}

#[test]
fn r14_a_result_that_the_gate_could_not_take_is_delivered_when_it_is_back() {
    let mark = mark("result");
    let mut appliance = Appliance::start(&stubborn(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    appliance.kill_gate();
    fs::write(appliance.path("go"), "").unwrap();
    let kept = appliance.path("trees/.forge-worker-state/results/slot-0.json");
    wait_until("the result is on the disk", || kept.exists());
    // Whoever delivers it need not be who made it.
    appliance.kill_worker();
    appliance.start_gate();
    appliance.start_worker();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(runs(&appliance), 1, "the plugin ran once");
    wait_until("the file is gone", || !kept.exists());
}

#[test]
fn r40_a_cancel_reaches_the_whole_tree_within_a_second_and_the_next_job_follows() {
    let mark = mark("cancel");
    let mut appliance = Appliance::start(&stubborn(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    let next = appliance.submit("another answer", &[]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let since = Instant::now();
    let (code, _, err) = appliance.forge(&["cancel", &job]);
    assert_eq!(code, 0, "{err}");
    fs::write(appliance.path("go"), "").unwrap();
    wait_until("the Worker says that nothing runs any more", || {
        appliance.logs().matches("attempt_stopped").count() >= 2
    });
    // The rule is 1 s; a loaded machine gets a second more, and the command has its own start.
    assert!(
        since.elapsed() < Duration::from_secs(4),
        "{:?}",
        since.elapsed()
    );
    let log = fs::read_to_string(appliance.path("gate.log")).unwrap();
    let stopped = log.lines().find(|line| line.contains("attempt_stopped"));
    let stopped: Value = serde_json::from_str(stopped.unwrap()).unwrap();
    assert_eq!(stopped["job_id"], json!(job), "{stopped}");
    assert!(stopped["ms"].as_u64().unwrap() < 2000, "{stopped}");
    // The slot was not lost for a moment.
    let done = appliance.wait_for_status(&next, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    assert_eq!(appliance.job(&job)["status"], "cancelled");
    assert_eq!(log.matches("worker_disconnected").count(), 0, "{log}");
    assert_eq!(runs(&appliance), 2);
    wait_until("nothing of either runs", || running(&mark) == 0);
}

#[test]
fn a_full_disk_is_seen_at_the_gate_and_the_job_waits_until_there_is_room() {
    let mut appliance = Appliance::start(&Setup::default());
    change_worker(&appliance, |config| {
        config["min_free_bytes"] = json!(1_u64 << 50);
    });
    appliance.start_worker();
    wait_until("the Worker is refusing work", || {
        slot(&appliance)["refuses"]["reason"] == "disk_low"
    });
    let (_, said, _) = appliance.forge(&["workers"]);
    assert!(said.contains("disk"), "{said}");
    let job = appliance.submit("an answer", &[]);
    std::thread::sleep(Duration::from_millis(500));
    let waiting = appliance.job(&job);
    assert_eq!(waiting["status"], "pending", "{waiting}");
    assert_eq!(appliance.drain_worker(), Some(0));
    change_worker(&appliance, |config| config["min_free_bytes"] = json!(0));
    appliance.start_worker();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn r41_an_idle_worker_that_drains_is_seen_at_the_gate_and_takes_nothing() {
    let mut appliance = Appliance::start(&Setup::default());
    let worker = appliance.start_worker();
    wait_until("the Worker is connected", || {
        slot(&appliance)["connected"] == true
    });
    signal("-TERM", worker);
    wait_until("the Gate knows why it went", || {
        let slot = slot(&appliance);
        slot["connected"] == false && slot["refuses"]["reason"] == "draining"
    });
    let job = appliance.submit("an answer", &[]);
    assert_eq!(appliance.job(&job)["status"], "pending");
    assert_eq!(appliance.drain_worker(), Some(0));
    appliance.start_worker();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
}

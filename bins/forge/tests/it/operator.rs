//! Why a job does not start, and pools that are paused, through the programs themselves.

use std::time::Duration;

use serde_json::Value;

use crate::appliance::{Appliance, Setup, wait_until, words};

/// Why the job waits, as `forge status` says it.
fn reason(appliance: &Appliance, job: &str) -> String {
    let waiting = appliance.job(job)["waiting"].clone();
    waiting["reason"].as_str().unwrap_or_default().to_owned()
}

/// The line of `forge status` that says why.
fn words_of(appliance: &Appliance, job: &str) -> String {
    let (code, out, err) = appliance.forge(&["status", job]);
    assert_eq!(code, 0, "{err}");
    for line in out.lines().filter(|line| !line.starts_with("refs/")) {
        assert!(
            line.chars().count() <= 80 && !line.contains('\u{1b}'),
            "{line}"
        );
    }
    let lines = out.lines().skip_while(|line| !line.starts_with("waiting"));
    let own = lines
        .enumerate()
        .take_while(|(at, line)| *at == 0 || line.starts_with(' '));
    let text: Vec<&str> = own
        .map(|(_, line)| line.trim_start_matches("waiting").trim())
        .collect();
    text.join(" ")
}

/// A plugin that runs until a file is there.
fn gated() -> Setup {
    Setup {
        command: words(&[
            "/bin/sh",
            "-c",
            "cat > answer.txt; while ! test -e @FOLDER@/go; do sleep 0.05; done",
        ]),
        plugin_timeout: "60s",
        ..Setup::default()
    }
}

#[test]
fn a_job_says_why_it_waits_from_nobody_there_to_its_turn() {
    let mut appliance = Appliance::start(&gated());
    let first = appliance.submit("one", &[]);
    assert_eq!(reason(&appliance, &first), "no_worker_connected");
    assert_eq!(
        words_of(&appliance, &first),
        "no Worker of pool `coding` is connected (1 slot configured)"
    );
    let second = appliance.submit("two", &[]);
    let third = appliance.submit("three", &[]);
    appliance.start_worker();
    appliance.wait_for_status(&first, &["leased"]);
    assert_eq!(reason(&appliance, &first), "");
    assert_eq!(
        words_of(&appliance, &second),
        "the only connected slot of pool `coding` has a job; this job is next"
    );
    assert_eq!(
        words_of(&appliance, &third),
        "the only connected slot of pool `coding` has a job; 1 job comes before this one"
    );
    std::fs::write(appliance.path("go"), "").unwrap();
    for job in [first, second, third] {
        appliance.wait_for_status(&job, &["succeeded"]);
    }
}

#[test]
fn waiting_for_a_job_that_cannot_start_is_not_silent() {
    let mut appliance = Appliance::start(&Setup::default());
    let mut all = vec!["submit", "--wait", "--repository", "main", "--base"];
    let base = appliance.base().to_owned();
    all.extend([base.as_str(), "--instruction", "x", "--poll", "50ms"]);
    let mut waiting = appliance.forge_talking_into(&all, "wait.err");
    let said = || std::fs::read_to_string(appliance.path("wait.err")).unwrap();
    wait_until("it says why", || {
        said().contains("waiting: no Worker of pool `coding` is connected")
    });
    appliance.start_worker();
    let status = waiting.wait().unwrap();
    let said = std::fs::read_to_string(appliance.path("wait.err")).unwrap();
    assert!(status.success(), "{said}");
    assert_eq!(said.matches("no Worker of pool").count(), 1, "{said}");
}

#[test]
fn a_failed_attempt_says_when_the_next_one_is_due() {
    let setup = Setup {
        command: words(&["/bin/sh", "-c", "exit 1"]),
        retry_base: "30s",
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("x", &[]);
    appliance.wait_for_status(&job, &["retry_wait"]);
    assert_eq!(reason(&appliance, &job), "next_attempt");
    let said = words_of(&appliance, &job);
    assert!(
        said.starts_with("the next attempt is due at 2") && said.ends_with("`execution_failed`"),
        "{said}"
    );
}

#[test]
fn a_pause_holds_over_a_restart_of_the_gate_and_a_resume_starts_what_waits() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.start_worker();
    let (code, out, err) = appliance.forge(&["pause", "coding", "--reason", "new disk"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("pool coding is paused since 2"), "{out}");
    assert_eq!(appliance.forge(&["pause", "coding"]).0, 0, "again");
    appliance.kill_gate();
    appliance.start_gate();
    let job = appliance.submit("x", &[]);
    wait_until("the Worker is back", || {
        appliance.forge(&["pools"]).1.contains("1 of 1")
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(appliance.job(&job)["status"], "pending");
    let said = words_of(&appliance, &job);
    assert!(
        said.starts_with("pool `coding` is paused since 2") && said.ends_with(": new disk"),
        "{said}"
    );
    let (code, out, err) = appliance.forge(&["pools", "--format", "json"]);
    assert_eq!(code, 0, "{err}");
    let pool: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&pool["ready"], &pool["pause_reason"]),
        (&1.into(), &"new disk".into())
    );
    assert_eq!(appliance.forge(&["resume", "coding"]).0, 0);
    appliance.wait_for_status(&job, &["succeeded"]);
    assert_eq!(appliance.forge(&["resume", "coding"]).0, 0, "again");
    let (code, _, err) = appliance.forge(&["pause", "nobody"]);
    assert_eq!(code, 2);
    assert!(err.contains("no pool `nobody`"), "{err}");
    let log = appliance.logs();
    assert!(
        log.contains("\"event\":\"pool_paused\"") && log.contains("\"event\":\"pool_resumed\"")
    );
}

#[test]
fn a_worker_without_room_says_so_wherever_an_operator_looks() {
    let mut appliance = Appliance::start(&Setup::default());
    let config = appliance.path("worker.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    value["min_free_bytes"] = (1_u64 << 50).into();
    std::fs::write(&config, value.to_string()).unwrap();
    appliance.start_worker();
    wait_until("the Worker refuses", || {
        appliance.forge(&["workers"]).1.contains("disk low")
    });
    let job = appliance.submit("x", &[]);
    assert_eq!(reason(&appliance, &job), "workers_refuse");
    assert_eq!(
        words_of(&appliance, &job),
        "every connected slot of pool `coding` takes no work: 1 low on disk space"
    );
    let config = config.to_str().unwrap();
    let (code, out, _) = appliance.forge(&["doctor", "--worker-config", config]);
    assert_eq!(code, 1);
    assert!(
        out.contains("FAIL  worker space of worktree_root: "),
        "{out}"
    );
    assert!(out.contains("1 of them take no work"), "{out}");
}

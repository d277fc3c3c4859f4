//! What happens to the process, and to the jobs when something happens to it.

use std::time::Duration;

use cli_shell::clock;
use rustix::process::Signal;

use crate::running::{OWNER, Place, Running, WORKER, spawn};

#[test]
fn r01_a_gate_killed_in_the_middle_of_a_job_loses_nothing() {
    let place = Place::new();
    let gate = Running::start(&place);
    let job = gate.request("POST", "/v1/jobs", r#"{"input":"input-canary"}"#);
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let mut worker = gate.connect();
    let first = worker.receive();
    assert_eq!(first["type"], "lease");
    gate.signal(Signal::KILL);
    drop(worker);
    let (_, first_log) = gate.wait();

    let gate = Running::start(&place);
    assert_eq!(
        gate.request("GET", &path, "")["status"],
        "leased",
        "the lease outlives the Gate"
    );
    let mut worker = gate.connect();
    let second = worker.receive();
    assert_eq!(second["job_id"], first["job_id"]);
    assert_ne!(second["attempt_id"], first["attempt_id"]);
    worker.finish(&second);
    assert_eq!(gate.request("GET", &path, "")["status"], "succeeded");
    let result = gate.request("GET", &format!("{path}/result"), "");
    let attempts: Vec<_> = result["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| {
            (
                attempt["ordinal"].as_u64().unwrap(),
                attempt["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(attempts, [(1, "expired"), (2, "succeeded")]);

    gate.signal(Signal::TERM);
    let (status, second_log) = gate.wait();
    assert!(status.success(), "{status} {second_log}");
    for event in [
        "startup",
        "listening",
        "job_submitted",
        "worker_connected",
        "attempt_leased",
    ] {
        assert!(
            first_log.contains(&format!("\"event\":\"{event}\"")),
            "{event} in {first_log}"
        );
    }
    for event in [
        "recovered",
        "attempt_retry",
        "terminal_success",
        "worker_disconnected",
        "stopped",
    ] {
        assert!(
            second_log.contains(&format!("\"event\":\"{event}\"")),
            "{event} in {second_log}"
        );
    }
    for secret in [OWNER, WORKER, "canary", place.path().to_str().unwrap()] {
        assert!(
            !first_log.contains(secret) && !second_log.contains(secret),
            "{secret}"
        );
    }
}

#[test]
fn a_second_gate_on_one_database_is_refused() {
    let place = Place::new();
    let gate = Running::start(&place);
    let second = spawn(&["--config".as_ref(), place.config().as_os_str()])
        .wait_with_output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let log = String::from_utf8(second.stderr).unwrap();
    assert!(log.contains("\"failure_code\":\"already_owned\""), "{log}");
    assert_eq!(gate.request("GET", "/readyz", "")["status"], "ready");
}

#[test]
fn an_interrupt_ends_it_within_the_grace_although_a_job_runs() {
    let place = Place::new();
    let gate = Running::start(&place);
    gate.request("POST", "/v1/jobs", r#"{"input":"x"}"#);
    let mut worker = gate.connect();
    let lease = worker.receive();
    let start = clock::instant();
    gate.signal(Signal::INT);
    // What runs may still end.
    worker.finish(&lease);
    let (status, log) = gate.wait();
    assert!(status.success(), "{log}");
    assert!(
        start.elapsed() < Duration::from_secs(11),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn version_and_generated_texts_are_printed() {
    let version = spawn(&["--version".as_ref()]).wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        concat!("forge-gate ", env!("CARGO_PKG_VERSION"), "-dev unknown\n")
    );
    let page = spawn(&["--generate".as_ref(), "man".as_ref()])
        .wait_with_output()
        .unwrap();
    assert!(page.status.success());
    assert!(String::from_utf8(page.stdout).unwrap().contains("check"));
}

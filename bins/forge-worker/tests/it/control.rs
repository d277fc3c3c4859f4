//! Job control: cancel, attach, kept results, drain and the disk guard, against a scripted Gate
//! that knows it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::bed::{Bed, processes_with, unique_sleep, until};
use crate::gate::{Gate, Slot, heartbeat, message, result};

const TOKEN: &str = "dddddddddddddddddddddddddddddddd";

impl Slot<TcpStream> {
    async fn ping(&mut self, n: u64) {
        self.say(format!("{{\"type\":\"ping\",\"n\":{n}}}\n")).await;
    }

    /// Greets a slot that has nothing from before.
    async fn greet(&mut self) {
        self.ping(1).await;
        assert_eq!(self.text().await, pong(1));
    }

    /// Greets a slot that has something, as far as its attach.
    async fn greet_tenant(&mut self) {
        self.ping(1).await;
        assert_eq!(self.text().await, attach());
    }

    /// Lets the attempt go on.
    async fn attach_for(&mut self, deadline_ms: u64) {
        self.greet_tenant().await;
        self.say(message(
            "attached",
            &format!(",\"deadline_ms\":{deadline_ms}"),
        ))
        .await;
        assert_eq!(self.text().await, pong(1));
    }

    /// Takes evidence and a candidate, and acknowledges both.
    async fn take_candidate(&mut self) {
        let evidence = self.answer().await;
        assert!(evidence.contains("scoped_check_passed"), "{evidence}");
        self.ack().await;
        let result = self.answer().await;
        assert!(result.contains("\"candidate_sha\""), "{result}");
        self.ack().await;
    }
}

fn pong(n: u64) -> String {
    format!("{{\"type\":\"pong\",\"n\":{n}}}\n")
}

fn attach() -> String {
    message("attach", &format!(",\"attach_token\":\"{TOKEN}\""))
}

fn refuses(reason: &str) -> String {
    format!("{{\"type\":\"ready\",\"accepting\":false,\"reason\":\"{reason}\"}}\n")
}

/// Selects job control in a lease.
fn select(lease: &mut Value) {
    lease["control_version"] = json!("job_control/v1");
    lease["attach_token"] = json!(TOKEN);
}

fn with_ttl(millis: u64) -> impl FnOnce(&mut Value) {
    move |lease| {
        select(lease);
        lease["policy"]["lease_ttl_nanos"] = json!(millis * 1_000_000);
    }
}

fn fast(bed: &mut Bed) {
    bed.config["heartbeat_interval"] = json!("100ms");
}

fn text_lease(bed: &Bed, input: &str) -> String {
    let mut lease: Value = serde_json::from_str(&bed.text_lease(input)).unwrap();
    select(&mut lease);
    lease.to_string()
}

fn results(bed: &Bed) -> PathBuf {
    bed.root.join("worktrees/.forge-worker-state/results")
}

fn kept(bed: &Bed) -> Vec<String> {
    names(&results(bed))
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "refused")
        .collect();
    names.sort();
    names
}

/// A script that notes each of its runs, and waits for `go`.
fn counted(bed: &Bed) -> String {
    let root = bed.root.display();
    format!(
        "echo run >> {root}/runs; until test -e {root}/go; do sleep 0.02; done; echo x > answer.txt"
    )
}

fn runs(bed: &Bed) -> usize {
    let runs = fs::read_to_string(bed.root.join("runs")).unwrap_or_default();
    runs.lines().count()
}

fn go(bed: &Bed) {
    fs::write(bed.root.join("go"), "").unwrap();
}

#[tokio::test]
async fn r40_a_cancel_reaches_the_whole_tree_within_a_second_and_the_slot_goes_on() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    let sleep = unique_sleep();
    let script = format!(
        "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM HUP; sleep {sleep}; sleep {sleep}' &); \
         setsid sleep {sleep} & sleep {sleep}; sleep {sleep}"
    );
    slot.say(bed.coding_lease(&script, json!([]), select)).await;
    until("the plugin to run", || processes_with(&sleep).len() >= 5).await;
    let since = Instant::now();
    slot.say(message("cancel", ",\"reason\":\"operator\""))
        .await;
    assert_eq!(slot.answer().await, message("cancelled", ""));
    // The rule is 1 s; a loaded machine gets a second more.
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
    assert_eq!(bed.candidate_refs(), "");
    assert!(kept(&bed).is_empty());
    // Nothing in the log looks like a fault.
    let log = worker.log();
    assert!(log.contains("\"event\":\"attempt_stopped\""), "{log}");
    assert!(!log.contains("\"level\":\"WARN\""), "{log}");
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
}

#[tokio::test]
async fn a_cancel_reaches_checks_too() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    let sleep = unique_sleep();
    let check = format!("trap '' TERM; setsid sleep {sleep} & sleep {sleep}; sleep {sleep}");
    let tests = json!([["sh", "-c", check]]);
    slot.say(bed.coding_lease("echo x > answer.txt", tests, select))
        .await;
    until("the check to run", || processes_with(&sleep).len() >= 3).await;
    slot.say(message("cancel", ",\"reason\":\"lease_lost\""))
        .await;
    assert_eq!(slot.answer().await, message("cancelled", ""));
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
}

#[tokio::test]
async fn a_dropped_connection_does_not_touch_the_plugin() {
    let (bed, gate, _worker, mut slot) = Bed::connected_with(fast).await;
    slot.greet().await;
    let tests = json!([["./check.sh"]]);
    slot.say(bed.coding_lease(&counted(&bed), tests, select))
        .await;
    until("the plugin to run", || runs(&bed) == 1).await;
    drop(slot);
    let mut slot = gate.accept().await;
    slot.attach_for(30_000).await;
    // The lease is renewed at once, the plugin has noticed nothing.
    assert_eq!(slot.text().await, heartbeat());
    // A reset this time, instead of an end.
    slot.socket.get_ref().set_zero_linger().unwrap();
    drop(slot);
    let mut slot = gate.accept().await;
    slot.attach_for(30_000).await;
    go(&bed);
    slot.take_candidate().await;
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
    assert_eq!(runs(&bed), 1, "the plugin ran once");
    assert_eq!(bed.candidate_refs().lines().count(), 1);
}

#[tokio::test]
async fn r09_a_gate_that_is_away_for_longer_than_the_lease_loses_the_job_before_that() {
    let (bed, gate, _worker, mut slot) = Bed::connected_with(fast).await;
    slot.greet().await;
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} & sleep {sleep}");
    slot.say(bed.coding_lease(&script, json!([]), with_ttl(2000)))
        .await;
    until("the plugin to run", || processes_with(&sleep).len() >= 3).await;
    drop(slot);
    let since = Instant::now();
    until("the plugin to be gone", || {
        processes_with(&sleep).is_empty()
    })
    .await;
    // No heartbeat can have been later than the end of the connection.
    assert!(
        since.elapsed() < Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
    let mut slot = gate.accept().await;
    slot.greet_tenant().await;
    slot.say(message("lost", "")).await;
    assert_eq!(slot.text().await, pong(1));
    assert!(kept(&bed).is_empty() && names(&results(&bed).join("refused")).is_empty());
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
}

#[tokio::test]
async fn a_job_that_is_stopped_for_its_lost_lease_is_not_said_to_go_on_or_to_be_finished() {
    let (bed, gate, mut worker, mut slot) = Bed::connected_with(fast).await;
    slot.greet().await;
    let sleep = unique_sleep();
    slot.say(bed.coding_lease(&format!("sleep {sleep}"), json!([]), with_ttl(2000)))
        .await;
    // Nothing is read, so no heartbeat is answered.
    let mut next = gate.accept().await;
    let log = worker.log();
    let said = log.lines().find(|line| line.contains("disconnected"));
    let said = said.unwrap_or_default();
    assert!(said.contains("its job is being stopped"), "{log}");
    assert!(!said.contains("cause"), "there is none: {said}");
    next.greet_tenant().await;
    worker.signal(Signal::TERM);
    next.say(message("lost", "")).await;
    drop(next);
    assert_eq!(worker.ended().await.code(), Some(0));
    let log = worker.log();
    assert!(
        !log.contains("goes on") && !log.contains("finished"),
        "{log}"
    );
    assert!(log.contains("drained"), "{log}");
}

#[tokio::test]
async fn r04_a_worker_stopped_past_its_lease_leaves_no_candidate_and_is_told_so() {
    let (bed, gate, worker, mut slot) = Bed::connected_with(fast).await;
    slot.greet().await;
    let started = bed.root.join("started");
    let script = format!(
        "touch {}; sleep 0.5; echo x > answer.txt",
        started.display()
    );
    let tests = json!([["./check.sh"]]);
    slot.say(bed.coding_lease(&script, tests, with_ttl(1000)))
        .await;
    until("the plugin to run", || started.exists()).await;
    worker.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    worker.signal(Signal::CONT);
    let mut slot = gate.accept().await;
    slot.greet_tenant().await;
    slot.say(message("lost", "")).await;
    assert_eq!(slot.text().await, pong(1));
    assert_eq!(bed.candidate_refs(), "");
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
}

#[tokio::test]
async fn r14_a_job_that_ends_while_the_gate_is_down_is_delivered_once_when_it_is_back() {
    let (bed, gate, worker, mut slot) = Bed::connected_with(fast).await;
    slot.greet().await;
    let tests = json!([["./check.sh"]]);
    slot.say(bed.coding_lease(&counted(&bed), tests, with_ttl(3000)))
        .await;
    until("the plugin to run", || runs(&bed) == 1).await;
    let port = gate.port();
    drop(slot);
    drop(gate);
    go(&bed);
    until("the result to be on the disk", || {
        kept(&bed) == ["slot-0.json"]
    })
    .await;
    // Longer than the lease.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(kept(&bed), ["slot-0.json"]);
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());

    let gate = Gate::on(port).await;
    let mut slot = gate.accept().await;
    slot.attach_for(3000).await;
    slot.take_candidate().await;
    until("the file to be gone", || kept(&bed).is_empty()).await;
    drop(slot);
    let mut slot = gate.accept().await;
    slot.greet().await;
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
    assert_eq!(runs(&bed), 1);
    let log = worker.log();
    assert_eq!(log.matches("result delivered").count(), 1, "{log}");
}

#[tokio::test]
async fn r15_a_killed_worker_delivers_at_its_next_start_what_it_could_not() {
    let (bed, gate, mut worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    let tests = json!([["./check.sh"]]);
    slot.say(bed.coding_lease("echo x > answer.txt", tests, select))
        .await;
    let first = slot.answer().await;
    assert!(first.contains("\"evidence\""), "{first}");
    worker.kill().await;
    assert_eq!(kept(&bed), ["slot-0.json"]);
    fs::write(results(&bed).join("slot-1.json"), "{\"version\":1,").unwrap();

    let worker = bed.start();
    let mut slot = gate.accept().await;
    // It has ended at the Gate: the acknowledgement was lost.
    slot.attach_for(0).await;
    assert_eq!(slot.answer().await, first, "the same evidence");
    slot.ack().await;
    let result = slot.answer().await;
    assert!(result.contains("\"candidate_sha\""), "{result}");
    slot.ack().await;
    until("the file to be gone", || kept(&bed).is_empty()).await;
    let log = worker.log();
    assert!(log.contains("\"event\":\"result_found\""), "{log}");
    // What cannot be read is moved aside and reported.
    assert!(log.contains("\"event\":\"result_damaged\""), "{log}");
    assert_eq!(
        names(&results(&bed).join("refused")),
        ["0000000001-slot-1.json"]
    );
}

#[tokio::test]
async fn r15_a_result_that_nobody_wants_any_more_is_moved_aside_and_reported() {
    let (bed, gate, mut worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    slot.say(text_lease(&bed, "first")).await;
    assert_eq!(slot.answer().await, result("FIRST"));
    worker.kill().await;

    let worker = bed.start();
    let mut slot = gate.accept().await;
    slot.greet_tenant().await;
    slot.say(message("lost", "")).await;
    assert_eq!(slot.text().await, pong(1));
    assert!(kept(&bed).is_empty());
    let aside = results(&bed).join("refused/0000000001-slot-0.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(&aside).unwrap()).unwrap();
    assert_eq!(file["text"], "FIRST");
    let log = worker.log();
    for part in [
        "result_refused",
        &aside.display().to_string(),
        crate::gate::JOB,
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    // The slot goes on.
    slot.say(text_lease(&bed, "next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
}

#[tokio::test]
async fn an_original_gate_that_has_another_job_ends_what_the_slot_still_has() {
    let (bed, gate, worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    slot.say(text_lease(&bed, "first")).await;
    assert_eq!(slot.answer().await, result("FIRST"));
    drop(slot);
    let mut slot = gate.accept().await;
    slot.say(bed.text_lease("next")).await;
    assert_eq!(slot.answer().await, result("NEXT"));
    slot.ack().await;
    assert!(worker.log().contains("result_refused"), "{}", worker.log());
    assert!(kept(&bed).is_empty(), "the second was never kept");
}

#[tokio::test]
async fn r41_an_idle_worker_says_that_it_drains_and_declines_what_crosses() {
    let (bed, _gate, mut worker, mut slot) = Bed::connected().await;
    slot.greet().await;
    worker.signal(Signal::TERM);
    // The answer to the ping behind it waits for the next read, as with a Gate that is busy
    // sending: the lease comes first.
    until("the drain", || worker.log().contains("draining")).await;
    slot.say(text_lease(&bed, "crossing")).await;
    assert_eq!(slot.text().await, refuses("draining"));
    assert_eq!(
        slot.text().await,
        message("decline", ",\"reason\":\"draining\"")
    );
    assert_eq!(slot.ended().await, crate::gate::going_away());
    drop(slot);
    assert_eq!(worker.ended().await.code(), Some(0));
    let log = worker.log();
    assert!(log.contains("\"event\":\"lease_declined\""), "{log}");
    assert!(!log.contains("\"level\":\"WARN\""), "{log}");
}

#[tokio::test]
async fn a_full_disk_takes_no_lease_and_says_why() {
    let gate = Gate::new().await;
    let mut bed = Bed::new(&gate.url());
    bed.config["min_free_bytes"] = json!(1_u64 << 50);
    let state = bed.root.join("state");
    bed.config["state_dir"] = json!(state);
    let worker = bed.start();
    let mut slot = gate.accept().await;
    slot.ping(1).await;
    assert_eq!(slot.text().await, refuses("disk_low"));
    assert_eq!(slot.text().await, pong(1));
    slot.say(text_lease(&bed, "crossing")).await;
    let declined = message("decline", ",\"reason\":\"disk_low\"");
    assert_eq!(slot.text().await, declined);
    let log = worker.log();
    assert_eq!(log.matches("\"event\":\"disk_low\"").count(), 1, "{log}");
    assert!(state.join("results").is_dir());
    // A Gate that cannot be told is served all the same.
    drop(slot);
    let mut slot = gate.accept().await;
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}

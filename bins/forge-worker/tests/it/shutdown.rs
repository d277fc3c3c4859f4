//! Signals: drain, cancel, kill, and the exit code that says which.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::bed::{Bed, Worker, processes_with, unique_sleep, until};
use crate::gate::{Gate, Slot, failed, going_away, message, result};

type Connected = (Bed, Gate, Worker, Slot<tokio::net::TcpStream>);

async fn with_running_job(instruction: impl FnOnce(&Bed) -> String, drain: &str) -> Connected {
    let drain = drain.to_owned();
    let change = move |bed: &mut Bed| bed.config["drain_timeout"] = json!(drain);
    let (bed, gate, worker, mut slot) = Bed::connected_with(change).await;
    let started = bed.root.join("started");
    let script = format!("touch {}; {}", started.display(), instruction(&bed));
    slot.say(bed.coding_lease(&script, json!([["./check.sh"]]), |_| {}))
        .await;
    until("the plugin to run", || started.exists()).await;
    (bed, gate, worker, slot)
}

#[tokio::test]
async fn an_idle_worker_leaves_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let (_bed, _gate, mut worker, mut slot) = Bed::connected().await;
        until("both ends to be connected", || {
            worker.log().contains("connected to the Gate")
        })
        .await;
        let since = Instant::now();
        worker.signal(signal);
        assert_eq!(slot.ended().await, going_away());
        // The rule is 100 ms; a loaded machine gets a second more.
        assert!(
            since.elapsed() < Duration::from_millis(1100),
            "{:?}",
            since.elapsed()
        );
        drop(slot);
        assert_eq!(worker.ended().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_service_manager_hears_of_the_start_and_of_the_drain() {
    let gate = Gate::new().await;
    let mut bed = Bed::new(&gate.url());
    let place = bed.root.join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&place).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let hear = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    bed.set_env("NOTIFY_SOCKET", place.to_str());
    let mut worker = bed.start();
    assert_eq!(hear(), "READY=1\n");
    worker.signal(Signal::TERM);
    assert_eq!(hear(), "STOPPING=1\n");
    assert_eq!(worker.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_worker_without_a_gate_leaves_too() {
    let gate = Gate::new().await;
    let bed = Bed::new(&gate.url());
    drop(gate);
    let mut worker = bed.start();
    until("a complaint", || worker.log().contains("trying again")).await;
    worker.signal(Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(0));
}

#[tokio::test]
async fn r41_draining_completes_and_delivers_the_running_job() {
    let wait = |bed: &Bed| {
        let go = bed.root.join("go").display().to_string();
        format!("until test -e {go}; do sleep 0.02; done; echo x > answer.txt")
    };
    let (bed, _gate, mut worker, mut slot) = with_running_job(wait, "1h").await;
    worker.signal(Signal::TERM);
    until("the drain", || worker.log().contains("draining")).await;
    std::fs::write(bed.root.join("go"), "").unwrap();
    let evidence = slot.answer().await;
    assert!(evidence.contains("scoped_check_passed"), "{evidence}");
    slot.ack().await;
    let result = slot.answer().await;
    assert!(result.contains("\"candidate_sha\""), "{result}");
    slot.ack().await;
    assert_eq!(slot.ended().await, going_away());
    drop(slot);
    assert_eq!(worker.ended().await.code(), Some(0));
    assert!(bed.leftovers().is_empty());
}

#[tokio::test]
async fn r41_a_lease_behind_the_last_result_is_not_begun() {
    // One write with the acknowledgement, or from a Gate that reads the Close frame late.
    for late in [Duration::ZERO, Duration::from_millis(50)] {
        let wait = |bed: &Bed| {
            let go = bed.root.join("go").display().to_string();
            format!("until test -e {go}; do sleep 0.02; done; echo x > answer.txt")
        };
        let (bed, _gate, mut worker, mut slot) = with_running_job(wait, "1h").await;
        worker.signal(Signal::TERM);
        until("the drain", || worker.log().contains("draining")).await;
        std::fs::write(bed.root.join("go"), "").unwrap();
        slot.answer().await;
        slot.ack().await;
        assert!(slot.answer().await.contains("\"candidate_sha\""));
        let begun = bed.root.join("begun");
        let script = format!("touch {}", begun.display());
        let next = bed.coding_lease(&script, json!([]), |_| {});
        slot.feed(message("ack", "")).await;
        if !late.is_zero() {
            slot.flush().await;
            tokio::time::sleep(late).await;
        }
        slot.say(next).await;
        assert_eq!(slot.ended().await, going_away());
        drop(slot);
        assert_eq!(worker.ended().await.code(), Some(0));
        let log = worker.log();
        assert!(log.contains("result delivered"), "{log}");
        assert!(
            log.contains("a lease came after the slot had closed"),
            "{log}"
        );
        assert!(!begun.exists());
        assert!(bed.leftovers().is_empty());
    }
}

#[tokio::test]
async fn a_lease_that_crosses_the_signal_is_handed_back() {
    let (bed, _gate, mut worker, mut slot) = Bed::connected().await;
    slot.say(bed.text_lease("first")).await;
    assert_eq!(slot.answer().await, result("FIRST"));
    worker.signal(Signal::TERM);
    until("the drain", || worker.log().contains("draining")).await;
    slot.feed(message("ack", "")).await;
    slot.say(bed.text_lease("second")).await;
    assert_eq!(slot.answer().await, failed("execution_failed", "retryable"));
    slot.ack().await;
    assert_eq!(slot.ended().await, going_away());
    drop(slot);
    assert_eq!(worker.ended().await.code(), Some(0));
    assert!(worker.log().contains("its job is handed back"));
}

#[tokio::test]
async fn r41_a_second_signal_cancels_and_reports() {
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} & sleep {sleep}");
    let (bed, _gate, mut worker, mut slot) = with_running_job(|_| script, "1h").await;
    worker.signal(Signal::TERM);
    until("the drain", || worker.log().contains("draining")).await;
    worker.signal(Signal::TERM);
    let evidence = slot.answer().await;
    assert!(
        evidence.contains("\"plugin_protocol_failed\""),
        "{evidence}"
    );
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    slot.ack().await;
    assert_eq!(slot.answer().await, failed("execution_failed", "retryable"));
    slot.ack().await;
    assert_eq!(slot.ended().await, going_away());
    drop(slot);
    assert_eq!(worker.ended().await.code(), Some(3));
    assert!(bed.leftovers().is_empty());
}

#[tokio::test]
async fn a_check_that_is_cancelled_is_not_a_failed_check() {
    let (bed, _gate, mut worker, mut slot) = Bed::connected().await;
    let sleep = unique_sleep();
    let tests = json!([["./check.sh"], ["sleep", sleep]]);
    slot.say(bed.coding_lease("echo x > answer.txt", tests, |_| {}))
        .await;
    until("the check to run", || !processes_with(&sleep).is_empty()).await;
    worker.signal(Signal::TERM);
    until("the drain", || worker.log().contains("draining")).await;
    worker.signal(Signal::INT);
    let evidence = slot.answer().await;
    assert_eq!(evidence.matches("\"evidence_id\"").count(), 1, "{evidence}");
    assert!(evidence.contains("scoped_check_passed"), "{evidence}");
    slot.ack().await;
    assert_eq!(slot.answer().await, failed("execution_failed", "retryable"));
    slot.ack().await;
    assert_eq!(worker.ended().await.code(), Some(3));
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
}

#[tokio::test]
async fn r41_the_deadline_kills_and_nothing_is_left() {
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} & sleep {sleep}");
    let (bed, _gate, mut worker, mut slot) = with_running_job(|_| script, "200ms").await;
    worker.signal(Signal::TERM);
    assert_eq!(slot.ended().await, None);
    assert_eq!(worker.ended().await.code(), Some(4));
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
}

#[tokio::test]
async fn a_third_signal_does_not_wait_for_the_deadline() {
    let sleep = unique_sleep();
    let script = format!("sleep {sleep}");
    let (_bed, _gate, mut worker, mut slot) = with_running_job(|_| script, "1h").await;
    worker.signal(Signal::TERM);
    until("the drain", || worker.log().contains("draining")).await;
    worker.signal(Signal::TERM);
    // The evidence is never acknowledged, so that the Worker waits for it.
    let evidence = slot.answer().await;
    assert!(evidence.contains("plugin_protocol_failed"), "{evidence}");
    worker.signal(Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(4));
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
}

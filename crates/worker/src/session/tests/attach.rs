//! Attempts and results that outlive their connection, or their Worker.

use super::*;

fn evidence() -> Vec<EvidenceRecord> {
    vec![recorder().event(Reason::CleanupFailed, Duration::from_millis(7))]
}

/// A Gate that greets and has heard the attach.
async fn claimed(life: &Life) -> Gate {
    let mut gate = life.connection();
    gate.say(ping(1));
    assert_eq!(gate.text().await, attach());
    gate
}

/// The same, and lets the attempt go on.
async fn reattached(life: &Life, deadline_ms: u64) -> Gate {
    let mut gate = claimed(life).await;
    gate.say(attached(deadline_ms));
    assert_eq!(gate.text().await, pong(1));
    gate
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_on_without_its_connection_and_is_delivered_over_the_next() {
    let job = Job {
        stages: vec![
            (Duration::from_secs(1), Analyzing),
            (Duration::from_secs(4), Editing),
            (Duration::from_secs(15), Testing),
        ],
        cleanup: Some(None),
        ..Job::new(25, text("x"))
    };
    let life = Life::new([job]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    let since = Instant::now();
    assert_eq!(gate.text().await, activity::activity(1, "analyzing"));
    gate.close();
    sleep(Duration::from_secs(4)).await;
    let mut gate = reattached(&life, 20_000).await;
    // The stage of the time between is late; the lease is renewed at once.
    assert_eq!(gate.text().await, activity::activity(2, "editing"));
    assert_eq!(gate.next().await, heartbeat());
    assert_eq!(gate.next().await, Sent::Ping(1));
    gate.pong(1);
    assert_eq!(gate.text().await, activity::activity(3, "testing"));
    assert_eq!(gate.answer().await, result("x"));
    assert_eq!(since.elapsed(), Duration::from_secs(25));
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.log(), ["started", "done", "cleaned"]);
    assert_eq!(life.files(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_is_stopped_before_the_greeting_is_answered() {
    let job = Job {
        stops: Duration::from_millis(700),
        cleanup: Some(None),
        ..Job::new(600, text("x"))
    };
    let life = Life::new([job, Job::new(1, text("next"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    let mut gate = claimed(&life).await;
    assert_eq!(life.log(), ["started"]);
    gate.say(message("lost", ""));
    assert_eq!(gate.text().await, pong(1));
    assert_eq!(life.log(), ["started", "cancelled", "cleaned"]);
    assert_eq!(life.files(), (vec![], vec![]));
    gate.say(controlled());
    assert_eq!(gate.text().await, result("next"));
}

#[tokio::test(start_paused = true)]
async fn r09_without_a_connection_the_job_is_stopped_before_the_lease_could_be_given_away() {
    for told in ["attached", "lost"] {
        let job = Job {
            evidence: evidence(),
            cleanup: Some(None),
            ..Job::new(600, text("x"))
        };
        let life = Life::new([job, Job::new(1, text("next"))]);
        let gate = life.greeted().await;
        gate.say(controlled());
        sleep(Duration::from_secs(1)).await;
        gate.close();
        sleep(TTL - Duration::from_secs(2) - Duration::from_millis(1)).await;
        assert_eq!(life.log(), ["started"]);
        sleep(Duration::from_millis(2)).await;
        assert_eq!(life.log(), ["started", "cancelled", "cleaned"]);
        // Not worth a file, but the Gate may want to try again soon.
        assert_eq!(life.files(), (vec![], vec![]));
        let mut gate = claimed(&life).await;
        if told == "attached" {
            gate.say(attached(30_000));
            assert_eq!(gate.text().await, pong(1));
            assert!(gate.text().await.contains("\"evidence\":["));
            gate.say(ack());
            assert_eq!(gate.answer().await, failed());
            gate.say(ack());
        } else {
            gate.say(message("lost", ""));
            assert_eq!(gate.text().await, pong(1));
        }
        gate.say(controlled());
        assert_eq!(gate.answer().await, result("next"));
        assert_eq!(life.files().1, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_counts_from_the_question_as_the_gate_says() {
    let life = Life::new([Job::new(600, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    gate.close();
    let mut gate = claimed(&life).await;
    let asked = Instant::now();
    sleep(Duration::from_secs(3)).await;
    // From here on nothing can be written, so nothing is renewed.
    *gate.stuck.lock().unwrap() = true;
    gate.say(attached(12_000));
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(asked.elapsed(), Duration::from_secs(11));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(life.log(), ["started", "cancelled"]);
}

/// The kernel of a Gate that hangs still takes bytes.
#[tokio::test(start_paused = true)]
async fn on_a_new_connection_no_heartbeat_counts_by_its_write_alone() {
    let life = Life::new([Job::new(600, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    gate.close();
    let mut gate = claimed(&life).await;
    let asked = Instant::now();
    gate.say(attached(30_000));
    assert_eq!(gate.text().await, pong(1));
    while gate.next().await != Sent::Closed(Closing::Drop) {}
    assert_eq!(asked.elapsed(), TTL - Duration::from_secs(1));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(life.log(), ["started", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn r14_a_result_waits_for_its_gate_for_as_long_as_it_takes_and_is_delivered_once() {
    let job = Job {
        evidence: evidence(),
        cleanup: Some(Some(evidence().remove(0))),
        ..Job::new(5, text("x"))
    };
    let life = Life::new([job, Job::new(1, text("next"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(life.log(), ["started", "done", "cleaned"]);
    assert_eq!(life.files().0, ["slot-3.json"]);
    // Some connections bring nothing.
    for _ in 0..3 {
        life.connection().close();
        claimed(&life).await.close();
    }
    let mut gate = reattached(&life, 30_000).await;
    let sent = gate.text().await;
    assert_eq!(sent.matches("\"evidence_id\"").count(), 2, "{sent}");
    gate.say(ack());
    assert_eq!(gate.answer().await, result("x"));
    assert_eq!(life.files().0, ["slot-3.json"], "until it is acknowledged");
    gate.say(ack());
    gate.say(controlled());
    assert_eq!(gate.answer().await, result("next"));
}

#[tokio::test(start_paused = true)]
async fn r13_a_result_whose_acknowledgement_was_lost_is_sent_again_as_it_was() {
    let job = Job {
        evidence: evidence(),
        cleanup: Some(None),
        ..Job::new(5, text("x"))
    };
    let life = Life::new([job]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    let records = gate.text().await;
    gate.say(ack());
    assert_eq!(gate.text().await, result("x"));
    gate.close();
    // 0: it has ended, so there is no lease to renew.
    let mut gate = reattached(&life, 0).await;
    assert_eq!(gate.text().await, records);
    sleep(Duration::from_secs(30)).await;
    gate.say(ack());
    assert_eq!(gate.text().await, result("x"));
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.files(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_written_is_delivered_from_memory() {
    let life = Life::new([Job::new(5, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    // As a disk without room would.
    let folder = life.state.path().join("state/results");
    fs_err::remove_dir_all(&folder).unwrap();
    sleep(Duration::from_secs(60)).await;
    let mut gate = reattached(&life, 5_000).await;
    assert_eq!(gate.text().await, result("x"));
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    assert!(!folder.exists());
}

#[tokio::test(start_paused = true)]
async fn r15_the_next_start_delivers_what_the_last_could_not() {
    let job = Job {
        evidence: evidence(),
        ..Job::new(5, text("x"))
    };
    let life = Life::new([job]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    let records = gate.text().await;
    // Killed: nothing is said, nothing is removed.
    life.stop.kill();
    let state = life.ended().await;

    let life = Life::with([], DiskGuard::with_probe(None), state);
    // A lease on its way has to wait for the result.
    let mut gate = reattached(&life, 5_000).await;
    assert_eq!(gate.text().await, records);
    assert_eq!(gate.next().await, heartbeat());
    assert_eq!(gate.next().await, Sent::Ping(1));
    gate.say(ack());
    assert_eq!(gate.text().await, result("x"));
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.files(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn r15_a_result_without_a_place_is_moved_aside_and_the_slot_goes_on() {
    enum Told {
        Lost,
        Error,
        /// By a Gate without job control, that has another job for the slot.
        Original,
    }
    for told in [Told::Lost, Told::Error, Told::Original] {
        let life = Life::new([Job::new(5, text("x")), Job::new(0, text("next"))]);
        let gate = life.greeted().await;
        gate.say(controlled());
        sleep(Duration::from_secs(1)).await;
        gate.close();
        sleep(Duration::from_secs(10)).await;
        let mut gate = match told {
            Told::Lost => {
                let mut gate = claimed(&life).await;
                gate.say(message("lost", ""));
                assert_eq!(gate.text().await, pong(1));
                gate.say(controlled());
                gate
            }
            Told::Error => {
                let mut gate = reattached(&life, 5_000).await;
                assert_eq!(gate.text().await, result("x"));
                gate.say("{\"type\":\"error\",\"error\":\"request failed\"}\n");
                while gate.next().await != Sent::Closed(Closing::Drop) {}
                let gate = life.greeted().await;
                gate.say(controlled());
                gate
            }
            Told::Original => {
                let gate = life.connection();
                gate.say(lease());
                gate
            }
        };
        assert_eq!(gate.text().await, result("next"));
        let (kept, aside) = life.files();
        assert_eq!(aside, ["0000000001-slot-3.json"]);
        let expected: &[&str] = match told {
            Told::Original => &[],
            Told::Lost | Told::Error => &["slot-3.json"],
        };
        assert_eq!(kept, expected, "of the next job");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_knows_no_job_control_any_more_stops_the_job_with_its_next_lease() {
    let life = Life::new([Job::new(25, text("x")), Job::new(0, text("next"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    // It never pings, and it has nothing for the slot until the lease is over there.
    let mut gate = life.connection();
    sleep(Duration::from_secs(5)).await;
    assert!(gate.sent.try_recv().is_err(), "nothing is said to it");
    assert_eq!(life.log(), ["started"]);
    gate.say(lease());
    assert_eq!(gate.text().await, result("next"));
    assert_eq!(life.log(), ["started", "cancelled", "started", "done"]);
    assert_eq!(life.files(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_job_is_stopped_in_time_while_the_gate_keeps_quiet() {
    for greets in [false, true] {
        let life = Life::new([Job::new(600, text("x"))]);
        let gate = life.greeted().await;
        gate.say(controlled());
        sleep(Duration::from_secs(1)).await;
        gate.close();
        let mut gate = life.connection();
        if greets {
            gate.say(ping(1));
            assert_eq!(gate.text().await, attach());
        }
        sleep(TTL - Duration::from_secs(2)).await;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(life.log(), ["started", "cancelled"], "{greets}");
        drop(gate);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attach_that_nobody_judges_is_made_again() {
    let life = Life::new([Job::new(5, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    let mut gate = claimed(&life).await;
    let since = Instant::now();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Protocol));
    assert_eq!(since.elapsed(), ACK_TIMEOUT);
    // A ping has to wait too, and one pong answers both.
    let mut gate = claimed(&life).await;
    gate.say(ping(2));
    gate.say(attached(9_000));
    assert_eq!(gate.text().await, pong(2));
    assert_eq!(gate.text().await, result("x"));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_claims_a_result_of_a_running_job_is_not_believed() {
    let life = Life::new([Job::new(600, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    let mut gate = claimed(&life).await;
    gate.say(attached(0));
    assert_eq!(gate.next().await, Sent::Closed(Closing::Protocol));
    assert_eq!(life.log(), ["started", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_drains_tries_once_more_and_leaves_its_result_to_the_next_start() {
    let life = Life::new([Job::new(5, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    sleep(Duration::from_secs(1)).await;
    life.stop.drain();
    // The job goes on, and while it does the slot waits for its Gate.
    let gate = life.connection();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.log(), ["started"]);
    let since = Instant::now();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(life.log(), ["started", "done"]);
    // That Gate does not greet, and the next one hangs up.
    life.connection().close();
    let files = life.files();
    let state = life.ended().await;
    assert!(
        since.elapsed() < Duration::from_secs(20),
        "{:?}",
        since.elapsed()
    );
    assert_eq!(files.0, ["slot-3.json"]);
    assert!(state.path().join("state/results/slot-3.json").exists());
    drop(gate);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_drains_delivers_what_it_has_and_leaves() {
    let life = Life::new([Job::new(5, text("x"))]);
    let gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.close();
    sleep(Duration::from_secs(10)).await;
    life.stop.drain();
    let mut gate = reattached(&life, 5_000).await;
    assert_eq!(gate.text().await, result("x"));
    gate.say(ack());
    assert_eq!(gate.answer().await, refuses("draining"));
    assert!(matches!(gate.next().await, Sent::Ping(_)));
    gate.close();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    let state = life.ended().await;
    assert!(!state.path().join("state/results/slot-3.json").exists());
}

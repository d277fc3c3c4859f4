//! Pings, and attempts that the Gate cancels.

use super::*;

fn cancelled() -> String {
    message("cancelled", "")
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_gone_and_cleaned_up_before_the_gate_hears_of_it() {
    let job = Job {
        stops: Duration::from_millis(700),
        cleanup: Some(None),
        ..Job::new(600, text("x"))
    };
    let life = Life::new([job, Job::new(1, text("next"))]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.say(cancel());
    // Pings are answered while it stops.
    sleep(Duration::from_millis(100)).await;
    gate.say(ping(2));
    assert_eq!(gate.text().await, pong(2));
    assert_eq!(life.log(), ["started"]);
    assert_eq!(gate.text().await, cancelled());
    assert_eq!(life.log(), ["started", "cancelled", "cleaned"]);
    assert_eq!(life.files().0, [""; 0]);
    // The slot is free, on the same connection.
    gate.say(controlled());
    assert_eq!(gate.answer().await, result("next"));
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.files().0, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_meets_evidence_or_a_result_takes_its_place() {
    for acks in 0..2 {
        let job = Job {
            evidence: vec![recorder().event(Reason::NoChanges, Duration::ZERO)],
            cleanup: Some(None),
            ..Job::new(1, failed_completion())
        };
        let life = Life::new([job]);
        let mut gate = life.greeted().await;
        gate.say(controlled());
        assert!(gate.answer().await.contains("\"evidence\":["));
        for _ in 0..acks {
            gate.say(ack());
            assert_eq!(gate.answer().await, failed());
        }
        assert_eq!(life.files().0, ["slot-3.json"]);
        gate.say(cancel());
        assert_eq!(gate.answer().await, cancelled());
        assert_eq!(life.log(), ["started", "done", "cleaned"]);
        assert_eq!(life.files(), (vec![], vec![]));
    }
}

fn failed_completion() -> Completion {
    Completion::Failed(WorkerFailure::ExecutionFailed)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_is_over_even_if_the_connection_is_lost() {
    let job = Job {
        stops: Duration::from_millis(700),
        cleanup: Some(None),
        ..Job::new(600, text("x"))
    };
    let life = Life::new([job, Job::new(1, text("next"))]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.say(cancel());
    sleep(Duration::from_millis(100)).await;
    gate.close();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    // No attach: the greeting is answered by the pong alone.
    let mut gate = life.greeted().await;
    assert_eq!(life.log(), ["started", "cancelled", "cleaned"]);
    gate.say(controlled());
    assert_eq!(gate.answer().await, result("next"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_refused_can_be_cancelled_too() {
    let life = Life::new([]);
    let mut gate = life.greeted().await;
    gate.say(controlled().replace("\"max_attempts\":3", "\"max_attempts\":101"));
    assert!(gate.text().await.contains("invalid_task"));
    gate.say(cancel());
    assert_eq!(gate.text().await, cancelled());
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_in_every_state() {
    let life = Life::new([Job::new(5, text("x"))]);
    let mut gate = life.greeted().await;
    let mut n = 1;
    let mut ping_now = async |gate: &mut Gate| {
        n += 1;
        gate.say(ping(n));
        let since = Instant::now();
        assert_eq!(gate.text().await, pong(n));
        assert_eq!(since.elapsed(), Duration::ZERO);
    };
    ping_now(&mut gate).await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    ping_now(&mut gate).await;
    assert_eq!(gate.text().await, result("x"));
    ping_now(&mut gate).await;
    gate.say(ack());
    sleep(Duration::from_secs(1)).await;
    ping_now(&mut gate).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_for_nobody_ends_the_connection_and_touches_no_job() {
    let other = cancel().replace(ATTEMPT, &"e".repeat(32));
    let life = Life::new([Job::new(5, text("x"))]);
    let mut gate = life.greeted().await;
    gate.say(cancel());
    assert_eq!(gate.next().await, Sent::Closed(Closing::Protocol));
    let mut gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    gate.say(other);
    assert_eq!(gate.next().await, Sent::Closed(Closing::Protocol));
    let mut gate = life.connection();
    gate.say(ping(1));
    assert_eq!(gate.text().await, attach());
    assert_eq!(life.log(), ["started"]);
}

//! A Worker that drains, cancels or is killed, with a Gate that knows no job control.

use super::*;

/// The result of the one job, which leaves with the Close frame.
fn last() -> Sent {
    Sent::Last(Some(message("result", ",\"result\":\"x\"")))
}

fn handed_back() -> String {
    message(
        "result",
        ",\"error\":\"execution_failed\",\"disposition\":\"retryable\"",
    )
}

#[tokio::test(start_paused = true)]
async fn draining_lets_the_job_finish_and_closes_with_its_result() {
    let mut stage = stage(Duration::from_secs(25), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.drain();
    for number in 1..=2 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        stage.gate.pong(number);
    }
    assert_eq!(stage.gate.next().await, last());
    // Nothing follows the Close frame, however long the answer takes.
    sleep(ACK_TIMEOUT - Duration::from_secs(1)).await;
    assert!(stage.gate.sent.try_recv().is_err());
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "done"]);
    let (proved, broken) = stage.end().await;
    assert!(proved && matches!(broken, Broken::Drained), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_behind_the_close_is_neither_begun_nor_answered() {
    // One that comes with the acknowledgement, and one of a Gate that reads the Close late.
    for late in [Duration::ZERO, Duration::from_millis(50)] {
        let mut stage = stage(Duration::from_secs(5), text("x"));
        stage.gate.say(lease());
        sleep(Duration::from_secs(1)).await;
        stage.stop.drain();
        assert_eq!(stage.gate.next().await, last());
        let since = Instant::now();
        stage.gate.say(ack());
        sleep(late).await;
        stage.gate.say(lease());
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
        assert_eq!(since.elapsed(), LAST_WORDS, "a Gate that never closes");
        assert_eq!(stage.log(), ["started", "done"]);
        let (proved, broken) = stage.end().await;
        assert!(proved && matches!(broken, Broken::Drained), "{broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_closes_without_an_acknowledgement_leaves_the_result_open() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, last());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert!(matches!(stage.end().await.1, Broken::Unsure(_)));
}

#[tokio::test(start_paused = true)]
async fn a_last_result_that_nobody_acknowledges_is_waited_for_as_any_other() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    stage.stop.drain();
    // Drained before it was read: it is handed back.
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    let since = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
    assert_eq!(since.elapsed(), ACK_TIMEOUT);
    assert!(stage.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_result_and_acknowledgement_hands_the_next_lease_back() {
    for late in [Duration::ZERO, CROSSING - Duration::from_millis(1)] {
        let mut stage = stage(Duration::from_secs(5), text("x"));
        stage.gate.say(lease());
        assert_eq!(
            stage.gate.text().await,
            message("result", ",\"result\":\"x\"")
        );
        stage.stop.drain();
        sleep(Duration::from_secs(1)).await;
        stage.gate.say(ack());
        sleep(late).await;
        stage.gate.say(lease());
        assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
        stage.gate.say(ack());
        stage.gate.close();
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
        assert_eq!(stage.log(), ["started", "done"], "the second is not begun");
        assert!(matches!(stage.end().await.1, Broken::Drained));
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_result_and_acknowledgement_closes_when_no_lease_follows() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.stop.drain();
    stage.gate.say(ack());
    let since = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), CROSSING);
}

#[tokio::test(start_paused = true)]
async fn an_idle_slot_closes_at_once_and_waits_for_the_answer() {
    let mut idle = stage(Duration::ZERO, text("x"));
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    idle.stop.drain();
    assert_eq!(idle.gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), Duration::ZERO);
    // What crosses the Close frame cannot be answered.
    idle.gate.say(lease());
    idle.gate.close();
    assert_eq!(idle.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert!(idle.log().is_empty());
    assert!(matches!(idle.end().await.1, Broken::Drained));

    // A connection that takes no more bytes holds nobody up.
    let mut stuck = stage(Duration::ZERO, text("x"));
    *stuck.gate.stuck.lock().unwrap() = true;
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    stuck.stop.drain();
    assert_eq!(stuck.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), LAST_WORDS);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_come_when_the_signal_does_is_handed_back() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    sleep(Duration::from_secs(1)).await;
    stage.gate.say(lease());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert!(stage.log().is_empty());
    assert!(matches!(stage.end().await.1, Broken::Drained));
}

#[tokio::test(start_paused = true)]
async fn cancelling_reports_the_job_as_failed_while_connected() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.cancel();
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
}

#[tokio::test(start_paused = true)]
async fn killing_reports_nothing() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.kill();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "cancelled"]);
}

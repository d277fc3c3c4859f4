//! The stages of a job.

use super::*;

/// A lease that selects what was offered.
fn selecting() -> String {
    lease().replace(
        "\"input\"",
        "\"activity_version\":\"live_activity/v1\",\"input\"",
    )
}

pub(super) fn activity(sequence: u8, stage: &str) -> String {
    let head = format!(
        "{{\"activity_version\":\"live_activity/v1\",\"activity\":{{\"sequence\":{sequence},\"stage\":\"{stage}\"}},"
    );
    message("activity", ",\"worker_id\":\"worker-1\"").replacen('{', &head, 1)
}

#[tokio::test(start_paused = true)]
async fn stages_are_sent_as_they_come_and_the_last_before_the_result() {
    let stages = [
        (1, Analyzing),
        (2, Editing),
        (2, Editing),
        (3, Analyzing),
        (4, Testing),
        (5, PreparingResult),
    ];
    let mut stage = active(Duration::from_secs(5), &stages, text("x"));
    stage.gate.say(selecting());
    let since = Instant::now();
    for (sequence, name, second) in [
        (1, "analyzing", 1),
        (2, "editing", 2),
        (3, "testing", 4),
        (4, "preparing_result", 5),
    ] {
        assert_eq!(stage.gate.text().await, activity(sequence, name));
        assert_eq!(since.elapsed().as_secs(), second);
    }
    let result = message("result", ",\"result\":\"x\"");
    assert_eq!(stage.gate.text().await, result);
    stage.gate.say(ack());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_does_not_select_activity_hears_none() {
    let stages = [(1, Analyzing), (2, Testing)];
    let mut stage = active(Duration::from_secs(3), &stages, text("x"));
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    // Where nothing was offered, nothing can be selected.
    let mut silent = self::stage(Duration::ZERO, text("x"));
    silent.gate.say(selecting());
    assert_eq!(silent.gate.next().await, Sent::Closed(Closing::Protocol));
    assert!(silent.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn activity_and_heartbeats_go_side_by_side() {
    let stages = [(10, Analyzing), (15, Editing)];
    let mut stage = active(Duration::from_secs(16), &stages, text("x"));
    stage.gate.say(selecting());
    let mut sent = Vec::new();
    loop {
        match stage.gate.next().await {
            Sent::Message(text) if text.contains("\"result\"") => break,
            Sent::Message(text) => sent.push(text),
            Sent::Ping(number) => stage.gate.pong(number),
            other => panic!("{other:?}"),
        }
    }
    sent.sort();
    let Sent::Message(heartbeat) = heartbeat() else {
        panic!("no message")
    };
    let expected = [activity(1, "analyzing"), activity(2, "editing"), heartbeat];
    assert_eq!(sent, expected);
}

#[tokio::test(start_paused = true)]
async fn a_failed_activity_write_cancels_the_job() {
    let stages = [(2, Analyzing)];
    let mut stage = active(Duration::from_secs(600), &stages, text("x"));
    stage.gate.say(selecting());
    sleep(Duration::from_secs(1)).await;
    stage.gate.sent.close();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::Down(_)));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_activity_write_cancels_the_job_before_the_lease_could_be_given_away() {
    let stages = [(2, Analyzing)];
    let mut stage = active(Duration::from_secs(600), &stages, text("x"));
    stage.gate.say(selecting());
    let since = Instant::now();
    sleep(Duration::from_secs(1)).await;
    *stage.gate.stuck.lock().unwrap() = true;
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

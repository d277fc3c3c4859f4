//! Leases, evidence, results and broken connections, with a Gate that knows no job control.

use super::*;

#[tokio::test(start_paused = true)]
async fn text_job_is_lease_result_ack_and_again() {
    let mut stage = stage(Duration::from_secs(1), text("HELLO"));
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"HELLO\"")
    );
    stage.gate.say(ack());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
    let (proved, broken) = stage.end().await;
    assert!(proved);
    assert!(matches!(broken, Broken::Drained));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_name_the_base_id_and_go_on_until_the_last_ack() {
    let mut stage = stage(Duration::from_secs(25), text("x"));
    stage.gate.say(lease());
    let since = Instant::now();
    for number in 1..=2 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        assert_eq!(since.elapsed(), BEAT * u32::try_from(number).unwrap());
    }
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    // No ack yet: the lease is kept alive.
    assert_eq!(stage.gate.next().await, heartbeat());
    assert_eq!(stage.gate.next().await, Sent::Ping(3));
    stage.gate.say(ack());
    sleep(TTL).await;
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
}

#[tokio::test(start_paused = true)]
async fn evidence_then_cleanup_then_result() {
    let evidence = vec![recorder().event(Reason::PluginStartFailed, Duration::from_millis(7))];
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let mut stage = stage_with(Duration::ZERO, failed, evidence, Some(None));
    stage.gate.say(lease());
    let sent = stage.gate.text().await;
    let head = message("evidence", "");
    assert!(
        sent.starts_with(head.trim_end().trim_end_matches('}')),
        "{sent}"
    );
    assert!(
        sent.contains(r#""phase":"plugin","reason":"plugin_start_failed","duration_ms":7,"#),
        "{sent}"
    );
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        stage.log(),
        ["started", "done"],
        "cleaned before the evidence was stored"
    );
    stage.gate.say(ack());
    let result = message(
        "result",
        ",\"error\":\"execution_failed\",\"disposition\":\"retryable\"",
    );
    assert_eq!(stage.gate.text().await, result);
    assert_eq!(stage.log(), ["started", "done", "cleaned"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_cleanup_is_a_batch_of_its_own() {
    let cleanup = recorder().event(Reason::CleanupFailed, Duration::from_millis(9));
    let sha = Completion::Candidate {
        sha: "2".repeat(40).parse().unwrap(),
        report: None,
    };
    let mut stage = stage_with(Duration::ZERO, sha, Vec::new(), Some(Some(cleanup)));
    stage.gate.say(lease());
    let sent = stage.gate.text().await;
    assert!(
        sent.contains(r#""phase":"cleanup","reason":"cleanup_failed""#),
        "{sent}"
    );
    stage.gate.say(ack());
    let result = message(
        "result",
        &format!(",\"candidate_sha\":\"{}\"", "2".repeat(40)),
    );
    assert_eq!(stage.gate.text().await, result);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_lease_ends_an_idle_connection() {
    let strangers = [
        (ack(), Closing::Protocol),
        (message("result", ",\"result\":\"x\""), Closing::Protocol),
        (
            "{\"type\":\"error\",\"error\":\"request failed\"}\n".to_owned(),
            Closing::Drop,
        ),
        ("{".to_owned(), Closing::Protocol),
        (
            lease().replace(
                "\"input\"",
                "\"activity\":{\"sequence\":1,\"stage\":\"analyzing\"},\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace(
                "\"input\"",
                "\"activity_version\":\"live_activity/v9\",\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace(
                "\"input\"",
                "\"activity_version\":\"live_activity/v1\",\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace("\"input\"", "\"extra\":1,\"input\""),
            Closing::Protocol,
        ),
    ];
    for (stranger, closing) in strangers {
        let mut stage = stage(Duration::ZERO, text("x"));
        stage.gate.say(stranger.clone());
        assert_eq!(stage.gate.next().await, Sent::Closed(closing), "{stranger}");
        assert!(stage.log().is_empty(), "{stranger}");
        let (proved, _) = stage.end().await;
        assert!(!proved, "{stranger}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_out_of_bounds_is_answered_with_invalid_task() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage
        .gate
        .say(lease().replace("\"max_attempts\":3", "\"max_attempts\":101"));
    let refusal = message(
        "result",
        ",\"error\":\"invalid_task\",\"disposition\":\"terminal\"",
    );
    assert_eq!(stage.gate.text().await, refusal);
    stage.gate.say(ack());
    // The slot is good for the next one.
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_before_a_heartbeat_is_refused() {
    for ttl in ["10000000000", "9999999999"] {
        let mut stage = stage(Duration::ZERO, text("x"));
        stage.gate.say(lease().replace("30000000000", ttl));
        let refusal = message(
            "result",
            ",\"error\":\"invalid_task\",\"disposition\":\"terminal\"",
        );
        assert_eq!(stage.gate.text().await, refusal);
        assert!(stage.log().is_empty());
    }
    let mut stage = stage(Duration::ZERO, text("x"));
    stage
        .gate
        .say(lease().replace("30000000000", "10000000001"));
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_during_execution_cancels_the_job_and_ends_the_connection() {
    for stranger in [ack(), lease(), message("evidence", ",\"evidence\":[]")] {
        let mut stage = stage_with(TTL, text("x"), Vec::new(), Some(None));
        stage.gate.say(lease());
        sleep(Duration::from_secs(1)).await;
        stage.gate.say(stranger);
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
        assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_cancels_the_job_at_once() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    stage
        .gate
        .outgoing
        .send(Err(LinkDown::Closed("1006".to_owned())))
        .unwrap();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    let (proved, broken) = stage.end().await;
    assert!(proved && matches!(broken, Broken::Down(_)), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_heartbeat_write_cancels_the_job() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.gate.sent.close();
    sleep(BEAT).await;
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stuck_write_cancels_the_job_before_the_lease_could_be_given_away() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    assert_eq!(stage.gate.next().await, heartbeat());
    let renewed = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Ping(1));
    *stage.gate.stuck.lock().unwrap() = true;
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(renewed.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_stops_answering_pings_loses_the_job_in_time() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    assert_eq!(stage.gate.next().await, heartbeat());
    let renewed = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Ping(1));
    stage.gate.pong(1);
    // The writes below still succeed: the peer's machine takes them, the Gate does not.
    for number in 2..=3 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
    }
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(renewed.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_answers_pings_keeps_the_job_for_long() {
    let mut stage = stage(Duration::from_secs(95), text("x"));
    stage.gate.say(lease());
    for number in 1..=9 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        stage.gate.pong(number);
    }
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    assert_eq!(stage.log(), ["started", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_stopped_past_the_lease_lets_go_first() {
    let mut stage = stage(Duration::from_secs(300), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    advance(Duration::from_secs(200)).await; // SIGSTOP, SIGCONT
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "cancelled"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn an_ack_for_another_attempt_is_refused_and_the_result_is_dropped() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.gate.say(ack().replace(ATTEMPT, &"c".repeat(32)));
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
}

#[tokio::test(start_paused = true)]
async fn an_ack_with_an_unknown_field_is_refused() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.gate.say(ack().replace('}', ",\"extra\":1}"));
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
}

#[tokio::test(start_paused = true)]
async fn evidence_without_ack_still_cleans_up() {
    let evidence = vec![recorder().event(Reason::NoChanges, Duration::ZERO)];
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let mut stage = stage_with(Duration::ZERO, failed, evidence, Some(None));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage
        .gate
        .outgoing
        .send(Err(LinkDown::Closed("1006".to_owned())))
        .unwrap();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "done", "cleaned"]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_never_acknowledges_is_left() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    let since = Instant::now();
    loop {
        match stage.gate.next().await {
            Sent::Ping(number) => stage.gate.pong(number),
            Sent::Message(text) => assert!(text.contains("heartbeat"), "{text}"),
            Sent::Closed(closing) => {
                assert_eq!(closing, Closing::Protocol);
                break;
            }
            Sent::Last(last) => panic!("{last:?}"),
        }
    }
    assert_eq!(since.elapsed(), ACK_TIMEOUT);
}

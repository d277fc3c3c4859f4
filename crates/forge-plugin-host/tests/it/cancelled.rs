//! Cancellation: who wins, what is sent, and how long it takes.

use std::time::Duration;

use forge_plugin_host::RunError;
use forge_plugin_protocol::Operation;
use tokio::time::Instant;

use crate::support::{Run, Scratch, runs, told};

/// A whole cancel takes less than a second, and a loaded machine gets one more.
const BOUND: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_cancel_frame_is_sent_exactly_once() {
    let scratch = Scratch::new();
    let heard = scratch.path("heard");
    let mut run = Run::script(&format!(
        "record {} init cancel,progress,text read progress 1 go read failure cancelled read-to-end",
        heard.display()
    ))
    .cancel_at_progress();
    run.is_cancelled().await;
    let heard = std::fs::read_to_string(heard).unwrap();
    assert_eq!(heard.matches(r#""type":"cancel""#).count(), 1, "{heard}");
    assert_eq!(heard.lines().count(), 3, "{heard}");
}

#[tokio::test]
async fn no_cancel_frame_without_its_capability() {
    let scratch = Scratch::new();
    let heard = scratch.path("heard");
    let since = Instant::now();
    let mut run = Run::script(&format!(
        "record {} init progress,text read progress 1 go read-to-end sleep 60000",
        heard.display()
    ))
    .cancel_at_progress();
    run.is_cancelled().await;
    assert!(since.elapsed() < BOUND);
    let heard = std::fs::read_to_string(heard).unwrap();
    assert!(!heard.contains("cancel\"}"), "{heard}");
}

#[tokio::test]
async fn a_plugin_that_ignores_cancel_is_ended_with_its_children() {
    let scratch = Scratch::new();
    let (child, own) = (scratch.path("child"), scratch.path("own"));
    let mut run = Run::script(&format!(
        "bg out+err pidfile+{0}+sleep+60000 await {0} pidfile {1} \
         init cancel,progress,text read progress 1 go sleep 60000",
        child.display(),
        own.display()
    ))
    .cancel_at_progress();
    let since = Instant::now();
    run.is_cancelled().await;
    // The start of an interpreter is in it, too.
    assert!(since.elapsed() < BOUND * 2);
    assert!(!runs(told(&own)));
    if cfg!(all(target_os = "linux", not(portable_process))) {
        assert!(!runs(told(&child)));
    }
}

#[tokio::test]
async fn r40_cancel_wins_over_a_result_that_follows() {
    let mut run =
        Run::script("init cancel,progress,text read progress 1 go result ok").cancel_at_progress();
    run.is_cancelled().await;
}

#[tokio::test]
async fn r40_cancel_wins_over_a_failing_exit_and_over_garbage() {
    for rest in [
        "exit 3",
        "raw garbage\\n exit 3",
        "result ok result ok",
        "kill-self",
    ] {
        let words = format!("init cancel,progress,text read progress 1 go {rest}");
        Run::script(&words)
            .cancel_at_progress()
            .is_cancelled()
            .await;
    }
}

#[tokio::test]
async fn a_cancel_that_is_ready_wins_over_the_output_limit() {
    let mut run =
        Run::script("init cancel,progress,text read progress 1 go sleep 30 stderr 100000")
            .output_bytes(1_000)
            .cancel_at_progress();
    run.is_cancelled().await;
}

#[tokio::test]
async fn the_output_limit_wins_over_a_cancel_that_comes_later() {
    let mut run = Run::script("init text read stderr 2000 sleep 60000").output_bytes(1_000);
    let end = run.end().await;
    run.cancel.cancel();
    assert!(matches!(end, Err(RunError::Protocol { .. })), "{end:?}");
}

#[tokio::test]
async fn r40_a_cancel_before_the_start_starts_nothing() {
    let mut run = Run::argv(["/no/such/plugin"]);
    run.cancel.cancel();
    run.is_cancelled().await;
}

/// The pipe holds less than the frame, and the plugin never reads it.
#[tokio::test]
async fn h4_h5_a_blocked_execute_is_interrupted() {
    let mut run = Run::script("init cancel,text sleep 60000").timeout(300);
    run.operation = Operation::text("x".repeat(65_536)).unwrap();
    let since = Instant::now();
    run.is_cancelled().await;
    assert!(since.elapsed() < BOUND);
}

#[tokio::test]
async fn r40_a_cancel_during_the_handshake_ends_at_once() {
    let mut run = Run::script("sleep 60000");
    let cancel = run.cancel.clone();
    let since = Instant::now();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (end, ()) = tokio::join!(run.end(), stop);
    assert!(matches!(end, Err(RunError::Cancelled)), "{end:?}");
    assert!(since.elapsed() < BOUND);
}

/// Dropping the run is the hardest cancel: nothing survives it.
#[tokio::test]
async fn a_run_that_is_dropped_ends_its_plugin() {
    let scratch = Scratch::new();
    let own = scratch.path("own");
    let mut run = Run::script(&format!("pidfile {} sleep 60000", own.display()));
    {
        let running = run.end();
        tokio::pin!(running);
        while !own.exists() {
            let short = tokio::time::timeout(Duration::from_millis(1), &mut running);
            assert!(short.await.is_err());
        }
    }
    let pid = told(&own);
    for _ in 0..5_000 {
        if !runs(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the plugin {pid} still runs");
}

//! Captured runs: output, budgets, time limits, input.

use std::time::Duration;

use process_tree::{
    Capture, CaptureError, Captured, OnLimit, Outlived, Spec, Status, capture, capture_direct,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Scratch, goes, pid_in, script, wrapper};

const LONG: Duration = Duration::from_secs(60);

/// Both ways to run, which differ in nothing that these tests ask.
async fn each(spec: Spec, limits: Capture) -> [Result<Captured, CaptureError>; 2] {
    let none = CancellationToken::new();
    [
        capture(&wrapper(), spec.clone(), limits.clone(), &none).await,
        capture_direct(spec, limits, &none).await,
    ]
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    for done in each(
        script("say hello complain oops exit 7"),
        Capture::new(LONG, 100),
    )
    .await
    {
        let done = done.unwrap();
        assert_eq!(done.stdout, b"hello\n");
        assert_eq!(done.stderr, b"oops");
        assert_eq!(done.exit.status, Status::Code(7));
        assert_eq!(done.exit.leftovers, Outlived::None);
        assert!(!done.truncated && !done.exit.is_success());
    }
}

#[tokio::test]
async fn the_budget_counts_both_outputs_and_may_be_used_up() {
    for done in each(script("fill 60 fill-stderr 40"), Capture::new(LONG, 100)).await {
        let done = done.unwrap();
        assert_eq!((done.stdout.len(), done.stderr.len()), (60, 40));
        assert!(!done.truncated);
    }
}

#[tokio::test]
async fn one_byte_over_the_budget_kills() {
    for done in each(
        script("fill 60 fill-stderr 41 sleep 60000"),
        Capture::new(LONG, 100),
    )
    .await
    {
        let Err(CaptureError::OutputLimit { limit, partial }) = done else {
            panic!("{done:?}");
        };
        assert_eq!(limit, 100);
        assert_eq!(partial.stdout.len() + partial.stderr.len(), 100);
        assert_eq!(partial.exit.status, Status::Signal(9));
    }
}

#[tokio::test]
async fn one_byte_over_the_budget_is_thrown_away_if_that_is_asked() {
    let limits = Capture::new(LONG, 100_000).on_limit(OnLimit::Truncate);
    for done in each(script("fill 100000 exit 3"), limits.clone()).await {
        assert!(!done.unwrap().truncated);
    }
    for done in each(script("fill 100001 exit 3"), limits).await {
        let done = done.unwrap();
        assert!(done.truncated);
        assert_eq!(done.stdout.len(), 100_000);
        assert_eq!(done.exit.status, Status::Code(3));
    }
}

#[tokio::test]
async fn h4_input_larger_than_a_pipe_is_fed_while_output_is_read() {
    let input = vec![b'i'; 1_000_000];
    for done in each(script("cat"), Capture::new(LONG, 1_000_000).stdin(input)).await {
        assert_eq!(done.unwrap().stdout.len(), 1_000_000);
    }
}

#[tokio::test]
async fn input_that_is_not_read_is_no_error() {
    let input = vec![b'i'; 1_000_000];
    for done in each(script("say done"), Capture::new(LONG, 100).stdin(input)).await {
        let done = done.unwrap();
        assert_eq!(done.stdout, b"done\n");
        assert!(done.exit.is_success());
    }
}

#[tokio::test]
async fn no_input_is_the_end_of_file() {
    for done in each(script("cat say end"), Capture::new(LONG, 100)).await {
        assert_eq!(done.unwrap().stdout, b"end\n");
    }
}

#[tokio::test]
async fn h5_a_time_limit_kills_and_keeps_what_was_written() {
    for done in each(
        script("say before sleep 60000"),
        Capture::new(Duration::from_millis(600), 100),
    )
    .await
    {
        let Err(CaptureError::Timeout { after, partial }) = done else {
            panic!("{done:?}");
        };
        assert_eq!(after, Duration::from_millis(600));
        assert_eq!(partial.stdout, b"before\n");
        assert_eq!(partial.exit.status, Status::Signal(9));
    }
}

#[tokio::test]
async fn h5_an_endless_flood_hides_neither_time_limit_nor_exit() {
    let limits = Capture::new(Duration::from_millis(400), 10_000_000);
    for done in each(script("flood"), limits).await {
        assert!(
            matches!(done, Err(CaptureError::Timeout { .. })),
            "{done:?}"
        );
    }
}

#[tokio::test]
async fn cancelled_before_the_start_starts_nothing() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let missing = Spec::new(["/no/such/program"]);
    let limits = Capture::new(LONG, 100);
    let outcome = capture(&wrapper(), missing.clone(), limits.clone(), &cancelled).await;
    assert!(matches!(outcome, Err(CaptureError::Cancelled)));
    let outcome = capture_direct(missing, limits, &cancelled).await;
    assert!(matches!(outcome, Err(CaptureError::Cancelled)));
}

#[tokio::test]
async fn cancelled_while_running_leaves_nothing_running() {
    for wrapped in [true, false] {
        let scratch = Scratch::new();
        let told = scratch.path("pid");
        let spec = script(&format!("pidfile {} sleep 60000", told.display()));
        let cancel = CancellationToken::new();
        let run = async {
            let limits = Capture::new(LONG, 100);
            if wrapped {
                capture(&wrapper(), spec, limits, &cancel).await
            } else {
                capture_direct(spec, limits, &cancel).await
            }
        };
        let stop = async {
            let pid = pid_in(&told).await;
            cancel.cancel();
            (pid, Instant::now())
        };
        let (outcome, (pid, since)) = tokio::join!(run, stop);
        assert!(matches!(outcome, Err(CaptureError::Cancelled)));
        assert!(since.elapsed() < Duration::from_secs(2));
        assert!(goes(pid).await);
    }
}

#[tokio::test]
async fn a_background_process_of_the_group_goes_with_a_direct_program() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let spec = script(&format!(
        "bg out [ pidfile {0} sleep 60000 ] await {0} say done",
        told.display()
    ));
    let none = CancellationToken::new();
    let done = capture_direct(spec, Capture::new(LONG, 100), &none)
        .await
        .unwrap();
    assert_eq!(done.stdout, b"done\n");
    assert!(goes(pid_in(&told).await).await);
}

/// What leaves the group is beyond the direct way, yet its hold on the output ends the wait.
#[tokio::test]
async fn a_fugitive_that_holds_the_output_of_a_direct_program_is_told() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let spec = script(&format!(
        "bg out [ setsid pidfile {0} sleep 60000 ] await {0} say done",
        told.display()
    ));
    let none = CancellationToken::new();
    let done = capture_direct(spec, Capture::new(LONG, 100), &none)
        .await
        .unwrap();
    let pid = pid_in(&told).await;
    crate::support::end(pid);
    assert_eq!(done.stdout, b"done\n");
    assert!(matches!(done.exit.leftovers, Outlived::HeldOutput(_)));
}

//! Captured runs: output, limits, cancellation.

use std::time::Duration;

use process_tree::{Capture, CaptureError, Outlived, Status, capture, capture_direct};
use tokio_util::sync::CancellationToken;

use crate::support::{script, wrapper};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn output_and_exit_code_come_back() {
    for wrapped in [true, false] {
        let spec = script("say hello complain oops exit 7");
        let limits = Capture::new(LONG, 100);
        let none = CancellationToken::new();
        let done = if wrapped {
            capture(&wrapper(), spec, limits, &none).await
        } else {
            capture_direct(spec, limits, &none).await
        }
        .unwrap();
        assert_eq!(done.stdout, b"hello\n");
        assert_eq!(done.stderr, b"oops");
        assert_eq!(done.exit.status, Status::Code(7));
        assert_eq!(done.exit.leftovers, Outlived::None);
        assert!(!done.truncated);
    }
}

#[tokio::test]
async fn cancelled_before_the_start_starts_nothing() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let missing = process_tree::Spec::new(["/no/such/program"]);
    let limits = Capture::new(LONG, 100);
    let outcome = capture(&wrapper(), missing.clone(), limits.clone(), &cancelled).await;
    assert!(matches!(outcome, Err(CaptureError::Cancelled)));
    let outcome = capture_direct(missing, limits, &cancelled).await;
    assert!(matches!(outcome, Err(CaptureError::Cancelled)));
}

//! R39: a thousand runs leave no zombie, no descriptor and no thread behind.

use std::time::Duration;

use process_tree::{Capture, Ladder, Spec, StartError, capture, capture_direct, spawn};
use tokio_util::sync::CancellationToken;

use crate::support::{children, script, wrapper};

#[derive(Debug, PartialEq, Eq)]
struct Held {
    children: usize,
    descriptors: usize,
    threads: usize,
}

fn held() -> Held {
    Held {
        children: children(i32::try_from(std::process::id()).unwrap()).len(),
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        threads: std::fs::read_dir("/proc/self/task").unwrap().count(),
    }
}

#[tokio::test]
async fn r39_a_thousand_runs_leave_nothing_behind() {
    once().await;
    let before = held_by_none().await;
    for _ in 0..200 {
        once().await;
    }
    let mut after = held_by_none().await;
    for _ in 0..5_000 {
        if after == before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        after = held();
    }
    assert_eq!(after, before);
}

/// What is held once no child is left: dropped ones are reaped by the runtime a moment later.
async fn held_by_none() -> Held {
    for _ in 0..5_000 {
        if held().children == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    held()
}

/// One run of each of five kinds.
async fn once() {
    let none = CancellationToken::new();
    let limits = Capture::new(Duration::from_secs(60), 100);
    let done = capture(&wrapper(), Spec::new(["/bin/true"]), limits.clone(), &none).await;
    assert!(done.unwrap().exit.is_success());
    let done = capture_direct(Spec::new(["/bin/true"]), limits, &none).await;
    assert!(done.unwrap().exit.is_success());
    let refused = spawn(&wrapper(), Spec::new(["/no/such/program"])).await;
    assert!(matches!(refused, Err(StartError::NotFound { .. })));
    let mut cancelled = spawn(&wrapper(), script("sleep 60000")).await.unwrap();
    cancelled.cancel(Ladder::KILL).await;
    drop(spawn(&wrapper(), script("sleep 60000")).await.unwrap());
}

//! The wrapper itself is killed or stopped: the host says so and ends what it can find.

use std::time::Duration;

use process_tree::{Ladder, Status, WaitError, spawn};
use tokio::time::Instant;

use crate::support::{Scratch, goes, pid_in, runs, script, wrapper};

#[tokio::test]
async fn r37_a_killed_wrapper_is_told_and_the_program_ended() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let words = format!(
        "bg null [ setsid pidfile {0} sleep 60000 ] await {0} pidfile {1} kill-parent sleep 60000",
        one.display(),
        two.display()
    );
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    let pids = [pid_in(&one).await, pid_in(&two).await];
    let error = child.wait().await.unwrap_err();
    assert!(matches!(error, WaitError::WrapperLost { .. }));
    assert!(error.to_string().contains("signal: 9"), "{error}");
    for pid in pids {
        assert!(goes(pid).await);
    }
}

#[tokio::test]
async fn h5_a_stopped_wrapper_delays_a_cancel_only_so_long() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let words = format!(
        "bg null [ setsid pidfile {0} sleep 60000 ] await {0} stop-parent pidfile {1} sleep 60000",
        one.display(),
        two.display()
    );
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    let pids = [pid_in(&one).await, pid_in(&two).await];
    let wrapper = crate::support::parent(child.pid());
    let since = Instant::now();
    let exit = child.cancel(Ladder::KILL).await;
    assert!(since.elapsed() < Duration::from_secs(2));
    assert_eq!(exit.status, Status::Lost);
    for pid in pids {
        assert!(goes(pid).await);
    }
    assert!(!runs(wrapper));
}

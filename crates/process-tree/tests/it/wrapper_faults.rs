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
async fn r37_after_a_killed_wrapper_nobody_goes_on_past_a_killed_child() {
    for _ in 0..5 {
        let scratch = Scratch::new();
        let [last, inner, outer] = ["last", "inner", "outer"].map(|name| scratch.path(name));
        let words = format!(
            "run [ setsid run [ pidfile {} sleep 60000 ] pidfile {} sleep 60000 ] pidfile {} sleep 60000",
            last.display(),
            inner.display(),
            outer.display()
        );
        let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
        let last = pid_in(&last).await;
        let middle = crate::support::parent(last);
        crate::support::end(crate::support::parent(child.pid()));
        let error = child.wait().await.unwrap_err();
        assert!(matches!(error, WaitError::WrapperLost { .. }));
        for pid in [last, middle, child.pid()] {
            assert!(goes(pid).await);
        }
        assert!(!inner.exists() && !outer.exists());
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

/// A program that leaves a daemon to its wrapper and then kills the wrapper.
async fn lost_with_a_daemon() -> (i32, WaitError) {
    let scratch = Scratch::new();
    let daemon = scratch.path("daemon");
    let words = format!(
        "bg null [ setsid bg null [ setsid pidfile {0} sleep 60000 ] ] await {0} sleep 50 kill-parent sleep 60000",
        daemon.display()
    );
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    let pid = pid_in(&daemon).await;
    (pid, child.wait().await.unwrap_err())
}

#[tokio::test]
async fn r37_a_host_that_adopts_orphans_ends_also_what_the_killed_wrapper_had_adopted() {
    process_tree::adopt_orphans().unwrap();
    // Another program, with a wrapper of its own, is nobody's orphan.
    let mut other = spawn(&wrapper(), script("sleep 60000")).await.unwrap();
    let (daemon, error) = lost_with_a_daemon().await;
    assert!(!runs(daemon));
    let told = error.to_string();
    assert!(
        told.ends_with("all that it had started was ended"),
        "{told}"
    );
    assert!(runs(other.pid()));
    let exit = other.cancel(Ladder::KILL).await;
    assert_eq!(exit.status, Status::Signal(9));
    assert_eq!(
        crate::support::children(std::process::id().cast_signed()),
        []
    );
}

#[tokio::test]
async fn r37_a_host_that_does_not_says_that_something_may_run() {
    let (daemon, error) = lost_with_a_daemon().await;
    let told = error.to_string();
    assert!(told.ends_with("may still be running"), "{told}");
    crate::support::end(daemon);
}

#[tokio::test]
async fn r37_a_wrapper_that_is_killed_at_once_has_started_the_program_all_the_same() {
    process_tree::adopt_orphans().unwrap();
    for _ in 0..20 {
        let scratch = Scratch::new();
        let ran = scratch.path("ran");
        let words = format!("kill-parent pidfile {} sleep 60000", ran.display());
        let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
        let error = child.wait().await.unwrap_err();
        assert!(matches!(error, WaitError::WrapperLost { .. }));
        if let Ok(pid) = std::fs::read_to_string(&ran) {
            assert!(goes(pid.parse().unwrap()).await);
        }
    }
}

//! The ladder: ask, wait, kill, reap; and dropping, which is its last rung alone.

use std::time::Duration;

use process_tree::{Child, Ladder, Signal, Status, spawn, spawn_direct};
use tokio::time::Instant;

use crate::support::{Scratch, goes, pid_in, script, wrapper};

async fn each(words: &str, told: &std::path::Path) -> [Child; 2] {
    let wrapped = spawn(&wrapper(), script(words)).await.unwrap();
    pid_in(told).await;
    std::fs::remove_file(told).unwrap();
    let direct = spawn_direct(script(words)).await.unwrap();
    pid_in(told).await;
    [wrapped, direct]
}

#[tokio::test]
async fn a_program_that_obeys_ends_by_the_signal_that_asks() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    for (signal, number) in [
        (Signal::Terminate, 15),
        (Signal::Interrupt, 2),
        (Signal::Hangup, 1),
    ] {
        let words = format!("pidfile {} sleep 60000", told.display());
        for mut child in each(&words, &told).await {
            let exit = child.cancel(Ladder::ask(signal)).await;
            assert_eq!(exit.status, Status::Signal(number));
            std::fs::remove_file(&told).unwrap_or_default();
        }
    }
}

/// R32, and the bound for a whole cancel: limit plus one second, for a loaded machine.
#[tokio::test]
async fn r32_a_program_that_is_deaf_is_killed_within_the_bound() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!("deaf pidfile {} sleep 60000", told.display());
    for mut child in each(&words, &told).await {
        let pid = child.pid();
        let since = Instant::now();
        let ladder = Ladder {
            ask: Some(Signal::Terminate),
            grace: Duration::from_secs(3600),
        };
        let exit = child.cancel(ladder).await;
        assert!(since.elapsed() < Duration::from_secs(2));
        assert_eq!(exit.status, Status::Signal(9));
        assert!(!crate::support::runs(pid));
    }
}

#[tokio::test]
async fn r40_cancel_after_the_end_only_tells_it() {
    for direct in [false, true] {
        let spec = script("exit 5");
        let mut child = if direct {
            spawn_direct(spec).await.unwrap()
        } else {
            spawn(&wrapper(), spec).await.unwrap()
        };
        let exit = child.wait().await.unwrap();
        assert_eq!(exit.status, Status::Code(5));
        assert_eq!(child.cancel(Ladder::KILL).await, exit);
        assert_eq!(child.wait().await.unwrap(), exit);
    }
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let scratch = Scratch::new();
    let go = scratch.path("go");
    for direct in [false, true] {
        let spec = script(&format!("await {} exit 6", go.display()));
        let mut child = if direct {
            spawn_direct(spec).await.unwrap()
        } else {
            spawn(&wrapper(), spec).await.unwrap()
        };
        for _ in 0..20 {
            let short = tokio::time::timeout(Duration::from_millis(1), child.wait());
            assert!(short.await.is_err());
        }
        std::fs::write(&go, "").unwrap();
        assert_eq!(child.wait().await.unwrap().status, Status::Code(6));
        std::fs::remove_file(&go).unwrap();
    }
}

#[tokio::test]
async fn dropping_a_child_ends_it() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!("deaf pidfile {} sleep 60000", told.display());
    for child in each(&words, &told).await {
        let pid = child.pid();
        drop(child);
        assert!(goes(pid).await);
    }
}

/// R38: a start from a thread that ends must not end the program.
#[tokio::test]
async fn r38_a_program_outlives_the_thread_that_started_it() {
    let scratch = Scratch::new();
    let go = scratch.path("go");
    let spec = script(&format!("await {} exit 4", go.display()));
    let runtime = tokio::runtime::Handle::current();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async { spawn(&wrapper(), spec).await.unwrap() })
    });
    let mut child = tokio::task::spawn_blocking(move || thread.join().unwrap())
        .await
        .unwrap();
    assert!(crate::support::runs(child.pid()));
    std::fs::write(&go, "").unwrap();
    assert_eq!(child.wait().await.unwrap().status, Status::Code(4));
}

/// The seed of attest-plugin/1 gives a program 5 s after SIGTERM, more than a ladder does.
#[tokio::test]
async fn asking_sends_the_signal_and_nothing_else() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    for (signal, number) in [(Signal::Terminate, 15), (Signal::Hangup, 1)] {
        let words = format!("pidfile {} sleep 60000", told.display());
        for mut child in each(&words, &told).await {
            child.ask(signal);
            assert_eq!(child.wait().await.unwrap().status, Status::Signal(number));
            std::fs::remove_file(&told).unwrap_or_default();
        }
    }
}

#[tokio::test]
async fn a_program_that_is_deaf_to_what_is_asked_goes_on() {
    let scratch = Scratch::new();
    let (told, go) = (scratch.path("pid"), scratch.path("go"));
    let words = format!(
        "deaf pidfile {} await {} exit 7",
        told.display(),
        go.display()
    );
    let mut children = each(&words, &told).await;
    for child in &mut children {
        child.ask(Signal::Terminate);
        child.ask(Signal::Interrupt);
        let early = tokio::time::timeout(Duration::from_millis(200), child.wait()).await;
        assert!(early.is_err(), "{early:?}");
    }
    std::fs::write(&go, "").unwrap();
    for child in &mut children {
        assert_eq!(child.wait().await.unwrap().status, Status::Code(7));
        // Nobody is there to be asked.
        child.ask(Signal::Terminate);
        assert_eq!(child.wait().await.unwrap().status, Status::Code(7));
    }
}

#[tokio::test]
async fn what_was_asked_does_not_stand_in_the_way_of_a_cancel() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!("deaf pidfile {} sleep 60000", told.display());
    for mut child in each(&words, &told).await {
        for _ in 0..100 {
            child.ask(Signal::Terminate);
        }
        let exit = child.cancel(Ladder::KILL).await;
        assert_eq!(exit.status, Status::Signal(9));
    }
}

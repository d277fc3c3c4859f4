//! The end of plugins: `shutdown`, signals, and what outlives them.

use std::time::Duration;

use attest_plugin_host::{Answer, OnFailure};
use attest_plugin_protocol::{SHUTDOWN_GRACE, TERMINATE_GRACE};
use attest_receipt::receipt::Decision;
use tokio::time::Instant;

use crate::support::{BOTH, Bench, ask, exists, goes, pid_in, record, runs};

#[tokio::test]
async fn a_plugin_that_is_told_to_end_ends() {
    let script =
        "hello\nget\nverdict allow\nget\necho $kind $id > last\nread x || echo closed >> last";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    ask(&mut host).await;
    host.shutdown().await;
    let last = std::fs::read_to_string(bench.path("last")).unwrap();
    assert_eq!(last, "shutdown 3\nclosed\n");
    host.shutdown().await;
    assert_eq!(bench.log.lines(), [""; 0]);
}

#[tokio::test]
async fn t8_still_alive_after_shutdown_gets_sigterm_then_sigkill() {
    for mode in BOTH {
        let script = "trap 'touch asked-to-end' TERM\nhello\nget\nverdict warn\necho $$ > pid\nget\ntouch told\nwhile :; do sleep 0.01; done";
        let bench = Bench::of(script, mode);
        let mut host = bench.host().await;
        ask(&mut host).await;
        let told = async {
            exists(&bench.path("told")).await;
            assert!(!bench.path("asked-to-end").exists(), "it has 5 s");
            bench.clock.advance(SHUTDOWN_GRACE);
            exists(&bench.path("asked-to-end")).await;
            assert!(runs(pid_in(&bench.path("pid"))), "it has 5 s more");
            bench.clock.advance(TERMINATE_GRACE);
        };
        tokio::join!(host.shutdown(), told);
        assert!(!runs(pid_in(&bench.path("pid"))));
        assert_eq!(record(&host).decision, Decision::Warn, "verdicts stand");
        assert!(bench.log.has("SIGTERM") && bench.log.has("SIGKILL"));
    }
}

#[tokio::test]
async fn t8_a_bad_end_after_shutdown_is_logged_and_verdicts_stand() {
    for mode in BOTH {
        for (end, logged) in [("exit 7", "exit code 7"), ("kill -9 $$", "signal 9")] {
            let script = format!("hello\nget\nverdict allow\nget\n{end}");
            let bench = Bench::of(&script, mode);
            let mut host = bench.host().await;
            ask(&mut host).await;
            host.shutdown().await;
            assert_eq!(record(&host).decision, Decision::Allow);
            assert!(bench.log.has(logged), "{:?}", bench.log.lines());
        }
    }
}

/// Eight that all wait for SIGTERM: one after another they would take eight times as long.
#[tokio::test]
async fn all_are_told_at_once() {
    let mut bench = Bench::new();
    for n in 0..8 {
        let script = format!("hello\nget\ntouch told-{n}\nsleep 100");
        bench.add(&format!("p{n}"), &script);
    }
    let mut host = bench.host().await;
    let told = async {
        for n in 0..8 {
            exists(&bench.path(&format!("told-{n}"))).await;
        }
        bench.clock.advance(SHUTDOWN_GRACE);
    };
    tokio::join!(host.shutdown(), told);
    let lines = bench.log.lines();
    let signalled = lines.iter().filter(|line| line.contains("SIGTERM"));
    assert_eq!(signalled.count(), 8, "{lines:?}");
}

#[tokio::test]
async fn what_a_plugin_leaves_behind_ends_with_it() {
    let script = "hello\nsetsid sleep 1000 & echo $! > outlives\n(setsid sleep 1000 >&- 2>&- & echo $! > orphan)\nget\nexit 0";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    exists(&bench.path("orphan")).await;
    host.shutdown().await;
    for name in ["outlives", "orphan"] {
        assert!(!runs(pid_in(&bench.path(name))), "{name}");
    }
}

#[tokio::test]
async fn a_dropped_host_kills_all() {
    let mut bench = Bench::new();
    for name in ["a", "b"] {
        let script = format!(
            "trap '' TERM\nhello\nsetsid sleep 1000 & echo $! > helper-{name}\necho $$ > pid-{name}\ntouch ready-{name}\nget\n"
        );
        bench.add(name, &script);
    }
    let host = bench.host().await;
    let names = ["helper-a", "pid-a", "helper-b", "pid-b"];
    for name in ["ready-a", "ready-b"] {
        exists(&bench.path(name)).await;
    }
    drop(host);
    for name in names {
        assert!(goes(pid_in(&bench.path(name))).await, "{name}");
    }
}

#[tokio::test]
async fn a_cancellation_cuts_the_end_short() {
    let script =
        "trap '' TERM\nhello\necho $$ > pid\nget\ntouch told\nwhile :; do sleep 0.01; done";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    let cancelled = async {
        exists(&bench.path("told")).await;
        bench.cancel.cancel();
        Instant::now()
    };
    let ((), since) = tokio::join!(host.shutdown(), cancelled);
    // A second, and one for a loaded machine.
    assert!(since.elapsed() < Duration::from_secs(2));
    assert!(!runs(pid_in(&bench.path("pid"))));
}

#[tokio::test]
async fn nobody_is_asked_after_the_end() {
    let bench = Bench::of(crate::support::GOOD, OnFailure::FailClosed);
    let mut host = bench.host().await;
    host.shutdown().await;
    let answer = ask(&mut host).await;
    assert!(matches!(answer, Answer::Failed { .. }), "{answer:?}");
}

//! What plugins write to stderr: read at all times, kept within bounds, never believed.

use attest_plugin_host::{Answer, OnFailure};

use crate::support::{Bench, ask, exists};

#[tokio::test]
async fn lines_are_logged_with_their_control_characters_visible() {
    let script = "printf 'hello \\033[2J\\nno end' >&2\nhello\nget\nexit 0";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    host.shutdown().await;
    assert_eq!(bench.log.lines(), [r"p: hello \u{1b}[2J", "p: no end"]);
}

/// 16 MiB between two questions, while nobody asks, and while one is open.
#[tokio::test]
async fn a_flood_blocks_nobody_and_is_cut() {
    let flood = "yes flood | head -c 16777216 >&2";
    let script = format!("hello\n{flood}\ntouch flooded\nget\n{flood}\nverdict allow\nget");
    let bench = Bench::of(&script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    exists(&bench.path("flooded")).await;
    assert_eq!(ask(&mut host).await, Answer::Go);
    host.shutdown().await;
    let lines = bench.log.lines();
    let bytes: usize = lines
        .iter()
        .map(|line| "plugin \n".len() + line.len())
        .sum();
    assert!(bytes < 1_048_576 + 100, "{bytes}");
    assert_eq!(
        lines.last().unwrap(),
        "p: more than 1 MiB of log; the rest is left out"
    );
}

#[tokio::test]
async fn what_the_host_says_comes_after_a_flood_too() {
    let script = "yes flood | head -c 16777216 >&2\nhello\nget\nexit 7";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    ask(&mut host).await;
    host.shutdown().await;
    let lines = bench.log.lines();
    assert!(
        lines.last().unwrap().starts_with("p: failed: "),
        "{:?}",
        lines.last()
    );
}

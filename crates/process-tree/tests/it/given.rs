//! What a program is given, and that it is given nothing else.

use std::time::Duration;

use process_tree::{Capture, Captured, Spec, Stdin, capture, capture_direct, spawn, spawn_direct};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::support::{FIXTURE, Scratch, script, wrapper};

async fn each(spec: Spec) -> [Captured; 2] {
    let none = CancellationToken::new();
    let limits = Capture::new(Duration::from_secs(60), 100_000);
    [
        capture(&wrapper(), spec.clone(), limits.clone(), &none)
            .await
            .unwrap(),
        capture_direct(spec, limits, &none).await.unwrap(),
    ]
}

fn text(done: &Captured) -> &str {
    std::str::from_utf8(&done.stdout).unwrap()
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_named() {
    for done in each(script("env")).await {
        assert_eq!(text(&done), "");
    }
    let spec = script("env").env([("A", "1"), ("B", "x=y\tz"), ("A", "2")]);
    for done in each(spec).await {
        let mut lines: Vec<_> = text(&done).lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["A=2", "B=x=y\tz"]);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_forgotten_variable_is_nowhere_any_more() {
    let secret = [("A", "1"), ("TOKEN", "canary-0123456789"), ("B", "2")];
    for done in each(script("environ").env(secret)).await {
        assert!(text(&done).contains("TOKEN=canary-0123456789\0"));
    }
    for done in each(script("forget TOKEN forget ABSENT environ env").env(secret)).await {
        let seen = text(&done);
        assert!(!seen.contains("canary"), "{seen:?}");
        assert!(seen.contains("A=1\0") && seen.contains("B=2\0"), "{seen:?}");
        assert!(
            seen.ends_with("A=1\nB=2\n") || seen.ends_with("B=2\nA=1\n"),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn no_signal_is_blocked() {
    for done in each(script("mask")).await {
        assert_eq!(text(&done), "0\n");
    }
}

#[tokio::test]
async fn the_working_directory_is_the_one_named() {
    let scratch = Scratch::new();
    let directory = scratch.path("here");
    std::fs::create_dir(&directory).unwrap();
    for done in each(script("cwd").cwd(&directory)).await {
        assert_eq!(text(&done).trim_end(), directory.to_str().unwrap());
    }
}

#[tokio::test]
async fn a_relative_program_is_seen_from_the_working_directory() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink(FIXTURE, scratch.path("program")).unwrap();
    let spec = Spec::new(["./program", "say", "found"]).cwd(scratch.path(""));
    for done in each(spec).await {
        assert_eq!(text(&done), "found\n");
    }
}

#[tokio::test]
async fn a_bare_name_is_looked_up_in_the_programs_own_path() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink(FIXTURE, scratch.path("program")).unwrap();
    let spec = Spec::new(["program", "env"]).env([("PATH", scratch.path(""))]);
    for done in each(spec).await {
        assert!(text(&done).starts_with("PATH="));
    }
}

#[tokio::test]
async fn its_process_group_is_its_own() {
    let host = nix::unistd::getpgrp().as_raw();
    for done in each(script("ids")).await {
        let ids: Vec<i32> = text(&done)
            .split_whitespace()
            .map(|id| id.parse().unwrap())
            .collect();
        assert_eq!(ids[0], ids[1]);
        assert_ne!(ids[1], host);
    }
}

/// The host may itself have been started with open descriptors that are not close-on-exec.
#[cfg(all(target_os = "linux", not(portable_process)))]
#[tokio::test]
async fn no_descriptor_but_the_first_three_is_open() {
    let leaky: Vec<_> = (0..3)
        .map(|_| {
            rustix::fs::open(
                "/dev/null",
                rustix::fs::OFlags::RDONLY,
                rustix::fs::Mode::empty(),
            )
        })
        .collect();
    let none = CancellationToken::new();
    let limits = Capture::new(Duration::from_secs(60), 100_000).stdin("x");
    let done = capture(&wrapper(), script("fds"), limits, &none)
        .await
        .unwrap();
    assert_eq!(text(&done), "0 1 2\n");
    drop(leaky);
}

/// Under nextest each test has a process of its own, whose descriptor 0 this one replaces.
#[tokio::test]
async fn the_hosts_own_stdin_is_handed_over_when_asked_for() {
    let scratch = Scratch::new();
    let file = scratch.path("input");
    std::fs::write(&file, "one two three").unwrap();
    nix::unistd::dup2_stdin(fs_err::File::open(&file).unwrap()).unwrap();
    let spec = Spec::new(["/bin/sh", "-c", "exec head -c 4"])
        .env([("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")])
        .stdin(Stdin::Inherit);
    // The position in the file is shared, as it is with a shell.
    for (direct, expected) in [(false, "one "), (true, "two ")] {
        let mut child = if direct {
            spawn_direct(spec.clone()).await.unwrap()
        } else {
            spawn(&wrapper(), spec.clone()).await.unwrap()
        };
        assert!(child.stdin.is_none());
        let mut said = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, expected);
        assert!(child.wait().await.unwrap().is_success());
    }
}

/// The wrapper must not keep them open in the program's stead.
#[tokio::test]
async fn outputs_that_a_program_closes_are_at_their_end_while_it_runs() {
    let shell = || Spec::new(["/bin/sh", "-c", "exec >&- 2>&-; read x"]).stdin(Stdin::Pipe);
    let wrapped = spawn(&wrapper(), shell()).await.unwrap();
    let direct = spawn_direct(shell()).await.unwrap();
    for mut child in [wrapped, direct] {
        let mut read = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut read).await.unwrap();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_end(&mut read).await.unwrap();
        assert!(read.is_empty());
        // It still reads; the end of its input is its own end.
        drop(child.stdin.take());
        child.wait().await.unwrap();
    }
}

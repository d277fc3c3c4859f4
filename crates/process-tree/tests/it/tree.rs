//! Whatever a program leaves behind is gone when its end is told.

use std::time::Duration;

use process_tree::{Capture, Captured, Ladder, Leftovers, Outlived, Spec, Status, capture, spawn};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{FIXTURE, Scratch, end, goes, pid_in, runs, script, wrapper};

/// Far over every bound of the crate, far under what a hang would take.
const BOUND: Duration = Duration::from_secs(3);

async fn run(spec: Spec) -> Captured {
    let limits = Capture::new(Duration::from_secs(60), 10_000_000);
    let none = CancellationToken::new();
    let since = Instant::now();
    let done = capture(&wrapper(), spec, limits, &none).await.unwrap();
    assert!(since.elapsed() < BOUND, "took {:?}", since.elapsed());
    done
}

/// Runs a program that leaves one process behind, described by `child`.
async fn leaves(child: &str, leftovers: Leftovers) -> Outlived {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let child = child.replace("TELL", &format!("pidfile {}", told.display()));
    let words = format!("{child} await {} say ok", told.display());
    let done = run(script(&words).leftovers(leftovers)).await;
    let pid = pid_in(&told).await;
    assert!(!runs(pid), "{child} still runs");
    assert_eq!(done.exit.status, Status::Code(0));
    assert!(done.stdout.starts_with(b"ok\n") || done.stdout.starts_with(b"more\n"));
    done.exit.leftovers
}

#[tokio::test]
async fn r29_child_of_the_same_group() {
    let left = leaves("bg null [ TELL sleep 60000 ]", Leftovers::Fail).await;
    assert_eq!(left, Outlived::Killed(1));
}

#[tokio::test]
async fn r30_child_in_a_session_of_its_own() {
    let left = leaves("bg null [ setsid TELL sleep 60000 ]", Leftovers::Fail).await;
    assert_eq!(left, Outlived::Killed(1));
}

#[tokio::test]
async fn r31_grandchild_whose_parent_ended() {
    let daemon = "bg null [ setsid bg null [ setsid TELL sleep 60000 ] ]";
    assert_eq!(leaves(daemon, Leftovers::Fail).await, Outlived::Killed(1));
}

#[tokio::test]
async fn r32_child_deaf_to_signals() {
    let left = leaves("bg null [ deaf setsid TELL sleep 60000 ]", Leftovers::Fail).await;
    assert_eq!(left, Outlived::Killed(1));
}

#[tokio::test]
async fn r33_child_that_holds_an_output_and_is_silent() {
    for held in ["out", "err", "out+err"] {
        let child = format!("bg {held} [ setsid TELL sleep 60000 ]");
        let left = leaves(&child, Leftovers::Fail).await;
        assert_eq!(left, Outlived::HeldOutput(1));
        let left = leaves(&child, Leftovers::KillAndWarn).await;
        assert_eq!(left, Outlived::Killed(1));
    }
}

#[tokio::test]
async fn r34_child_that_holds_the_output_and_keeps_writing() {
    let left = leaves("bg out [ setsid TELL flood ]", Leftovers::Fail).await;
    assert_eq!(left, Outlived::HeldOutput(1));
}

/// A helper at the end of a pipe that ends by itself a moment later is no failure.
#[tokio::test]
async fn a_holder_that_ends_at_once_is_waited_for() {
    let done = run(script("bg out [ sleep 20 say late ] say early")).await;
    assert_eq!(done.stdout, b"early\nlate\n");
    assert_eq!(done.exit.leftovers, Outlived::None);
}

/// After the wait only those count that still hold the output.
#[tokio::test]
async fn a_holder_that_ended_does_not_blame_the_rest() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!(
        "bg null [ setsid pidfile {0} sleep 60000 ] await {0} bg out [ sleep 20 ]",
        told.display()
    );
    let done = run(script(&words)).await;
    assert_eq!(done.exit.leftovers, Outlived::Killed(1));
}

#[tokio::test]
async fn r35_fork_storm_while_cleaning_up() {
    for storm in ["storm 5", "storm 1"] {
        let child = format!("bg null [ setsid TELL {storm} ]");
        let left = leaves(&child, Leftovers::Fail).await;
        assert!(matches!(left, Outlived::Killed(_)), "{left:?}");
    }
}

/// Each successor has another number, so only the bound and the emptiness after it can be told.
#[tokio::test]
async fn r35_process_that_flees_from_child_to_child() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!(
        "bg null [ setsid pidfile {0} hop 2 ] await {0} say ok",
        told.display()
    );
    let done = run(script(&words)).await;
    assert!(
        matches!(done.exit.leftovers, Outlived::Killed(_) | Outlived::None),
        "{:?}",
        done.exit
    );
    assert_eq!(named("hop"), 0);
}

#[tokio::test]
async fn cancel_reaches_children_in_other_sessions() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let words = format!(
        "bg out [ setsid deaf pidfile {0} sleep 60000 ] \
         bg null [ bg null [ setsid pidfile {1} sleep 60000 ] ] await {0} await {1} sleep 60000",
        one.display(),
        two.display()
    );
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    let pids = [child.pid(), pid_in(&one).await, pid_in(&two).await];
    let since = Instant::now();
    let exit = child.cancel(Ladder::KILL).await;
    assert!(since.elapsed() < Duration::from_secs(2));
    assert_eq!(exit.status, Status::Signal(9));
    // The one that only started the second may not have ended yet.
    assert!(
        matches!(exit.leftovers, Outlived::Killed(2 | 3)),
        "{:?}",
        exit.leftovers
    );
    assert!(pids.into_iter().all(|pid| !runs(pid)));
}

#[tokio::test]
async fn dropping_a_child_ends_its_whole_tree() {
    let scratch = Scratch::new();
    let told = scratch.path("pid");
    let words = format!(
        "bg null [ setsid pidfile {0} sleep 60000 ] await {0} sleep 60000",
        told.display()
    );
    let child = spawn(&wrapper(), script(&words)).await.unwrap();
    let pids = [child.pid(), pid_in(&told).await];
    drop(child);
    for pid in pids {
        assert!(goes(pid).await);
    }
}

/// R36: processes that are not descendants stay alive, whatever group they are in.
#[tokio::test]
async fn r36_strangers_survive_every_clean_up() {
    let scratch = Scratch::new();
    let told = scratch.path("decoy");
    let mut other = spawn(&wrapper(), script("sleep 60000")).await.unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "a process that the crate knows nothing of"
    )]
    let mut decoy = std::process::Command::new(FIXTURE)
        .args(["pidfile", told.to_str().unwrap(), "sleep", "60000"])
        .spawn()
        .unwrap();
    pid_in(&told).await;
    for _ in 0..5 {
        let left = leaves("bg null [ setsid TELL storm 2 ]", Leftovers::Fail).await;
        assert!(matches!(left, Outlived::Killed(_)));
    }
    let survived = decoy.try_wait().unwrap().is_none();
    decoy.kill().unwrap();
    decoy.wait().unwrap();
    assert!(survived && runs(other.pid()));
    other.cancel(Ladder::KILL).await;
}

/// R37, by the end of file on the link.
#[tokio::test]
async fn r37_a_killed_host_takes_its_programs_along() {
    let scratch = Scratch::new();
    let (one, two, beat) = (
        scratch.path("one"),
        scratch.path("two"),
        scratch.path("beat"),
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "the host under test is a process"
    )]
    let mut host = std::process::Command::new(FIXTURE)
        .arg("host")
        .args(
            format!(
                "bg null [ setsid pidfile {} beat {} ] pidfile {} sleep 60000",
                two.display(),
                beat.display(),
                one.display()
            )
            .split_whitespace(),
        )
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pids = [pid_in(&one).await, pid_in(&two).await];
    host.kill().unwrap();
    host.wait().unwrap();
    for pid in pids {
        assert!(goes(pid).await);
    }
    let last = std::fs::read(&beat).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(std::fs::read(&beat).unwrap_or_default(), last);
}

/// Real-time signals have numbers without names.
#[tokio::test]
async fn a_death_by_signal_is_told_by_number() {
    let done = run(Spec::new(["/bin/sh", "-c", "kill -9 $$"])).await;
    assert_eq!(done.exit.status, Status::Signal(9));
    let done = run(Spec::new(["/bin/sh", "-c", "kill -40 $$"])).await;
    assert_eq!(done.exit.status, Status::Signal(40));
    assert_eq!(done.exit.status.to_string(), "killed by signal 40");
}

/// A terminate signal to the wrapper (a service manager's) is the host's business.
#[tokio::test]
async fn a_wrapper_is_deaf_to_what_asks_it_to_end() {
    let scratch = Scratch::new();
    let (told, go) = (scratch.path("pid"), scratch.path("go"));
    let words = format!("pidfile {} await {} exit 8", told.display(), go.display());
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    pid_in(&told).await;
    let wrapper = crate::support::parent(child.pid());
    for signal in [
        nix::sys::signal::Signal::SIGTERM,
        nix::sys::signal::Signal::SIGINT,
        nix::sys::signal::Signal::SIGHUP,
    ] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(wrapper), signal).unwrap();
    }
    std::fs::write(&go, "").unwrap();
    assert_eq!(child.wait().await.unwrap().status, Status::Code(8));
}

/// What a host ignores survives an exec: without SIGCHLD the wrapper could reap nobody.
#[tokio::test]
async fn a_host_that_ignores_signals_hands_nothing_down() {
    let ignore = "import os,signal as s,sys\n\
        for n in range(1, 32):\n\
        \x20   if n not in (s.SIGKILL, s.SIGSTOP): s.signal(n, s.SIG_IGN)\n\
        s.pthread_sigmask(s.SIG_BLOCK, [s.SIGTERM])\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let argv = [
        "/usr/bin/env",
        "python3",
        "-c",
        ignore,
        FIXTURE,
        "host-of",
        "ignored",
        "mask",
    ];
    let done = run(Spec::new(argv).env([("PATH", "/usr/local/bin:/usr/bin:/bin")])).await;
    let told = String::from_utf8_lossy(&done.stdout);
    let (ignored, blocked) = told.trim_end().rsplit_once('\n').unwrap();
    let ignored = ignored.trim_start_matches("SigIgn:").trim_start();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    // The runtime of the program itself ignores SIGPIPE; 32 and 33 are the C library's.
    let own = 1 << (13 - 1);
    assert_eq!((ignored & 0x7fff_ffff & !own, blocked), (0, "0"), "{told}");
}

/// Orphans are reaped while the program runs, not only after it.
#[tokio::test]
async fn zombies_do_not_pile_up_under_a_long_program() {
    let scratch = Scratch::new();
    let (told, go) = (scratch.path("pid"), scratch.path("go"));
    let orphan = "bg null [ bg null [ exit 0 ] ] ";
    let words = format!(
        "{} pidfile {} await {}",
        orphan.repeat(20),
        told.display(),
        go.display()
    );
    let mut child = spawn(&wrapper(), script(&words)).await.unwrap();
    pid_in(&told).await;
    let wrapper = crate::support::parent(child.pid());
    let mut left = usize::MAX;
    for _ in 0..5_000 {
        left = crate::support::children(wrapper).len();
        if left == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(left, 1, "the program is the wrapper's only child");
    std::fs::write(&go, "").unwrap();
    assert!(child.wait().await.unwrap().is_success());
}

/// How many processes of this build have this word among their arguments.
fn named(word: &str) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let mut words = line.split(|byte| *byte == 0);
        if words.next() == Some(FIXTURE.as_bytes()) && words.any(|w| w == word.as_bytes()) {
            end(entry.file_name().to_str().unwrap().parse().unwrap());
            count += 1;
        }
    }
    count
}

//! How an operation ends before or after its time, and that nothing survives it.

use std::time::Duration;

use serde_json::json;

use crate::support::{OFFER, Place, Session, eventually, now, sleeps};

#[test]
fn a_failed_command_shows_the_end_of_its_standard_error() {
    let place = Place::new();
    let command = place.script("head -c 100000 /dev/zero | tr '\\0' x >&2; printf '\\nout of \\033[31mideas\\n' >&2; exit 3");
    let end = place.run(&["--", &command]);
    end.failed("execution_failed", "exit code 3");
    end.failed("execution_failed", "out of \\u{1b}[31mideas");
    assert!(end.stderr.len() < 8_192, "{} bytes", end.stderr.len());
}

#[test]
fn a_command_killed_by_a_signal_fails() {
    let place = Place::new();
    place
        .run(&["--", &place.script("kill -9 $$")])
        .failed("execution_failed", "SIGKILL");
}

#[test]
fn the_operations_own_timeout_ends_the_command() {
    let place = Place::new();
    let command = place.script(&format!("sleep 600 & echo $! >{:?}; wait", place.seen()));
    let session = Session::start(
        &place,
        &["--", &command],
        &OFFER,
        300,
        "edit",
        &place.workspace(),
    );
    session.end().failed("execution_failed", "300ms");
    let pid = std::fs::read_to_string(place.seen()).unwrap();
    eventually("the child is gone", || !sleeps(&pid));
}

#[test]
fn what_outlives_the_command_is_killed_and_forgiven() {
    let place = Place::new();
    let command = place.script(&format!(
        "sleep 600 & echo $! >{0:?}\nsetsid sleep 600 & echo $! >>{0:?}",
        place.seen()
    ));
    assert_eq!(
        place.run(&["--", &command]).answer(),
        json!({"type": "result"})
    );
    for pid in std::fs::read_to_string(place.seen()).unwrap().lines() {
        assert!(!sleeps(pid), "{pid} is gone before the answer");
    }
}

/// Starts a command that says when it is ready, and cancels it then.
fn cancelled(place: &Place, args: &[&str], body: &str) -> Duration {
    let command = place.script(body);
    let args: Vec<&str> = args.iter().copied().chain(["--", &command]).collect();
    let mut session = place.session(&args);
    eventually("the command runs", || place.seen().exists());
    let begin = now();
    session.cancel();
    session.end().failed("cancelled", "");
    begin.elapsed()
}

/// Cancels commands that write a file when the signal reaches them. They have 150 ms for that,
/// which a busy machine may eat up; one of a few is enough to show that the signal arrives.
fn is_told(args: &[&str], traps: &str) -> bool {
    (0..5).any(|_| {
        let place = Place::new();
        let told = place.temporary().join("told");
        let traps = traps.replace("TOLD", &format!("{told:?}"));
        let body = format!(
            "{traps}\n: >{:?}\nwhile :; do sleep 0.01; done",
            place.seen()
        );
        let took = cancelled(&place, args, &body);
        assert!(
            took < Duration::from_millis(250) + Duration::from_secs(1),
            "{took:?}"
        );
        std::fs::read_to_string(told).is_ok_and(|text| text == "asked\n")
    })
}

#[test]
fn a_cancel_forwards_the_interrupt() {
    assert!(is_told(&[], "trap 'echo asked >TOLD; exit 0' INT"));
}

#[test]
fn a_cancel_forwards_the_chosen_signal() {
    let traps = "trap '' INT; trap 'echo asked >TOLD; exit 0' TERM";
    assert!(is_told(&["--signal", "TERM"], traps));
    assert!(
        !is_told(&[], traps),
        "without the option it is the interrupt, which this ignores"
    );
}

#[test]
fn a_command_that_ignores_the_signal_is_killed_with_all_it_started() {
    let place = Place::new();
    let pids = place.temporary().join("pids");
    let body = format!(
        "trap '' INT TERM HUP\nsetsid sleep 600 & echo $! >{pids:?}\nsleep 600 & echo $! >>{pids:?}\n: >{:?}\nwhile :; do wait; done",
        place.seen()
    );
    let took = cancelled(&place, &[], &body);
    assert!(
        took < Duration::from_millis(250) + Duration::from_secs(1),
        "{took:?}"
    );
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        eventually("the descendants are gone", || !sleeps(pid));
    }
}

#[test]
fn a_host_that_is_gone_ends_the_command_with_all_it_started() {
    let place = Place::new();
    let pids = place.temporary().join("pids");
    let body = format!(
        "setsid sleep 600 & echo $! >{pids:?}\nsleep 600 & echo $! >>{pids:?}\n: >{:?}\nwait",
        place.seen()
    );
    let command = place.script(&body);
    let session = place.session(&["--", &command]);
    eventually("the command runs", || place.seen().exists());
    let begin = now();
    let status = session.abandon();
    let took = begin.elapsed();
    assert!(
        took < Duration::from_millis(250) + Duration::from_secs(1),
        "{took:?}"
    );
    assert!(status.code().is_some(), "it ends by itself: {status}");
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        eventually("the descendants are gone", || !sleeps(pid));
    }
}

#[test]
fn usage_errors_exit_with_2_and_say_nothing_on_stdout() {
    for args in [&[][..], &["--"], &["--signal", "KILL", "--", "/bin/true"]] {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test drives the program as a user does"
        )]
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_forge-exec-plugin"))
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}

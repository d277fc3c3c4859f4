//! How a run ends before or after its time, and that nothing survives it.

use std::time::Duration;

use crate::fake::place;
use crate::support::{OFFER, Place, Session, eventually, now, sleeps};

const DONE: &str = "printf '%s' \"$good\" >\"$final\"";

/// A background child and one in a session of its own, whose ids go to the file.
const CHILDREN: &str = "sleep 600 & echo $! >\"$FORGE_TEST_PIDS\"\n\
    setsid sleep 600 & echo $! >>\"$FORGE_TEST_PIDS\"\n";

fn with_children(body: &str) -> Place {
    let mut place = place(&format!("{CHILDREN}{body}"));
    place.set("FORGE_TEST_PIDS", place.seen());
    place
}

fn none_is_left(place: &Place) {
    let pids = std::fs::read_to_string(place.seen()).unwrap();
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        eventually("the descendants are gone", || !sleeps(pid));
    }
}

/// Whether the script has written all ids.
fn runs(place: &Place) -> bool {
    std::fs::read_to_string(place.seen()).is_ok_and(|pids| pids.lines().count() == 2)
}

#[test]
fn a_cli_that_fails_fails_the_operation_whatever_its_final_message() {
    place(&format!("{DONE}; exit 1"))
        .run(&[])
        .failed("execution_failed", "exit code 1");
    place(&format!("{DONE}; kill -9 $$"))
        .run(&[])
        .failed("execution_failed", "SIGKILL");
}

#[test]
fn what_outlives_the_cli_is_killed_and_forgiven() {
    let place = with_children(DONE);
    assert_eq!(place.run(&[]).answer()["type"], "result");
    none_is_left(&place);
}

#[test]
fn the_operations_own_timeout_ends_a_cli_that_hangs() {
    let place = with_children("while :; do wait; done");
    Session::start(&place, &[], &OFFER, 1_000, "edit", &place.workspace())
        .end()
        .failed("execution_failed", "1s");
    // On a loaded machine the time may be over before the script has begun.
    if place.seen().exists() {
        for pid in std::fs::read_to_string(place.seen()).unwrap().lines() {
            eventually("the descendants are gone", || !sleeps(pid));
        }
    }
    assert_eq!(std::fs::read_dir(place.temporary()).unwrap().count(), 0);
}

#[test]
fn a_cancel_kills_a_cli_that_ignores_the_interrupt_and_all_it_started() {
    let place = with_children("trap '' INT TERM HUP\nwhile :; do wait; sleep 0.01; done");
    let mut session = place.session(&[]);
    eventually("the script runs", || runs(&place));
    let begin = now();
    session.cancel();
    session.end().failed("cancelled", "");
    let took = begin.elapsed();
    assert!(
        took < Duration::from_millis(250) + Duration::from_secs(1),
        "{took:?}"
    );
    none_is_left(&place);
    assert_eq!(std::fs::read_dir(place.temporary()).unwrap().count(), 0);
}

#[test]
fn a_host_that_is_gone_ends_the_cli_and_all_it_started() {
    let place = with_children("while :; do wait; sleep 0.01; done");
    let session = place.session(&[]);
    eventually("the script runs", || runs(&place));
    let status = session.abandon();
    assert!(status.code().is_some(), "it ends by itself: {status}");
    none_is_left(&place);
    assert_eq!(std::fs::read_dir(place.temporary()).unwrap().count(), 0);
}

#[test]
fn a_cancel_interrupts_first() {
    // The script has 150 ms for its answer, which a busy machine may eat up; one of a few is
    // enough to show that the signal arrives.
    let told = (0..5).any(|_| {
        let mut place = place(
            "trap 'echo asked >\"$FORGE_TEST_PIDS.told\"; exit 0' INT\n\
             printf 'a\\nb\\n' >\"$FORGE_TEST_PIDS\"\nwhile :; do sleep 0.01; done",
        );
        place.set("FORGE_TEST_PIDS", place.seen());
        let mut session = place.session(&[]);
        eventually("the script runs", || runs(&place));
        session.cancel();
        session.end().failed("cancelled", "");
        let told = place.seen().with_extension("told");
        std::fs::read_to_string(told).is_ok_and(|text| text == "asked\n")
    });
    assert!(told);
}

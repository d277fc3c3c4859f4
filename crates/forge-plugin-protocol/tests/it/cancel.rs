//! Cancellation: when it is sent, how long it waits, and what it wins over.

use forge_plugin_protocol::{Capability, Conclusion, HostEvent, PluginExit, Violation};

use crate::support::{ALL, Driver, frame, initialized, progress};

use Capability::{Progress, Text};

fn cancels(driver: &Driver) -> usize {
    driver
        .sent
        .iter()
        .filter(|frame| frame.contains(r#""type":"cancel""#))
        .count()
}

#[test]
fn negotiated_cancel_is_sent_exactly_once() {
    let mut driver = Driver::text().executing(ALL);
    driver.cancel();
    driver.cancel();
    driver.at(100);
    driver.cancel();
    assert_eq!(cancels(&driver), 1);
    assert_eq!(driver.sent.last().unwrap(), &frame("cancel", ""));
    assert_eq!(
        driver.deadline(),
        Some(250),
        "repeating does not extend the window"
    );
    assert!(!driver.kills());
}

#[test]
fn a_plugin_that_stops_in_time_is_not_killed() {
    let mut driver = Driver::text().executing(ALL);
    driver.cancel();
    driver.at(200);
    driver.write(progress(1) + &frame("failure", r#","category":"cancelled""#));
    assert_eq!(driver.events.last(), Some(&HostEvent::CloseStdin));
    assert_eq!(
        driver.deadline(),
        Some(250),
        "one window for draining and closing"
    );
    driver.close();
    driver.exit(PluginExit::Success);
    assert_eq!(
        driver.events.last(),
        Some(&HostEvent::Finished { kill: false })
    );
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn a_plugin_that_just_exits_after_cancel_is_not_waited_for() {
    let mut driver = Driver::text().executing(ALL);
    driver.cancel();
    driver.close();
    driver.exit(PluginExit::Signal(15));
    assert_eq!(
        driver.events.last(),
        Some(&HostEvent::Finished { kill: false })
    );
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn draining_ends_after_250_ms() {
    let mut driver = Driver::text().executing(ALL);
    driver.at(1_000);
    driver.cancel();
    driver.at(1_249);
    assert!(!driver.session.is_finished());
    driver.at(1_250);
    assert!(driver.kills());
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn without_the_capability_nothing_is_sent_and_the_plugin_is_ended_at_once() {
    let mut driver = Driver::text().executing(&[Text, Progress]);
    driver.cancel();
    assert_eq!(cancels(&driver), 0);
    assert!(driver.kills());
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn r40_cancel_before_initialized_sends_nothing() {
    let mut driver = Driver::text();
    driver.cancel();
    assert_eq!(cancels(&driver), 0);
    assert!(driver.kills());
    driver.write(initialized(ALL));
    assert_eq!(driver.sent.len(), 1, "no `execute` either");
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn an_execute_that_was_never_sent_is_withdrawn() {
    let mut driver = Driver::text();
    driver.write_unpumped(initialized(ALL));
    driver.cancel();
    assert_eq!(driver.sent.len(), 1);
    assert!(driver.kills());
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn r40_after_the_terminal_frame_no_cancel_is_sent_but_it_still_wins() {
    let mut driver = Driver::text().executing(ALL);
    driver.write(frame("result", r#","output":"x""#));
    driver.at(50);
    driver.cancel();
    assert_eq!(cancels(&driver), 0);
    assert!(!driver.kills(), "the plugin keeps its window");
    driver.close();
    driver.exit(PluginExit::Success);
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn r40_cancel_wins_over_a_finished_success_until_the_verdict() {
    let mut driver = Driver::text().executing(ALL);
    driver.write(frame("result", r#","output":"x""#));
    driver.close();
    driver.exit(PluginExit::Success);
    driver.cancel();
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn r40_cancel_wins_over_a_protocol_error_and_over_an_unclean_exit() {
    let mut driver = Driver::text().executing(ALL);
    driver.write("garbage\n");
    driver.cancel();
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);

    let mut driver = Driver::text().executing(ALL);
    driver.cancel();
    driver.write("garbage\n");
    assert!(driver.kills());
    driver.exit(PluginExit::OutputHeld);
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn output_limit_wins_only_while_nobody_has_cancelled() {
    let mut driver = Driver::text().executing(ALL);
    driver.session.output_limit_exceeded();
    driver.cancel();
    assert_eq!(driver.violation(), Violation::OutputLimit);

    let mut driver = Driver::text().executing(ALL);
    driver.cancel();
    driver.session.output_limit_exceeded();
    assert!(!driver.session.is_finished(), "the drain window stays");
    driver.at(250);
    assert_eq!(driver.session.conclude(), Conclusion::Cancelled);
}

#[test]
fn output_limit_breaks_also_a_session_that_is_closing() {
    let mut driver = Driver::text().executing(ALL);
    driver.write(frame("result", r#","output":"x""#));
    driver.session.output_limit_exceeded();
    assert_eq!(driver.violation(), Violation::OutputLimit);
}

#[test]
fn a_session_that_is_given_up_is_no_success() {
    let driver = Driver::text().executing(ALL);
    let Conclusion::Broken(error) = driver.session.conclude() else {
        panic!("no violation")
    };
    assert_eq!(error.violation(), &Violation::Abandoned);
}

//! Early ends, and the ladder after the last request.

use attest_plugin_protocol::{END_GRACE, HostEvent, PluginExit, SHUTDOWN_GRACE, TERMINATE_GRACE};

use crate::support::{Driver, NANO, TIMEOUT, allow, before, hello_ok};

#[test]
fn a_plugin_that_ends_before_hello_ok_failed_to_start() {
    let mut driver = Driver::new();
    driver.stdout_closed();
    driver.exited(2);
    assert_eq!(
        driver.not_started(),
        "ended with exit code 2 before hello_ok"
    );
    let mut driver = Driver::new();
    driver.exited(0);
    driver.stdout_closed();
    assert_eq!(
        driver.not_started(),
        "ended with exit code 0 before hello_ok"
    );
}

#[test]
fn a_plugin_that_ends_before_its_answer_is_broken_and_its_status_is_told() {
    let mut driver = Driver::asked();
    driver.stdout_closed();
    assert_eq!(driver.acts(), [], "how it ended is worth a moment");
    driver.exited(101);
    assert_eq!(
        driver.broken(),
        "ended with exit code 101 before it answered step.pre"
    );

    let mut driver = Driver::asked();
    driver.session.exited(driver.now, PluginExit::Signal(11));
    driver.stdout_closed();
    assert_eq!(
        driver.broken(),
        "was ended by signal 11 before it answered step.pre"
    );
}

#[test]
fn half_a_line_at_the_end_is_told_with_the_status() {
    let mut driver = Driver::asked();
    driver.write("{\"v\":1,");
    driver.stdout_closed();
    driver.exited(1);
    assert_eq!(
        driver.notes(),
        ["last bytes without a line feed: `{\"v\":1,`"]
    );
    assert_eq!(
        driver.broken(),
        "ended with exit code 1 inside a line, before it answered step.pre"
    );
}

#[test]
fn a_plugin_that_closes_stdout_and_stays_is_broken_soon() {
    let mut driver = Driver::asked();
    driver.stdout_closed();
    assert_eq!(driver.session.poll_timeout(), Some(driver.now + END_GRACE));
    driver.wait(END_GRACE - NANO);
    assert_eq!(driver.acts(), []);
    driver.wait(NANO);
    assert_eq!(driver.broken(), "closed stdout before it answered step.pre");
}

#[test]
fn an_answer_in_the_pipe_of_an_ended_plugin_counts() {
    let mut driver = Driver::asked();
    driver.exited(0);
    driver.write(allow(2));
    driver.verdict();
    assert!(driver.session.is_idle());
    assert_eq!(driver.session.poll_timeout(), None);
    driver.stdout_closed();
    driver.wait(TIMEOUT);
    assert_eq!(
        driver.acts(),
        [],
        "an idle plugin may be gone: nobody may ask it again"
    );
}

#[test]
fn a_descendant_that_keeps_stdout_open_delays_nothing() {
    let mut driver = Driver::asked();
    driver.exited(3);
    driver.wait(END_GRACE);
    assert_eq!(
        driver.broken(),
        "ended with exit code 3 before it answered step.pre"
    );
}

#[test]
fn who_asks_a_plugin_that_is_gone_gets_its_failure() {
    let mut driver = Driver::ready();
    driver.exited(0);
    let sent = driver.sent.len();
    driver.ask(&before());
    assert_eq!(
        driver.broken(),
        "ended with exit code 0 before it answered step.pre"
    );
    assert_eq!(driver.sent.len(), sent);

    let mut driver = Driver::ready();
    driver.stdout_closed();
    driver.ask(&before());
    driver.wait(END_GRACE);
    assert_eq!(driver.broken(), "closed stdout before it answered step.pre");
}

#[test]
fn the_time_out_is_not_prolonged_by_an_early_end() {
    let mut driver = Driver::asked();
    driver.wait(TIMEOUT - NANO);
    driver.stdout_closed();
    driver.wait(NANO);
    assert_eq!(driver.broken(), "closed stdout before it answered step.pre");
}

#[test]
fn shutdown_is_the_last_message_and_closes_stdin() {
    let mut driver = Driver::ready();
    driver.shutdown();
    assert_eq!(
        driver.sent.last().unwrap(),
        "{\"v\":1,\"id\":2,\"kind\":\"shutdown\"}\n"
    );
    assert_eq!(driver.acts(), [HostEvent::CloseStdin]);
    let sent = driver.sent.len();
    driver.shutdown();
    driver.stdout_closed();
    driver.exited(0);
    driver.shutdown();
    assert!(driver.session.is_over());
    assert_eq!(driver.events, [], "a clean end is worth no word");
    assert_eq!(driver.sent.len(), sent);
}

#[test]
fn after_shutdown_come_five_seconds_sigterm_five_seconds_sigkill() {
    let mut driver = Driver::ready();
    driver.shutdown();
    driver.acts();
    driver.wait(SHUTDOWN_GRACE - NANO);
    assert_eq!(driver.events, []);
    driver.wait(NANO);
    assert_eq!(
        driver.notes(),
        ["still running 5 s after shutdown: SIGTERM"]
    );
    assert_eq!(driver.acts(), [HostEvent::Terminate]);
    driver.wait(TERMINATE_GRACE - NANO);
    assert_eq!(driver.events, []);
    driver.wait(NANO);
    assert_eq!(driver.notes(), ["still running 5 s after SIGTERM: SIGKILL"]);
    assert_eq!(driver.acts(), [HostEvent::Kill]);
    assert_eq!(driver.session.poll_timeout(), None);
    assert!(!driver.session.is_over());
    driver.session.exited(driver.now, PluginExit::Signal(9));
    driver.pump();
    assert!(driver.session.is_over());
    assert_eq!(
        driver.notes(),
        ["was ended by signal 9 after the last request"]
    );
}

#[test]
fn a_plugin_that_ends_on_sigterm_is_not_killed() {
    let mut driver = Driver::ready();
    driver.shutdown();
    driver.wait(SHUTDOWN_GRACE);
    driver.acts();
    driver.exited(0);
    driver.wait(TERMINATE_GRACE * 2);
    assert_eq!(driver.events, []);
}

#[test]
fn nothing_after_shutdown_changes_a_verdict() {
    let mut driver = Driver::ready();
    driver.shutdown();
    driver.acts();
    for line in [allow(2), "bye\n".to_owned(), hello_ok()] {
        driver.write(line);
    }
    assert_eq!(
        driver.notes(),
        ["wrote to stdout after the last request; not read"],
        "once is enough"
    );
    driver.exited(7);
    assert_eq!(
        driver.notes(),
        ["ended with exit code 7 after the last request"]
    );
    assert_eq!(driver.acts(), []);
}

#[test]
fn a_plugin_that_left_before_shutdown_is_only_noted() {
    let mut driver = Driver::ready();
    driver.exited(0);
    let sent = driver.sent.len();
    driver.shutdown();
    assert_eq!(driver.notes(), ["ended with exit code 0 before shutdown"]);
    assert_eq!(driver.acts(), []);
    assert_eq!(driver.sent.len(), sent);
    assert!(driver.session.is_over());
}

#[test]
fn a_plugin_that_owes_an_answer_is_ended_by_signal() {
    for mut driver in [Driver::new(), Driver::asked()] {
        let sent = driver.sent.len();
        driver.shutdown();
        assert_eq!(driver.sent.len(), sent, "one message at a time");
        assert_eq!(driver.acts(), [HostEvent::Terminate]);
        driver.write(allow(2));
        driver.wait(TERMINATE_GRACE);
        assert_eq!(driver.acts(), [HostEvent::Kill]);
    }
}

#[test]
fn a_plugin_that_owes_an_answer_and_is_gone_needs_no_signal() {
    let mut driver = Driver::asked();
    driver.exited(1);
    driver.shutdown();
    assert_eq!(driver.acts(), []);
    assert!(driver.session.is_over());
}

#[test]
fn a_request_that_was_not_taken_yet_is_withdrawn_by_shutdown() {
    let mut driver = Driver::ready();
    driver.session.request(driver.now, &before()).unwrap();
    let sent = driver.sent.len();
    driver.shutdown();
    assert_eq!(driver.sent.len(), sent);
    assert_eq!(driver.acts(), [HostEvent::Terminate]);
}

#[test]
fn the_moment_for_an_early_end_counts_from_its_first_sign() {
    let mut driver = Driver::asked();
    driver.exited(1);
    driver.wait(END_GRACE - NANO);
    driver.write("{");
    driver.wait(NANO);
    assert_eq!(
        driver.broken(),
        "ended with exit code 1 inside a line, before it answered step.pre"
    );
}

#[test]
fn a_broken_session_stays_as_it_is() {
    let mut driver = Driver::asked();
    driver.write("x\n");
    driver.broken();
    driver.shutdown();
    driver.stdout_closed();
    driver.exited(1);
    driver.write(allow(2));
    driver.wait(TIMEOUT);
    assert_eq!(driver.events, []);
    assert!(driver.session.is_over());
}

//! The end of a session: clean end of output and exit 0, both within 250 ms.

use forge_plugin_protocol::{Capability, Conclusion, HostEvent, Outcome, PluginExit, Violation};

use crate::support::{ALL, Driver, frame, initialized};

fn after_result() -> Driver {
    let mut driver = Driver::text().executing(ALL);
    driver.write(frame("result", r#","output":"x""#));
    driver
}

fn completed() -> Conclusion {
    Conclusion::Completed(Outcome::Text("x".parse().unwrap()))
}

#[test]
fn stdin_stays_open_until_the_terminal_frame() {
    let mut driver = Driver::text().executing(ALL);
    assert!(!driver.events.contains(&HostEvent::CloseStdin));
    driver.write(frame("failure", r#","category":"execution_failed""#));
    assert_eq!(driver.events.last(), Some(&HostEvent::CloseStdin));
}

#[test]
fn end_of_output_and_exit_come_in_either_order() {
    let mut driver = after_result();
    driver.close();
    assert!(!driver.session.is_finished());
    driver.exit(PluginExit::Success);
    assert_eq!(
        driver.events.last(),
        Some(&HostEvent::Finished { kill: false })
    );
    assert_eq!(driver.session.conclude(), completed());

    let mut driver = after_result();
    driver.exit(PluginExit::Success);
    assert!(!driver.session.is_finished());
    driver.close();
    assert_eq!(
        driver.events.last(),
        Some(&HostEvent::Finished { kill: false })
    );
    assert_eq!(driver.session.conclude(), completed());
}

#[test]
fn the_window_is_250_ms_for_both_together() {
    let mut driver = after_result();
    assert_eq!(driver.deadline(), Some(250));
    driver.at(249);
    driver.close();
    driver.exit(PluginExit::Success);
    assert_eq!(driver.session.conclude(), completed());

    let mut driver = after_result();
    driver.at(249);
    driver.close();
    assert_eq!(
        driver.deadline(),
        Some(250),
        "the first of the two does not move the deadline"
    );
    driver.at(250);
    assert!(driver.kills());
    let message = driver.broken().to_string();
    assert_eq!(
        message,
        "the plugin did not exit within 250 ms of its terminal frame"
    );

    let mut driver = after_result();
    driver.exit(PluginExit::Success);
    driver.at(250);
    assert!(driver.kills());
    let message = driver.broken().to_string();
    assert_eq!(
        message,
        "the plugin did not close its output within 250 ms of its terminal frame"
    );
}

#[test]
fn the_window_begins_with_the_terminal_frame() {
    let mut driver = Driver::text().executing(ALL);
    driver.at(10_000);
    assert_eq!(driver.deadline(), None);
    driver.write(frame("result", r#","output":"x""#));
    assert_eq!(driver.deadline(), Some(10_250));
}

#[test]
fn any_other_exit_is_a_protocol_failure() {
    for exit in [
        PluginExit::Code(1),
        PluginExit::Code(126),
        PluginExit::Signal(9),
        PluginExit::OutputHeld,
    ] {
        let mut driver = after_result();
        driver.close();
        driver.exit(exit);
        assert_eq!(driver.violation(), Violation::UncleanExit(exit));
        let mut driver = Driver::text().executing(ALL);
        driver.write(frame("failure", r#","category":"execution_failed""#));
        driver.exit(exit);
        assert_eq!(
            driver.violation(),
            Violation::UncleanExit(exit),
            "also after a failure"
        );
    }
}

#[test]
fn a_single_trailing_byte_is_a_protocol_failure() {
    for byte in ["x", " ", "\0", "\n", "{"] {
        let mut driver = after_result();
        driver.write(byte);
        assert_eq!(
            driver.violation(),
            Violation::TrailingBytes("the terminal frame"),
            "{byte:?}"
        );
    }
}

#[test]
fn an_early_end_names_what_was_missing_and_how_the_plugin_ended() {
    let mut driver = Driver::text();
    driver.close();
    assert!(!driver.session.is_finished(), "the exit may explain it");
    driver.exit(PluginExit::Code(2));
    assert_eq!(
        driver.broken().to_string(),
        "the plugin ended (exit 2) before `initialized`"
    );

    let mut driver = Driver::text().executing(ALL);
    driver.exit(PluginExit::Signal(11));
    driver.close();
    assert_eq!(
        driver.broken().to_string(),
        "the plugin ended (signal 11) before its terminal frame"
    );

    let mut driver = Driver::text();
    driver.close();
    driver.at(250);
    assert!(driver.kills());
    assert_eq!(
        driver.broken().to_string(),
        "the plugin closed the stream before `initialized`"
    );
}

#[test]
fn output_that_waits_in_the_pipe_is_read_after_the_exit() {
    let mut driver = Driver::text().executing(ALL);
    driver.exit(PluginExit::Success);
    assert_eq!(driver.deadline(), Some(250));
    driver.at(100);
    driver.write(frame("result", r#","output":"x""#));
    driver.close();
    assert_eq!(driver.session.conclude(), completed());

    let mut driver = Driver::text();
    driver.exit(PluginExit::Success);
    driver.at(250);
    assert!(driver.kills(), "something holds the output open");
    let expected = Violation::EarlyExit {
        exit: PluginExit::Success,
        missing: "`initialized`",
    };
    assert_eq!(driver.violation(), expected);
}

#[test]
fn nothing_waits_before_the_terminal_frame() {
    let mut driver = Driver::text();
    assert_eq!(driver.deadline(), None);
    driver.write(initialized(&[Capability::Text]));
    assert_eq!(driver.deadline(), None);
    driver.at(86_400_000);
    assert!(
        !driver.session.is_finished(),
        "the time limit is the driver's"
    );
}

//! `hello` and `hello_ok`.

use attest_plugin_protocol::{Failure, Hook, HostEvent, PluginName, RequestError, VERSION_BYTES};

use crate::support::{
    Driver, NANO, TIMEOUT, allow, announcement, before, expected, hello_ok, hello_ok_with, pipeline,
};

#[test]
fn hello_comes_first_and_names_what_the_core_speaks() {
    let driver = Driver::new();
    let hello =
        "{\"v\":1,\"id\":1,\"kind\":\"hello\",\"attest_version\":\"1.0.0\",\"protocols\":[1]}\n";
    assert_eq!(driver.sent, [hello]);
    assert_eq!(driver.session.announcement(), None);
}

#[test]
fn a_hello_ok_that_fits_makes_the_plugin_ready() {
    let mut driver = Driver::new();
    driver.write(hello_ok());
    assert_eq!(driver.acts(), [HostEvent::Ready(announcement())]);
    assert!(driver.session.is_idle());
    assert_eq!(driver.session.announcement(), Some(&announcement()));
    assert_eq!(driver.session.poll_timeout(), None);
}

#[test]
fn what_differs_from_the_declaration_is_a_configuration_error() {
    for (from, to, says) in [
        ("\"policy\"", "\"police\"", "`police`"),
        (
            "\"deterministic\":true",
            "\"deterministic\":false",
            "deterministic = false, declared is true",
        ),
        (
            "\"step.pre\",",
            "",
            "does not announce the declared hook step.pre",
        ),
        (
            "\"step.post\"",
            "\"step.Post\"",
            "does not announce the declared hook step.post",
        ),
    ] {
        let mut driver = Driver::new();
        driver.write(hello_ok_with(from, to));
        match driver.failure() {
            Failure::Misconfigured(reason) => assert!(reason.contains(says), "{reason}"),
            other => panic!("{from}: {other:?}"),
        }
        assert_eq!(driver.session.announcement(), None);
    }
}

#[test]
fn a_hook_that_was_not_declared_is_never_sent() {
    let mut expected = expected();
    expected.hooks = vec![Hook::StepPre];
    let mut driver = Driver::expecting(expected);
    driver.write(hello_ok_with(
        "\"step.post\"",
        "\"step.post\",\"step.retry\",\"\",\"step.post\"",
    ));
    match driver.acts().as_slice() {
        [HostEvent::Ready(announcement)] => {
            let hooks = [
                "pipeline.validate",
                "step.pre",
                "step.post",
                "step.retry",
                "",
                "step.post",
                "receipt.finalize",
            ];
            assert_eq!(announcement.hooks, hooks);
        }
        other => panic!("{other:?}"),
    }
    assert!(driver.session.serves(Hook::StepPre));
    assert!(!driver.session.serves(Hook::PipelineValidate));
    assert_eq!(
        driver.session.request(driver.now, &pipeline()),
        Err(RequestError::NotAnnouncedNorDeclared)
    );
    driver.ask(&before());
    assert_eq!(driver.sent.len(), 2);
}

#[test]
fn a_major_that_was_not_offered_is_a_failed_start() {
    for (to, says) in [
        (
            "\"protocol\":2",
            "selected protocol 2, which was not offered",
        ),
        (
            "\"protocol\":0",
            "selected protocol 0, which was not offered",
        ),
        ("\"protocol\":4294967296", "protocol violation"),
        ("\"protocol\":1.0", "protocol violation"),
        ("\"protocol\":\"1\"", "protocol violation"),
    ] {
        let mut driver = Driver::new();
        driver.write(hello_ok_with("\"protocol\":1", to));
        let reason = driver.not_started();
        assert!(reason.contains(says), "{reason}");
    }
}

#[test]
fn anything_else_than_hello_ok_is_a_failed_start() {
    let hello =
        "{\"v\":1,\"id\":1,\"kind\":\"hello\",\"attest_version\":\"1\",\"protocols\":[1]}\n";
    for line in [
        allow(1),
        hello.to_owned(),
        "\n".to_owned(),
        " \n".to_owned(),
        "policy 1.4.2 is ready\n".to_owned(),
        "[]\n".to_owned(),
        hello_ok_with("\"id\":1", "\"id\":2"),
        hello_ok_with("\"id\":1", "\"id\":1.0"),
        hello_ok_with("\"id\":1,", ""),
        hello_ok_with("\"v\":1", "\"v\":2"),
        hello_ok_with("\"v\":1", "\"v\":\"1\""),
        hello_ok_with("\"v\":1,", ""),
        hello_ok_with("\"kind\":\"hello_ok\",", ""),
        hello_ok_with("\"version\":\"1.4.2\"", "\"version\":null"),
        hello_ok_with("\"deterministic\":true", "\"deterministic\":1"),
        hello_ok_with("\"hooks\":[\"", "\"hooks\":[null,\""),
        hello_ok_with("\"name\":\"policy\"", "\"name\":\"Policy\""),
    ] {
        let mut driver = Driver::new();
        driver.write(&line);
        let reason = driver.not_started();
        assert!(reason.starts_with("protocol violation: "), "{line}{reason}");
        driver.write(hello_ok());
        assert_eq!(driver.acts(), [], "nothing after the failure");
    }
}

#[test]
fn hello_ok_has_the_time_out_and_not_a_moment_more() {
    let mut driver = Driver::new();
    driver.wait(TIMEOUT - NANO);
    driver.write(hello_ok());
    assert!(driver.session.is_idle());

    let mut driver = Driver::new();
    assert_eq!(driver.session.poll_timeout(), Some(driver.now + TIMEOUT));
    driver.wait(TIMEOUT);
    assert_eq!(
        driver.notes(),
        ["it has written nothing; a plugin flushes each line"]
    );
    assert_eq!(driver.not_started(), "no hello_ok within 30 s");
    driver.write(hello_ok());
    assert_eq!(driver.acts(), []);
}

#[test]
fn a_line_that_has_begun_was_flushed() {
    let mut driver = Driver::new();
    driver.write(r#"{"v":1,"#);
    driver.wait(TIMEOUT);
    assert_eq!(driver.notes(), [""; 0]);
    assert_eq!(driver.not_started(), "no hello_ok within 30 s");
}

#[test]
fn an_answer_comes_after_its_question() {
    let mut driver = Driver::new();
    let mut session =
        attest_plugin_protocol::HostSession::new(expected(), "1.0.0", TIMEOUT, driver.now);
    session.receive(driver.now, hello_ok().as_bytes());
    std::mem::swap(&mut driver.session, &mut session);
    driver.pump();
    assert!(driver.not_started().contains("while no request was open"));
    assert_eq!(driver.sent.len(), 1, "the broken session sends nothing");
}

#[test]
fn two_lines_for_one_hello_are_one_too_many() {
    let mut driver = Driver::new();
    driver.write(hello_ok() + &hello_ok());
    match driver.acts().as_slice() {
        [
            HostEvent::Ready(_),
            HostEvent::Failed(Failure::Broken(reason)),
        ] => {
            assert!(reason.contains("while no request was open"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_version_is_bounded() {
    for (length, fits) in [(0, true), (VERSION_BYTES, true), (VERSION_BYTES + 1, false)] {
        let mut driver = Driver::new();
        driver.write(hello_ok_with("1.4.2", &"v".repeat(length)));
        assert_eq!(driver.session.is_idle(), fits, "{length}");
    }
}

#[test]
fn unknown_fields_of_hello_ok_are_ignored_and_its_spaces_too() {
    let mut driver = Driver::new();
    let more = r#" "kind" : "hello_ok" , "since":{"v":2,"id":[null]},"signature":"x""#;
    driver.write(hello_ok_with("\"kind\":\"hello_ok\"", more).replace('\n', " \t\r\n"));
    assert_eq!(driver.acts(), [HostEvent::Ready(announcement())]);
}

#[test]
fn a_name_is_1_to_32_of_lower_case_digits_and_hyphen() {
    let longest = "p".repeat(32);
    for name in ["a", "-", "0-9", longest.as_str()] {
        assert_eq!(name.parse::<PluginName>().unwrap().as_str(), name);
    }
    let too_long = "p".repeat(33);
    for name in ["", "A", "a_b", "a.b", "a b", "ä", "a\n", too_long.as_str()] {
        assert!(name.parse::<PluginName>().is_err(), "{name:?}");
    }
}

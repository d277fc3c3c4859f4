//! The plugin's side, and `serve` over memory.

use std::io::Cursor;

use attest_plugin_protocol::{
    Announcement, BeforeStep, FINDINGS, Finding, Hook, MESSAGE_BYTES, Payload, Plugin, PluginEvent,
    PluginSession, ProtocolError, SendError, ServeError, Severity, VERSION_BYTES, Verdict,
    Violation, encode, serve,
};

use crate::support::{after, announcement, before, pipeline};

fn shutdown(id: u64) -> Vec<u8> {
    encode::shutdown(id)
}

/// A session that said hello.
fn idle(announcement: Announcement) -> PluginSession {
    let mut session = PluginSession::new();
    session.receive(&encode::hello(1, "1.0.0")).unwrap();
    session.poll_event().unwrap();
    session.accept(announcement).unwrap();
    session.poll_transmit().unwrap();
    session
}

fn refused(session: &mut PluginSession, line: impl AsRef<[u8]>) -> Violation {
    let error = session.receive(line.as_ref()).unwrap_err();
    let again: ProtocolError = session.receive(&shutdown(99)).unwrap_err();
    assert_eq!(error, again, "a broken session stays broken");
    assert_eq!(session.poll_event(), None);
    error.violation().clone()
}

#[test]
fn hello_is_answered_by_hello_ok() {
    let mut session = PluginSession::new();
    session.receive(&encode::hello(1, "2.0.0")).unwrap();
    assert_eq!(
        session.poll_event(),
        Some(PluginEvent::Hello {
            attest_version: "2.0.0".to_owned(),
            protocols: vec![1],
        })
    );
    let narrow = Announcement::new("noop".parse().unwrap(), "0.1.0", &[Hook::StepPre], false);
    session.accept(narrow.clone()).unwrap();
    let line = concat!(
        r#"{"v":1,"id":1,"kind":"hello_ok","name":"noop","version":"0.1.0","protocol":1,"#,
        r#""hooks":["step.pre"],"deterministic":false}"#,
        "\n"
    );
    assert_eq!(session.poll_transmit().unwrap(), line.as_bytes());
    assert_eq!(session.poll_transmit(), None);
    assert_eq!(session.accept(narrow), Err(SendError::NotAsked), "once");
}

#[test]
fn one_of_the_offered_majors_is_selected() {
    let mut session = PluginSession::new();
    let hello = r#"{"v":1,"id":1,"kind":"hello","attest_version":"9","protocols":[3,1,2],"x":1}"#;
    session.receive(format!("{hello}\n").as_bytes()).unwrap();
    let mut newer = announcement();
    newer.protocol = 4;
    assert_eq!(session.accept(newer), Err(SendError::NotOffered));
    let mut long = announcement();
    long.version = "v".repeat(VERSION_BYTES + 1);
    assert_eq!(session.accept(long.clone()), Err(SendError::Version));
    long.version.pop();
    session.accept(long).unwrap();
}

#[test]
fn only_hello_comes_first_and_only_once() {
    for line in [
        shutdown(1),
        encode::request(1, &before()),
        b"{}\n".to_vec(),
        b"\n".to_vec(),
    ] {
        refused(&mut PluginSession::new(), line);
    }
    let hello = encode::hello(1, "1");
    let second = String::from_utf8(hello.clone())
        .unwrap()
        .replace("\"id\":1", "\"id\":2");
    assert!(matches!(
        refused(&mut PluginSession::new(), &second),
        Violation::Id { .. }
    ));
    let mut session = idle(announcement());
    assert!(matches!(
        refused(&mut session, hello),
        Violation::Kind { .. }
    ));
}

#[test]
fn each_request_gets_one_verdict_with_its_id() {
    let mut session = idle(announcement());
    session.receive(&encode::request(2, &before())).unwrap();
    let request = PluginEvent::Request {
        id: 2,
        payload: before(),
    };
    assert_eq!(session.poll_event(), Some(request));
    let verdict = Verdict::allow();
    assert_eq!(session.verdict(3, &verdict), Err(SendError::NotAsked));
    session.verdict(2, &verdict).unwrap();
    assert_eq!(session.verdict(2, &verdict), Err(SendError::NotAsked));
    assert_eq!(
        session.poll_transmit().unwrap(),
        b"{\"v\":1,\"id\":2,\"kind\":\"verdict\",\"decision\":\"allow\",\"findings\":[]}\n"
    );
}

#[test]
fn a_verdict_that_the_core_would_refuse_is_not_sent() {
    let mut session = idle(announcement());
    session.receive(&encode::request(2, &before())).unwrap();
    let finding = Finding::new("", Severity::Low, "", None).unwrap();
    let many = Verdict::deny(vec![finding; FINDINGS + 1]);
    assert_eq!(session.verdict(2, &many), Err(SendError::TooManyFindings));
    // Every limit of its own is kept, and the message is still too long.
    let long = Finding::new("", Severity::Low, "\u{0}".repeat(4_096), None).unwrap();
    let long = Verdict::deny(vec![long; FINDINGS]);
    assert_eq!(session.verdict(2, &long), Err(SendError::TooLarge));
    assert_eq!(session.poll_transmit(), None);
    session.verdict(2, &Verdict::allow()).unwrap();

    let exact = |length: usize| {
        let empty = encode::verdict(3, &of_length(0)).len() - 1;
        of_length(length - empty)
    };
    session.receive(&encode::request(3, &before())).unwrap();
    let over = session.verdict(3, &exact(MESSAGE_BYTES + 1));
    assert_eq!(over, Err(SendError::TooLarge));
    session.verdict(3, &exact(MESSAGE_BYTES)).unwrap();
}

/// A verdict whose messages together have so many bytes.
fn of_length(length: usize) -> Verdict {
    let finding = |length| Finding::new("", Severity::Low, "x".repeat(length), None).unwrap();
    let findings = (0..FINDINGS).map(|at| finding(length.saturating_sub(at * 4_096).min(4_096)));
    Verdict::deny(findings.collect())
}

#[test]
fn ids_rise() {
    for (id, fits) in [
        (0, false),
        (1, false),
        (2, true),
        (3, true),
        (u64::MAX, true),
    ] {
        let mut session = idle(announcement());
        let line = encode::request(id, &before());
        if fits {
            session.receive(&line).unwrap();
            session.poll_event().unwrap();
            session.verdict(id, &Verdict::allow()).unwrap();
            assert!(matches!(
                refused(&mut session, shutdown(id)),
                Violation::Id { .. }
            ));
        } else {
            assert!(matches!(refused(&mut session, line), Violation::Id { .. }));
        }
    }
}

#[test]
fn a_core_waits_for_the_answer() {
    let mut session = idle(announcement());
    session.receive(&encode::request(2, &before())).unwrap();
    session.poll_event().unwrap();
    let next = encode::request(3, &after());
    assert!(matches!(
        refused(&mut session, next),
        Violation::Kind { .. }
    ));
}

#[test]
fn a_hook_that_was_not_announced_is_never_asked() {
    let narrow = Announcement::new("noop".parse().unwrap(), "0.1.0", &[Hook::StepPre], true);
    let mut session = idle(narrow);
    assert_eq!(
        refused(&mut session, encode::request(2, &pipeline())),
        Violation::NotAnnounced("pipeline.validate".to_owned())
    );
}

#[test]
fn an_unknown_kind_is_ignored_and_wants_no_answer() {
    let mut session = idle(announcement());
    let lines =
        "{\"v\":1,\"kind\":\"progress\",\"at\":[]}\n{\"v\":1,\"id\":2,\"kind\":\"step.retry\"}\n";
    session.receive(lines.as_bytes()).unwrap();
    for id in [None, Some(2)] {
        match session.poll_event() {
            Some(PluginEvent::Unknown { id: found, .. }) => assert_eq!(found, id),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        session.verdict(2, &Verdict::allow()),
        Err(SendError::NotAsked)
    );
    assert_eq!(session.poll_transmit(), None);
    session.receive(&encode::request(3, &before())).unwrap();
    session.verdict(3, &Verdict::allow()).unwrap();
    // Its id counts like any other.
    let line = b"{\"v\":1,\"id\":3,\"kind\":\"step.retry\"}\n";
    assert!(matches!(
        refused(&mut idle_after(3), line),
        Violation::Id { .. }
    ));
}

fn idle_after(id: u64) -> PluginSession {
    let mut session = idle(announcement());
    session.receive(&encode::request(id, &before())).unwrap();
    session.poll_event().unwrap();
    session.verdict(id, &Verdict::allow()).unwrap();
    session
}

#[test]
fn a_later_hook_that_was_announced_is_a_request() {
    let mut later = announcement();
    later.hooks.push("step.retry".to_owned());
    let mut session = idle(later);
    let line = "{\"v\":1,\"id\":2,\"kind\":\"step.retry\",\"payload\":{\"step\":{}}}\n";
    session.receive(line.as_bytes()).unwrap();
    match session.poll_event() {
        Some(PluginEvent::OtherRequest { id: 2, hook, .. }) => assert_eq!(hook, "step.retry"),
        other => panic!("{other:?}"),
    }
    session.verdict(2, &Verdict::allow()).unwrap();
}

#[test]
fn unknown_fields_of_payloads_are_ignored_at_every_level() {
    let mut session = idle(announcement());
    let line = String::from_utf8(encode::request(2, &before())).unwrap();
    let line = line
        .replace("\"payload\":{", "\"trace\":null,\"payload\":{\"run\":{},")
        .replace("\"step\":{", "\"step\":{\"cost\":[1.5],");
    session.receive(line.as_bytes()).unwrap();
    let request = PluginEvent::Request {
        id: 2,
        payload: before(),
    };
    assert_eq!(session.poll_event(), Some(request));
}

#[test]
fn shutdown_is_the_last_message() {
    let mut session = idle(announcement());
    session.receive(&encode::request(2, &before())).unwrap();
    let mut rest = shutdown(3);
    rest.extend(b"garbage");
    session.receive(&rest).unwrap();
    assert_eq!(session.poll_event(), Some(PluginEvent::Shutdown));
    assert_eq!(session.poll_event(), None);
    session.receive(b"more\n").unwrap();
    session.input_closed().unwrap();
    assert_eq!(
        session.verdict(2, &Verdict::allow()),
        Err(SendError::NotAsked)
    );
}

#[test]
fn an_input_that_ends_early_is_an_error() {
    let mut session = idle(announcement());
    assert_eq!(
        session.input_closed().unwrap_err().violation(),
        &Violation::EarlyEnd
    );
    let mut session = idle(announcement());
    session.receive(b"{\"v\"").unwrap();
    assert_eq!(
        session.input_closed().unwrap_err().violation(),
        &Violation::Unterminated
    );
}

/// Denies steps whose command names `curl`.
struct Policy;

impl Plugin for Policy {
    fn hello(&mut self, attest_version: &str) -> Result<Announcement, String> {
        match attest_version {
            "broken" => Err("no policy file".to_owned()),
            "later" => {
                let mut later = announcement();
                later.hooks.push("step.retry".to_owned());
                Ok(later)
            }
            _ => Ok(announcement()),
        }
    }

    fn judge(&mut self, payload: &Payload) -> Verdict {
        match payload {
            Payload::BeforeStep(step) if step.run.contains("curl") => {
                let finding = Finding::new("no-network", Severity::High, "uses curl", None);
                Verdict::deny(finding.into_iter().collect())
            }
            _ => Verdict::allow(),
        }
    }
}

fn run(input: &[u8]) -> (Result<(), ServeError>, String) {
    let mut output = Vec::new();
    let result = serve(&mut Policy, Cursor::new(input), &mut output);
    (result, String::from_utf8(output).unwrap())
}

/// Hands out one line at a time, as a core that waits for each answer does.
struct Lines<'a>(Vec<&'a [u8]>);

impl std::io::Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let line = self.0.remove(0);
        buffer[..line.len()].copy_from_slice(line);
        Ok(line.len())
    }
}

#[test]
fn serve_lives_from_hello_to_shutdown() {
    let curl = Payload::BeforeStep(BeforeStep {
        run: "curl x".to_owned(),
        ..BeforeStep::default()
    });
    let lines = [
        encode::hello(1, "1.0.0"),
        encode::request(2, &pipeline()),
        encode::request(3, &curl),
        shutdown(4),
    ];
    let input = std::io::BufReader::new(Lines(lines.iter().map(Vec::as_slice).collect()));
    let mut output = Vec::new();
    serve(&mut Policy, input, &mut output).unwrap();
    let expected = format!(
        "{}{}{}",
        String::from_utf8(encode::hello_ok(1, &announcement())).unwrap(),
        "{\"v\":1,\"id\":2,\"kind\":\"verdict\",\"decision\":\"allow\",\"findings\":[]}\n",
        "{\"v\":1,\"id\":3,\"kind\":\"verdict\",\"decision\":\"deny\",\"findings\":[{\"rule\":\
         \"no-network\",\"severity\":\"high\",\"message\":\"uses curl\"}]}\n"
    );
    assert_eq!(String::from_utf8(output).unwrap(), expected);
}

#[test]
fn exit_codes_follow_the_convention() {
    let hello = encode::hello(1, "1.0.0");
    let (result, output) = run(&encode::hello(1, "broken"));
    let error = result.unwrap_err();
    assert_eq!(
        (error.exit_code(), error.to_string().as_str()),
        (2, "no policy file")
    );
    assert_eq!(output, "", "a plugin that cannot work answers nothing");

    let (result, _) = run(&encode::hello(1, "later"));
    assert_eq!(
        result.unwrap_err().exit_code(),
        2,
        "no payload type for this hook"
    );

    let (result, output) = run(&hello);
    assert_eq!(result.unwrap_err().exit_code(), 1, "the core went away");
    assert!(output.contains("hello_ok"));

    let (result, _) = run(b"hello\n");
    assert!(matches!(result, Err(ServeError::Protocol(_))));
    assert_eq!(result.unwrap_err().exit_code(), 1);

    let other = String::from_utf8(hello).unwrap().replace("[1]", "[2]");
    let (result, output) = run(other.as_bytes());
    assert!(matches!(
        result,
        Err(ServeError::Send(SendError::NotOffered))
    ));
    assert_eq!(output, "");
}

#[test]
fn failing_streams_are_reported() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let hello = encode::hello(1, "1.0.0");
    let result = serve(&mut Policy, Cursor::new(hello), Full);
    assert!(matches!(&result, Err(ServeError::Io(_))));
    assert_eq!(result.unwrap_err().exit_code(), 1);
}

#[test]
fn each_answer_is_flushed() {
    struct Counts(usize);
    impl std::io::Write for &mut Counts {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0 += 1;
            Ok(())
        }
    }
    let lines = [
        encode::hello(1, "1.0.0"),
        encode::request(2, &pipeline()),
        shutdown(3),
    ];
    let input = std::io::BufReader::new(Lines(lines.iter().map(Vec::as_slice).collect()));
    let mut counts = Counts(0);
    serve(&mut Policy, input, &mut counts).unwrap();
    assert_eq!(counts.0, 2);
}

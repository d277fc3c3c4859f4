//! The plugin's side: what it reads, what it answers, and what it refuses to send.

use forge_plugin_protocol::{
    Capability, FailureCategory, Operation, Outcome, Output, PluginEvent, PluginSession,
    ProtocolError, Report, SendError, Stage, Violation,
};

use crate::support::{ALL, frame};

use Capability::{AgentReport, Cancel, CommitSubject, Progress, Text, WorkspaceEdit};

const LIMITS: &str = r#"{"frame_bytes":1048576,"progress_frames":128,"text_bytes":65536,"progress_text_bytes":1024,"commit_subject_bytes":256}"#;

fn initialize(offer: &[Capability]) -> String {
    let names: Vec<String> = offer.iter().map(|name| format!("\"{name}\"")).collect();
    let list = names.join(",");
    frame(
        "initialize",
        &format!(r#","capabilities":[{list}],"limits":{LIMITS}"#),
    )
}

fn execute_text() -> String {
    frame("execute", r#","operation":"text","input":"hi""#)
}

fn execute_edit() -> String {
    let body =
        r#","operation":"workspace_edit","workspace":"/w","instruction":"e","timeout_ms":1000"#;
    frame("execute", body)
}

/// Feeds everything and returns the frames that came out, with the first error.
fn talk(supported: &[Capability], input: impl AsRef<[u8]>) -> (String, Result<(), ProtocolError>) {
    let mut session = PluginSession::new(supported).unwrap();
    let result = session
        .receive(input.as_ref())
        .and_then(|()| session.input_closed());
    (drain(&mut session), result)
}

fn drain(session: &mut PluginSession) -> String {
    std::iter::from_fn(|| session.poll_transmit())
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect()
}

/// A session in which an operation runs and the answers so far are taken.
fn running(offer: &[Capability], execute: &str) -> PluginSession {
    let mut session = PluginSession::new(ALL).unwrap();
    session
        .receive((initialize(offer) + execute).as_bytes())
        .unwrap();
    assert!(matches!(
        session.poll_event(),
        Some(PluginEvent::Execute(_))
    ));
    drain(&mut session);
    session
}

#[test]
fn the_selection_is_what_both_sides_know_in_the_order_of_the_plugin() {
    let selected = |supported: &[Capability], offer: &[Capability]| {
        let mut session = PluginSession::new(supported).unwrap();
        session.receive(initialize(offer).as_bytes()).unwrap();
        session.selection().unwrap().iter().collect::<Vec<_>>()
    };
    assert_eq!(selected(&[Text], ALL), [Text]);
    assert_eq!(
        selected(&[Cancel, Text, Progress], &[Progress, Text, Cancel]),
        [Cancel, Text, Progress]
    );
    assert_eq!(
        selected(&[WorkspaceEdit, AgentReport], &[WorkspaceEdit]),
        [WorkspaceEdit]
    );
    assert!(PluginSession::new(&[]).is_err());
    assert!(PluginSession::new(&[Progress]).is_err());
    assert!(PluginSession::new(&[Text, Text]).is_err());
}

#[test]
fn an_operation_begins_after_both_frames() {
    let mut session = PluginSession::new(&[Text]).unwrap();
    session.receive(initialize(&[Text]).as_bytes()).unwrap();
    assert_eq!(session.poll_event(), None);
    assert_eq!(
        drain(&mut session),
        frame("initialized", r#","capabilities":["text"]"#)
    );
    session.receive(execute_text().as_bytes()).unwrap();
    let operation = Operation::text("hi").unwrap();
    assert_eq!(session.poll_event(), Some(PluginEvent::Execute(operation)));
    assert_eq!(session.poll_event(), None);
}

#[test]
fn a_bad_initialize_leaves_the_output_empty() {
    let good = initialize(&[Text]);
    let with = |body: &str| frame("initialize", body);
    let limits = |from: &str, to: &str| good.replace(from, to);
    let bad = [
        String::new(),
        "\n".to_owned(),
        "{\n".to_owned(),
        good.replace('\n', "\r\n"),
        good.replace('{', "{ "),
        good.trim_end().to_owned(),
        good.replace("\"v1\"", "\"v2\""),
        good.replace("0123456789abcdef", "0123456789ABCDEF"),
        execute_text(),
        with(&format!(
            r#","capabilities":["text","text"],"limits":{LIMITS}"#
        )),
        with(&format!(
            r#","capabilities":["unsupported"],"limits":{LIMITS}"#
        )),
        with(&format!(
            r#","capabilities":["text","unsupported"],"limits":{LIMITS}"#
        )),
        with(&format!(r#","capabilities":[1],"limits":{LIMITS}"#)),
        with(&format!(r#","capabilities":[],"limits":{LIMITS}"#)),
        with(&format!(r#","capabilities":null,"limits":{LIMITS}"#)),
        with(&format!(
            r#","capabilities":["progress"],"limits":{LIMITS}"#
        )),
        with(&format!(
            r#","capabilities":["workspace_edit"],"limits":{LIMITS}"#
        )),
        with(&format!(r#","limits":{LIMITS}"#)),
        with(r#","capabilities":["text"]"#),
        with(r#","capabilities":["text"],"limits":null"#),
        with(r#","capabilities":["text"],"limits":{}"#),
        with(r#","capabilities":["text"],"limits":[1048576,128,65536,1024,256]"#),
        with(&format!(
            r#","capabilities":["text"],"limits":{LIMITS},"unknown":true"#
        )),
        limits("1048576", "1048577"),
        limits("1048576", "1048576.0"),
        limits("1048576", "1.048576e6"),
        limits("1048576", "true"),
        limits("1048576", "NaN"),
        limits("1048576", "null"),
        limits("1048576", "\"1048576\""),
        limits("\"progress_frames\":128", "\"progress_frames\":127"),
        limits("65536", "65537"),
        limits("1024", "-0"),
        limits(",\"commit_subject_bytes\":256", ""),
        limits("256}", "256,\"extra\":1}"),
        limits("256}", "256,\"frame_bytes\":1048576}"),
        limits("frame_bytes", "Frame_Bytes"),
    ];
    for input in bad {
        let (output, result) = talk(&[Text], &input);
        assert!(result.is_err(), "{input}");
        assert_eq!(output, "", "{input}");
    }
    assert!(
        talk(&[Text], good + &execute_text()).1.is_ok(),
        "the unchanged frame passes"
    );
}

#[test]
fn keys_come_in_any_order_and_spelling() {
    let reordered = format!(
        r#"{{"limits":{{"commit_subject_bytes":256,"text_bytes":65536,"frame_bytes":1048576,"progress_text_bytes":1024,"progress_frames":128}},"capabilities":["te\u0078t"],"type":"initialize","\u0069d":"{}","version":"v1"}}"#,
        crate::support::ID
    );
    let (output, result) = talk(&[Text], reordered + "\n" + &execute_text());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(output, frame("initialized", r#","capabilities":["text"]"#));
}

#[test]
fn a_bad_execute_leaves_exactly_initialized() {
    let bad = [
        frame("result", r#","operation":"text","input":"x""#),
        frame("execute", r#","operation":"unsupported","input":"x""#),
        frame("execute", r#","operation":"progress","input":"x""#),
        frame(
            "execute",
            r#","operation":"workspace_edit","workspace":"/w","instruction":"e","timeout_ms":1"#,
        ),
        frame("execute", r#","operation":"text","input":1"#),
        frame("execute", r#","operation":"text","input":null"#),
        frame("execute", r#","operation":"text""#),
        frame("execute", r#","input":"x""#),
        frame(
            "execute",
            &format!(r#","operation":"text","input":"{}""#, "x".repeat(65_537)),
        ),
        frame(
            "execute",
            r#","operation":"text","input":"x","unknown":true"#,
        ),
        frame(
            "execute",
            r#","operation":"text","input":"x","workspace":"/w","instruction":"e","timeout_ms":1"#,
        ),
        frame(
            "execute",
            r#","operation":"text","input":"x","type":"execute""#,
        ),
        execute_text().replace("0123456789abcdef0", "1123456789abcdef0"),
        execute_text().trim_end().to_owned(),
        frame("cancel", ""),
        initialize(&[Text]),
        String::new(),
        "\n".to_owned(),
    ];
    let expected = frame("initialized", r#","capabilities":["text"]"#);
    for input in bad {
        let (output, result) = talk(&[Text], initialize(&[Text]) + &input);
        assert!(result.is_err(), "{input}");
        assert_eq!(output, expected, "{input}");
    }
}

#[test]
fn a_bad_workspace_execute_is_refused() {
    let good = execute_edit();
    assert!(
        talk(&[WorkspaceEdit], initialize(&[WorkspaceEdit]) + &good)
            .1
            .is_ok()
    );
    let bad = [
        good.replace("\"/w\"", "\"w\""),
        good.replace("\"/w\"", "\"\""),
        good.replace("\"/w\"", r#""/w\u0000""#),
        good.replace("\"/w\"", "null"),
        good.replace("\"e\"", "\"\""),
        good.replace("\"e\"", &format!("\"{}\"", "x".repeat(65_537))),
        good.replace("1000", "0"),
        good.replace("1000", "-1"),
        good.replace("1000", "86400001"),
        good.replace("1000", "1000.0"),
        good.replace("1000", "1e3"),
        good.replace("1000", "\"1000\""),
        good.replace(",\"timeout_ms\":1000", ""),
        good.replace("}\n", ",\"input\":\"x\"}\n"),
    ];
    for input in bad {
        let (_, result) = talk(&[WorkspaceEdit], initialize(&[WorkspaceEdit]) + &input);
        assert!(result.is_err(), "{input}");
    }
    for good in [
        good.replace("1000", "86400000"),
        good.replace("\"e\"", &format!("\"{}\"", "x".repeat(65_536))),
    ] {
        assert!(
            talk(&[WorkspaceEdit], initialize(&[WorkspaceEdit]) + &good)
                .1
                .is_ok()
        );
    }
}

#[test]
fn cancel_may_come_once_and_only_if_selected() {
    let mut session = running(ALL, &execute_text());
    session.receive(frame("cancel", "").as_bytes()).unwrap();
    assert_eq!(session.poll_event(), Some(PluginEvent::Cancel));
    let error = session.receive(frame("cancel", "").as_bytes()).unwrap_err();
    assert_eq!(error.violation(), &Violation::TrailingBytes("`cancel`"));
    assert_eq!(session.poll_event(), None);

    let mut session = running(&[Text], &execute_text());
    let error = session.receive(frame("cancel", "").as_bytes()).unwrap_err();
    assert_eq!(
        error.violation(),
        &Violation::NotNegotiated {
            what: "cancel",
            capability: Cancel
        }
    );
}

#[test]
fn nothing_but_cancel_follows_execute() {
    let cancel = frame("cancel", "");
    for bad in [
        execute_text(),
        frame("cancel", r#","reason":"x""#),
        frame("cancel", r#","x":1,"x":2"#),
        cancel.replace("0123456789abcdef0", "1123456789abcdef0"),
        "[\"cancel\"]\n".to_owned(),
        "\n".to_owned(),
        " \n".to_owned(),
    ] {
        assert!(
            running(ALL, &execute_text())
                .receive(bad.as_bytes())
                .is_err(),
            "{bad}"
        );
    }
    let mut session = running(ALL, &execute_text());
    session.receive(b"{").unwrap();
    let error = session.input_closed().unwrap_err();
    assert_eq!(error.violation(), &Violation::Unterminated);
}

#[test]
fn the_input_may_end_only_after_execute() {
    let end = |input: String| {
        talk(&[Text], input)
            .1
            .err()
            .map(|error| error.violation().clone())
    };
    let early = |missing| {
        Some(Violation::EarlyEnd {
            who: "the host",
            missing,
        })
    };
    assert_eq!(end(String::new()), early("`initialize`"));
    assert_eq!(end(initialize(&[Text])), early("`execute`"));
    let mut session = running(&[Text], &execute_text());
    session.input_closed().unwrap();
    assert_eq!(session.poll_event(), Some(PluginEvent::InputClosed));
}

#[test]
fn the_first_error_stays() {
    let mut session = PluginSession::new(&[Text]).unwrap();
    let first = session.receive(b"x\n").unwrap_err();
    assert_eq!(
        session.receive(initialize(&[Text]).as_bytes()),
        Err(first.clone())
    );
    assert_eq!(session.input_closed(), Err(first));
    assert_eq!(
        session.fail(FailureCategory::ExecutionFailed),
        Err(SendError::NotExecuting)
    );
    assert_eq!(drain(&mut session), "");
}

#[test]
fn progress_is_numbered_and_ends_at_128() {
    let mut session = running(ALL, &execute_text());
    for sequence in 1..=128 {
        session
            .progress(Stage::Working, "t".parse().unwrap())
            .unwrap();
        let expected = format!(r#","sequence":{sequence},"stage":"working","text":"t""#);
        assert_eq!(drain(&mut session), frame("progress", &expected));
    }
    let refused = session.progress(Stage::Working, "t".parse().unwrap());
    assert_eq!(refused, Err(SendError::TooManyProgressFrames));
    assert_eq!(drain(&mut session), "");
}

#[test]
fn progress_needs_its_capability_and_ends_before_the_terminal_frame() {
    let text = || "t".parse().unwrap();
    let mut session = running(&[Text], &execute_text());
    let capability = Progress;
    let refused = SendError::NotNegotiated {
        what: "progress",
        capability,
    };
    assert_eq!(session.progress(Stage::Started, text()), Err(refused));

    let mut session = running(ALL, &execute_text());
    session
        .succeed(&Outcome::Text("x".parse().unwrap()))
        .unwrap();
    assert_eq!(
        session.progress(Stage::Started, text()),
        Err(SendError::Ended)
    );
    assert_eq!(
        session.fail(FailureCategory::Cancelled),
        Err(SendError::Ended)
    );
    assert_eq!(drain(&mut session), frame("result", r#","output":"x""#));

    let mut session = PluginSession::new(ALL).unwrap();
    assert_eq!(
        session.progress(Stage::Started, text()),
        Err(SendError::NotExecuting)
    );
}

#[test]
fn a_result_that_the_host_would_refuse_is_not_sent() {
    assert!(Output::new("x".repeat(65_536)).is_ok());
    assert!(Output::new("x".repeat(65_537)).is_err());
    let edit = |subject: Option<&str>, report| Outcome::Workspace {
        subject: subject.map(|subject| subject.parse().unwrap()),
        report,
    };
    let report = || Some(Report::new("s", ["c"]).unwrap());
    let mut session = running(&[WorkspaceEdit], &execute_edit());
    assert!(matches!(
        session.succeed(&edit(Some("s"), None)),
        Err(SendError::NotNegotiated {
            capability: CommitSubject,
            ..
        })
    ));
    assert!(matches!(
        session.succeed(&edit(None, report())),
        Err(SendError::NotNegotiated {
            capability: AgentReport,
            ..
        })
    ));
    let text = Outcome::Text("x".parse().unwrap());
    assert_eq!(
        session.succeed(&text),
        Err(SendError::OtherOperation(WorkspaceEdit))
    );
    assert_eq!(drain(&mut session), "");
    session.fail(FailureCategory::ExecutionFailed).unwrap();
    assert_eq!(
        drain(&mut session),
        frame("failure", r#","category":"execution_failed""#)
    );
}

#[test]
fn a_cancel_that_crosses_the_terminal_frame_is_no_error() {
    let mut session = running(ALL, &execute_text());
    session
        .succeed(&Outcome::Text("x".parse().unwrap()))
        .unwrap();
    session.receive(frame("cancel", "").as_bytes()).unwrap();
    assert_eq!(session.poll_event(), None);
    assert!(session.receive(frame("cancel", "").as_bytes()).is_err());
}

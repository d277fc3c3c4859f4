//! Frames to the byte, as they are written.

use std::time::Duration;

use forge_plugin_protocol::{
    Capabilities, Capability, FailureCategory, InvalidOperation, Operation, Outcome, Progress,
    Report, SessionId, Stage, TimeoutMs, encode,
};

use crate::support::ID;

fn id() -> SessionId {
    ID.parse().unwrap()
}

fn capabilities(list: &[Capability]) -> Capabilities {
    Capabilities::new(list.iter().copied()).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn frames_have_the_field_order_and_the_limits_of_the_protocol() {
    assert_eq!(
        text(&encode::initialize(id(), &capabilities(&[Capability::Text]))),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"initialize","capabilities":["text"],"limits":{"frame_bytes":1048576,"progress_frames":128,"text_bytes":65536,"progress_text_bytes":1024,"commit_subject_bytes":256}}"#.to_owned() + "\n"
    );
    assert_eq!(
        text(&encode::initialized(id(), &capabilities(&[Capability::Text]))),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"initialized","capabilities":["text"]}"#.to_owned() + "\n"
    );
    assert_eq!(
        text(&encode::execute(id(), &Operation::text("hello").unwrap())),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"execute","operation":"text","input":"hello"}"#.to_owned() + "\n"
    );
    let timeout = Duration::from_secs(60);
    let edit = Operation::workspace_edit("/operator/path", "edit the files", timeout).unwrap();
    assert_eq!(
        text(&encode::execute(id(), &edit)),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"execute","operation":"workspace_edit","workspace":"/operator/path","instruction":"edit the files","timeout_ms":60000}"#.to_owned() + "\n"
    );
    assert_eq!(
        text(&encode::cancel(id())),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"cancel"}"#.to_owned()
            + "\n"
    );
    let progress = Progress {
        sequence: 1,
        stage: Stage::Started,
        text: "editing".parse().unwrap(),
    };
    assert_eq!(
        text(&encode::progress(id(), &progress)),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"progress","sequence":1,"stage":"started","text":"editing"}"#.to_owned() + "\n"
    );
    assert_eq!(
        text(&encode::failure(id(), FailureCategory::ExecutionFailed)),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"failure","category":"execution_failed"}"#.to_owned() + "\n"
    );
}

#[test]
fn results_write_only_what_they_have() {
    assert_eq!(
        text(&encode::result(id(), &Outcome::Text("HELLO".parse().unwrap()))),
        r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"result","output":"HELLO"}"#.to_owned() + "\n"
    );
    let edit = |subject: Option<&str>, report| {
        let subject = subject.map(|subject| subject.parse().unwrap());
        let bytes = encode::result(id(), &Outcome::Workspace { subject, report });
        text(&bytes)
            .trim_end()
            .split_once(r#""type":"result""#)
            .unwrap()
            .1
            .to_owned()
    };
    let report = || Some(Report::new("s", ["a", "b"]).unwrap());
    assert_eq!(edit(None, None), "}");
    assert_eq!(
        edit(Some("feat: x"), None),
        r#","commit_subject":"feat: x"}"#
    );
    assert_eq!(
        edit(None, report()),
        r#","summary":"s","changes":["a","b"]}"#
    );
    assert_eq!(
        edit(Some("x"), report()),
        r#","commit_subject":"x","summary":"s","changes":["a","b"]}"#
    );
}

#[test]
fn markup_and_separators_are_escaped_and_nothing_else_is() {
    let operation = Operation::text("<&>\u{2028}\u{2029}é😀\u{7f}\n\"").unwrap();
    let frame = encode::execute(id(), &operation);
    let expected =
        r#""input":"\u003c\u0026\u003e\u2028\u2029é😀"#.to_owned() + "\u{7f}" + r#"\n\""}"#;
    assert!(
        text(&frame).trim_end().ends_with(&expected),
        "{}",
        text(&frame)
    );
    assert_eq!(frame.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn the_longest_values_fit_into_a_frame() {
    let worst = "\0".repeat(65_536);
    let path = format!("/{}", "\u{1}".repeat(4_095));
    let edit = Operation::workspace_edit(path, worst.clone(), Duration::from_secs(1)).unwrap();
    assert!(encode::execute(id(), &edit).len() <= forge_plugin_protocol::FRAME_BYTES);
    let text = Outcome::Text(worst.parse().unwrap());
    assert!(encode::result(id(), &text).len() <= forge_plugin_protocol::FRAME_BYTES);
}

#[test]
fn operations_outside_of_the_limits_cannot_be_made() {
    let second = Duration::from_secs(1);
    let edit = |path: &str, instruction: &str, timeout| {
        Operation::workspace_edit(path, instruction, timeout)
    };
    assert!(Operation::text("").is_ok());
    assert!(Operation::text("x".repeat(65_536)).is_ok());
    assert!(matches!(
        Operation::text("x".repeat(65_537)),
        Err(InvalidOperation::Input(_))
    ));
    assert!(edit("/w", &"x".repeat(65_536), second).is_ok());
    assert!(matches!(
        edit("/w", &"x".repeat(65_537), second),
        Err(InvalidOperation::Instruction(_))
    ));
    assert!(matches!(
        edit("/w", "", second),
        Err(InvalidOperation::Instruction(_))
    ));
    for path in [
        "",
        "w",
        "./w",
        "C:\\w",
        "/w\0",
        &format!("/{}", "x".repeat(4_096)),
    ] {
        assert_eq!(
            edit(path, "x", second),
            Err(InvalidOperation::Workspace),
            "{path}"
        );
    }
    assert!(edit("/", "x", second).is_ok());
    for bad in [0, 86_400_001, u64::MAX] {
        assert_eq!(TimeoutMs::new(bad), Err(InvalidOperation::Timeout), "{bad}");
    }
    assert_eq!(TimeoutMs::new(1).map(TimeoutMs::get), Ok(1));
    assert_eq!(
        TimeoutMs::new(86_400_000).map(TimeoutMs::get),
        Ok(86_400_000)
    );
    assert!(edit("/w", "x", Duration::from_micros(999)).is_err());
}

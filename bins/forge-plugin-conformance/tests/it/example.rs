//! The example plugin beyond the scenarios: it refuses what the protocol refuses, and nothing else.

use std::io::Write;
use std::process::{Output, Stdio};

use crate::support::{example, interpreter};

const OPENING: &str = concat!(
    r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"initialize","capabilities":["text"],"#,
    r#""limits":{"frame_bytes":1048576,"progress_frames":128,"text_bytes":65536,"#,
    r#""progress_text_bytes":1024,"commit_subject_bytes":256}}"#
);
const EXECUTE: &str = concat!(
    r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"execute","#,
    r#""operation":"text","input":"hello"}"#
);

fn run(wire: &[u8]) -> Output {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test drives the program as a host does"
    )]
    let mut child = std::process::Command::new(interpreter())
        .arg("-IS")
        .arg(example())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A plugin that has seen enough may leave before everything is written.
    drop(child.stdin.take().unwrap().write_all(wire));
    child.wait_with_output().unwrap()
}

/// Runs a session and returns its output lines and exit code.
fn session(opening: &str, execute: &str) -> (Vec<String>, Option<i32>) {
    let output = run(format!("{opening}\n{execute}\n").as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    (
        text.lines().map(str::to_owned).collect(),
        output.status.code(),
    )
}

fn edited(frame: &str, from: &str, to: &str) -> String {
    assert_eq!(frame.matches(from).count(), 1, "{from}");
    frame.replace(from, to)
}

#[test]
fn it_accepts_whatever_the_protocol_leaves_open() {
    let answers = |opening: &str, execute: &str, output: &str| {
        let (lines, code) = session(opening, execute);
        assert_eq!((lines.len(), code), (2, Some(0)), "{opening}\n{execute}");
        assert!(
            lines[0].ends_with(r#""type":"initialized","capabilities":["text"]}"#),
            "{}",
            lines[0]
        );
        assert!(
            lines[1].ends_with(&format!(r#""type":"result","output":"{output}"}}"#)),
            "{}",
            lines[1]
        );
    };
    answers(OPENING, EXECUTE, "HELLO");
    let all = r#"["agent_report","commit_subject","cancel","progress","workspace_edit","text"]"#;
    answers(&edited(OPENING, r#"["text"]"#, all), EXECUTE, "HELLO");
    answers(OPENING, &edited(EXECUTE, "hello", ""), "");
    answers(OPENING, &edited(EXECUTE, "hello", "größe €"), "GRÖSSE €");
    answers(
        OPENING,
        &edited(EXECUTE, "hello", r"\ud83d\ude00 \u0061"),
        "\u{1f600} A",
    );
    answers(
        OPENING,
        &edited(EXECUTE, "hello", &"x".repeat(65_536)),
        &"X".repeat(65_536),
    );
    let reordered = r#"{"input":"hello","operation":"text","type":"execute","id":"0123456789abcdef0123456789abcdef","version":"v1"}"#;
    answers(OPENING, reordered, "HELLO");
}

#[test]
fn it_refuses_broken_openings_without_a_byte() {
    let limit = r#""commit_subject_bytes":256"#;
    let wires = [
        String::new(),
        format!("\u{feff}{OPENING}"),
        format!(" {OPENING}"),
        format!("{OPENING} "),
        format!("{OPENING}{OPENING}"),
        format!("[{OPENING}]"),
        edited(OPENING, r#"["text"]"#, "[]"),
        edited(OPENING, r#"["text"]"#, "null"),
        edited(OPENING, r#"["text"]"#, r#"["workspace_edit"]"#),
        edited(OPENING, r#"["text"]"#, r#""text""#),
        edited(OPENING, r#""version""#, r#""Version""#),
        edited(OPENING, r#""type""#, r#""\u0074ype":"initialize","type""#),
        edited(OPENING, limit, &format!("{limit},{limit}")),
        edited(OPENING, limit, &format!(r#"{limit},"more":1"#)),
        edited(OPENING, &format!(",{limit}"), ""),
        edited(OPENING, limit, r#""commit_subject_bytes":255"#),
        edited(OPENING, limit, r#""commit_subject_bytes":null"#),
        edited(OPENING, limit, r#""commit_subject_bytes":2.56e2"#),
        edited(
            OPENING,
            "0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcde",
        ),
        format!("\"{}\"", "x".repeat(1_048_574)),
        "[".repeat(100_000),
    ];
    for wire in wires {
        let output = run(format!("{wire}\n{EXECUTE}\n").as_bytes());
        let shown = wire.get(..200).unwrap_or(&wire);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{shown}"
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("forge-plugin-v1: ") && said.lines().count() == 1,
            "{shown}: {said}"
        );
    }
}

#[test]
fn it_refuses_broken_executes_after_initialized() {
    let executes = [
        edited(EXECUTE, "hello", r"\ud800"),
        edited(EXECUTE, "hello", r"\udc00\ud800"),
        edited(EXECUTE, "hello", "a\tb"),
        edited(EXECUTE, "hello", r"\x"),
        edited(EXECUTE, r#""hello""#, "null"),
        edited(EXECUTE, r#","input":"hello""#, ""),
        edited(EXECUTE, r#""input""#, r#""in\u0070ut":"","input""#),
        edited(EXECUTE, "hello", &"é".repeat(32_769)),
        OPENING.to_owned(),
    ];
    for execute in executes {
        let (lines, code) = session(OPENING, &execute);
        let shown = execute.get(..200).unwrap_or(&execute);
        assert_eq!((lines.len(), code), (1, Some(2)), "{shown}");
    }
    let (lines, code) = session(OPENING, "");
    assert_eq!((lines.len(), code), (1, Some(2)), "a blank line");
}

#[test]
fn a_result_that_is_too_long_is_a_failure_of_the_operation() {
    // U+00DF has two bytes, its upper case `SS` as well; U+0149 has two, its upper case three.
    let (lines, code) = session(
        OPENING,
        &edited(EXECUTE, "hello", &"\u{149}".repeat(32_768)),
    );
    assert_eq!(code, Some(0));
    assert!(
        lines[1].ends_with(r#""type":"failure","category":"execution_failed"}"#),
        "{}",
        lines[1]
    );
}

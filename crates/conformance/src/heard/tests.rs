//! Sessions as bytes, and the rules that they break.

use std::time::Duration;

use super::*;
use crate::conduct::Aspect;

const ALL: [&str; 6] = crate::wire::CAPABILITIES;

fn frame(kind: &str, fields: &str) -> String {
    format!("{{\"version\":\"v1\",\"id\":\"{SESSION}\",\"type\":\"{kind}\"{fields}}}\n")
}

fn initialized(capabilities: &[&str]) -> String {
    frame(
        "initialized",
        &format!(",\"capabilities\":{capabilities:?}").replace(", ", ","),
    )
}

fn progress(sequence: u64, stage: &str, text: &str) -> String {
    frame(
        "progress",
        &format!(",\"sequence\":{sequence},\"stage\":\"{stage}\",\"text\":\"{text}\""),
    )
}

fn heard(stdout: impl Into<Vec<u8>>) -> Heard {
    Heard {
        stdout: stdout.into(),
        stderr: Vec::new(),
        end: End::Code(0),
        descendants: 0,
        left_after: Some(Duration::ZERO),
        stopped_after: None,
        late: Duration::ZERO,
    }
}

fn read(operation: Operation, offer: &[&str], lines: &[String]) -> Reading {
    heard(lines.concat()).read(operation, offer)
}

/// The aspects of what is broken in a session that edits.
fn aspects(lines: &[String]) -> Vec<Aspect> {
    let reading = read(Operation::WorkspaceEdit, &ALL, lines);
    reading.broken.iter().map(|one| one.aspect).collect()
}

fn result() -> String {
    frame("result", "")
}

#[test]
fn a_session_that_breaks_nothing() {
    let lines = [
        initialized(&[
            "progress",
            "workspace_edit",
            "commit_subject",
            "agent_report",
        ]),
        progress(1, "started", ""),
        progress(2, "finalizing", &"x".repeat(1_024)),
        progress(3, "started", "again"),
        frame(
            "result",
            ",\"commit_subject\":\"feat: x\",\"summary\":\"s\",\"changes\":[\"c\"]",
        ),
    ];
    let reading = read(Operation::WorkspaceEdit, &ALL, &lines);
    assert!(reading.broken.is_empty(), "{:?}", reading.broken);
    assert_eq!(reading.terminal, Some(Terminal::Result));
    assert_eq!(reading.selection.map(|all| all.len()), Some(4));
}

#[test]
fn a_failure_ends_a_session_with_its_category() {
    let failure = frame("failure", ",\"category\":\"cancelled\"");
    let reading = read(Operation::Text, &ALL, &[initialized(&["text"]), failure]);
    assert!(reading.broken.is_empty());
    assert_eq!(
        reading.terminal,
        Some(Terminal::Failure("cancelled".to_owned()))
    );
    let odd = frame("failure", ",\"category\":\"bored\"");
    let reading = read(Operation::Text, &ALL, &[initialized(&["text"]), odd]);
    assert_eq!(reading.broken.len(), 1);
}

#[test]
fn forms_that_no_frame_has() {
    let opened = initialized(&["text"]);
    for line in [
        "hello\n".to_owned(),
        "\n".to_owned(),
        frame("result", ", \"output\":\"x\""),
        frame("result", ",\"output\":null"),
        frame("result", ",\"Output\":\"x\""),
        frame("result", ",\"output\":\"x\",\"output\":\"x\""),
        frame("result", ",\"output\":\"\\ud800\""),
        frame("result", ",\"output\":\"x\",\"more\":1"),
        frame("result", ",\"output\":\"x\"").replace("\"v1\"", "\"v2\""),
        frame("result", ",\"output\":\"x\"").replace(SESSION, &SESSION.to_uppercase()),
        frame("results", ",\"output\":\"x\""),
        frame("result", ",\"output\":\"x\"").trim_end().to_owned(),
    ] {
        let reading = read(Operation::Text, &ALL, &[opened.clone(), line.clone()]);
        assert!(
            reading.broken.iter().any(|one| one.aspect == Aspect::Form),
            "{line}"
        );
    }
    let reading = read(
        Operation::Text,
        &ALL,
        &[frame("result", ",\"output\":\"x\"")],
    );
    assert_eq!(reading.broken[0].aspect, Aspect::Form, "result comes first");
}

#[test]
fn a_selection_is_a_part_of_the_offer_with_the_operation() {
    let wrong = |offer: &[&str], selection: &[&str]| {
        let reading = read(Operation::Text, offer, &[initialized(selection)]);
        reading
            .broken
            .iter()
            .all(|one| one.aspect == Aspect::Selection)
            && !reading.broken.is_empty()
    };
    assert!(!wrong(&ALL, &["cancel", "text"]));
    assert!(wrong(&["text"], &["text", "cancel"]), "not offered");
    assert!(wrong(&ALL, &["text", "text"]), "twice");
    assert!(wrong(&ALL, &["cancel"]), "no operation");
    assert!(wrong(&ALL, &[]), "nothing");
}

#[test]
fn each_rule_of_progress_has_its_aspect() {
    let opened = initialized(&["workspace_edit", "progress"]);
    let with = |line: String| aspects(&[opened.clone(), line, result()]);
    assert_eq!(with(progress(1, "working", "é")), []);
    assert_eq!(with(progress(0, "working", "")), [Aspect::ProgressSequence]);
    assert_eq!(with(progress(2, "working", "")), [Aspect::ProgressSequence]);
    assert_eq!(with(progress(1, "Working", "")), [Aspect::ProgressStage]);
    let long = progress(1, "working", &"é".repeat(513));
    assert_eq!(with(long), [Aspect::ProgressText]);
    let missing = frame("progress", ",\"sequence\":1,\"stage\":\"working\"");
    assert_eq!(with(missing), [Aspect::ProgressText]);
    let late = [opened.clone(), result(), progress(1, "working", "")];
    assert_eq!(aspects(&late), [Aspect::ProgressPlace]);
    let early = [progress(1, "working", ""), opened.clone(), result()];
    assert_eq!(aspects(&early), [Aspect::ProgressPlace]);
    let unselected = [
        initialized(&["workspace_edit"]),
        progress(1, "working", ""),
        result(),
    ];
    assert_eq!(aspects(&unselected), [Aspect::Unselected]);
    let many = |count| {
        let mut lines = vec![opened.clone()];
        lines.extend((1..=count).map(|number| progress(number, "working", "")));
        lines.push(result());
        aspects(&lines)
    };
    assert_eq!(many(128), []);
    assert_eq!(many(129), [Aspect::ProgressCount]);
}

#[test]
fn subjects_and_reports_have_limits_and_need_their_capability() {
    let opened = initialized(&["workspace_edit", "commit_subject", "agent_report"]);
    let with = |fields: &str| aspects(&[opened.clone(), frame("result", fields)]);
    let subject = |text: &str| with(&format!(",\"commit_subject\":\"{text}\""));
    assert_eq!(subject(&"x".repeat(256)), []);
    for bad in ["", &"x".repeat(257), " x", "x\\n", "a\\u200bb", "a\\u2028b"] {
        assert!(subject(bad).contains(&Aspect::Subject), "{bad}");
    }
    let report = |summary: &str, changes: &[&str]| {
        let changes = format!("{changes:?}").replace(", ", ",");
        with(&format!(",\"summary\":\"{summary}\",\"changes\":{changes}"))
    };
    let (summary, change) = ("s".repeat(1_024), "c".repeat(256));
    assert_eq!(report(&summary, &[change.as_str(); 12]), []);
    for (summary, changes) in [
        ("s".repeat(1_025), vec!["c"]),
        (String::new(), vec!["c"]),
        ("s ".to_owned(), vec!["c"]),
        ("s".to_owned(), vec![]),
        ("s".to_owned(), vec!["c"; 13]),
        ("s".to_owned(), vec![""]),
    ] {
        assert!(
            report(&summary, &changes).contains(&Aspect::Report),
            "{summary} {changes:?}"
        );
    }
    assert!(report("s", &[&"c".repeat(257)]).contains(&Aspect::Report));
    assert!(with(",\"summary\":\"s\"").contains(&Aspect::Report));
    assert!(with(",\"summary\":null,\"changes\":null").contains(&Aspect::Report));
    let bare = initialized(&["workspace_edit"]);
    let null = [bare, frame("result", ",\"commit_subject\":null")];
    assert!(aspects(&null).contains(&Aspect::Unselected));
}

#[test]
fn what_follows_the_terminal_frame_is_trailing() {
    let opened = initialized(&["workspace_edit"]);
    for more in [result(), "x".to_owned(), "\n".to_owned(), "x\n".to_owned()] {
        assert_eq!(
            aspects(&[opened.clone(), result(), more]),
            [Aspect::Trailing]
        );
    }
}

#[test]
fn an_output_may_have_65536_bytes() {
    let with = |bytes: usize| {
        let line = frame("result", &format!(",\"output\":\"{}\"", "x".repeat(bytes)));
        let reading = read(Operation::Text, &ALL, &[initialized(&["text"]), line]);
        reading
            .broken
            .iter()
            .map(|one| one.aspect)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(65_536), []);
    assert_eq!(with(65_537), [Aspect::Output]);
}

#[test]
fn times_are_the_protocols() {
    let measured = |left: u64, stopped: u64| {
        let heard = Heard {
            left_after: Some(Duration::from_millis(left)),
            stopped_after: Some(Duration::from_millis(stopped)),
            ..heard([initialized(&["text"]), frame("result", ",\"output\":\"x\"")].concat())
        };
        let reading = heard.read(Operation::Text, &ALL);
        reading
            .broken
            .iter()
            .map(|one| one.aspect)
            .collect::<Vec<_>>()
    };
    assert_eq!(measured(250, 250), []);
    assert_eq!(measured(251, 250), [Aspect::ExitTime]);
    assert_eq!(measured(250, 251), [Aspect::CancelTime]);
}

#[test]
fn a_process_left_behind_is_told() {
    let heard = Heard {
        descendants: 2,
        ..heard([initialized(&["text"]), frame("result", ",\"output\":\"x\"")].concat())
    };
    let reading = heard.read(Operation::Text, &ALL);
    assert_eq!(reading.broken.len(), 1);
    assert!(reading.broken[0].text.contains("2 had to be killed"));
}

#[test]
fn only_initialized_and_progress_leave_a_session_open() {
    assert!(!ends_session(initialized(&["text"]).trim_end().as_bytes()));
    assert!(!ends_session(
        progress(1, "working", "").trim_end().as_bytes()
    ));
    for line in [result().trim_end().as_bytes(), b"", b"banner", b"{}"] {
        assert!(ends_session(line));
    }
}

#[test]
fn a_repeated_session_need_not_repeat_its_progress() {
    let one = [
        initialized(&["text"]),
        progress(1, "working", "a"),
        result(),
    ]
    .concat();
    let other = [initialized(&["text"]), result()].concat();
    assert_eq!(fixed_lines(one.as_bytes()), fixed_lines(other.as_bytes()));
    assert_eq!(fixed_lines(one.as_bytes()).len(), 2);
}

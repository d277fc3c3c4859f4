//! Terminal frames: what each operation may end with, and what a report or subject may hold.

use forge_plugin_protocol::{Capability, Conclusion, FailureCategory, Outcome, Violation};

use crate::support::{ALL, Driver, frame};

use Capability::{AgentReport, CommitSubject, Text, WorkspaceEdit};

fn end(mut driver: Driver, kind: &str, body: &str) -> Result<Conclusion, Violation> {
    driver.write(frame(kind, body));
    match driver.end() {
        Conclusion::Broken(error) => Err(error.violation().clone()),
        conclusion => Ok(conclusion),
    }
}

fn workspace(selection: &[Capability], body: &str) -> Result<Conclusion, Violation> {
    end(Driver::workspace().executing(selection), "result", body)
}

/// Reads a result in which everything is selected; returns subject and summary.
fn read(body: &str) -> Result<(Option<String>, Option<String>), Violation> {
    match workspace(ALL, body)? {
        Conclusion::Completed(Outcome::Workspace { subject, report }) => {
            let subject = subject.map(|subject| subject.to_string());
            Ok((subject, report.map(|report| report.summary().to_owned())))
        }
        other => panic!("{other:?}"),
    }
}

fn report(summary: &str, changes: &[&str]) -> String {
    let summary = serde_json::to_string(summary).unwrap();
    let changes = serde_json::to_string(changes).unwrap();
    format!(r#","summary":{summary},"changes":{changes}"#)
}

#[test]
fn output_of_65536_bytes_passes_and_one_more_fails() {
    let sized = |text: String| {
        end(
            Driver::text().executing(&[Text]),
            "result",
            &format!(r#","output":"{text}""#),
        )
    };
    assert!(sized(String::new()).is_ok(), "empty output is output");
    assert!(sized("x".repeat(65_536)).is_ok());
    assert!(sized("é".repeat(32_768)).is_ok());
    assert!(matches!(
        sized("x".repeat(65_537)),
        Err(Violation::Field { .. })
    ));
    assert!(matches!(
        sized("é".repeat(32_768) + "x"),
        Err(Violation::Field { .. })
    ));
    // The length is that of the text, not of its spelling.
    assert!(sized(r"\u0041".repeat(65_536)).is_ok());
}

#[test]
fn a_workspace_result_may_be_empty_of_everything() {
    let legacy = Conclusion::Completed(Outcome::Workspace {
        subject: None,
        report: None,
    });
    assert_eq!(workspace(&[WorkspaceEdit], ""), Ok(legacy.clone()));
    assert_eq!(workspace(ALL, ""), Ok(legacy));
}

#[test]
fn subject_without_report_stays_valid() {
    let body = r#","commit_subject":"feat: x""#;
    assert_eq!(read(body), Ok((Some("feat: x".to_owned()), None)));
    assert!(workspace(&[WorkspaceEdit, CommitSubject], body).is_ok());
}

#[test]
fn subject_and_report_need_their_capability_even_when_null() {
    for (what, body) in [
        ("commit_subject", r#","commit_subject":"s""#),
        ("commit_subject", r#","commit_subject":null"#),
        ("summary", r#","summary":"s","changes":["c"]"#),
        ("summary", r#","summary":null"#),
        ("changes", r#","changes":null"#),
    ] {
        let capability = if what == "commit_subject" {
            CommitSubject
        } else {
            AgentReport
        };
        let refused = Err(Violation::NotNegotiated { what, capability });
        assert_eq!(workspace(&[WorkspaceEdit], body), refused, "{body}");
    }
    assert!(workspace(&[WorkspaceEdit, AgentReport], r#","commit_subject":"s""#).is_err());
    assert!(workspace(&[WorkspaceEdit, CommitSubject], &report("s", &["c"])).is_err());
}

#[test]
fn a_report_has_both_parts_or_neither() {
    assert_eq!(read(&report("s", &["c"])), Ok((None, Some("s".to_owned()))));
    assert_eq!(read(r#","summary":"s""#), Err(Violation::HalfReport));
    assert_eq!(read(r#","changes":["c"]"#), Err(Violation::HalfReport));
    for body in [
        r#","summary":null,"changes":null"#,
        r#","summary":"s","changes":null"#,
        r#","summary":null,"changes":["c"]"#,
        r#","summary":"s","changes":"c""#,
        r#","summary":"s","changes":[null]"#,
        r#","summary":["s"],"changes":["c"]"#,
        r#","summary":"s","changes":["c"],"summary2":"s""#,
    ] {
        assert!(matches!(read(body), Err(Violation::Field { .. })), "{body}");
    }
    assert!(matches!(
        read(r#","summary":"s","summary":"s","changes":["c"]"#),
        Err(Violation::Json(_))
    ));
}

#[test]
fn report_sizes_are_bytes_and_counts() {
    let summary = |bytes: usize| read(&report(&"é".repeat(bytes / 2), &["c"]));
    assert!(summary(1024).is_ok());
    assert!(read(&report(&("é".repeat(512) + "x"), &["c"])).is_err());
    assert!(read(&report("", &["c"])).is_err());
    let change = |text: String| read(&report("s", &["c", &text]));
    assert!(change("x".repeat(256)).is_ok());
    assert!(change("x".repeat(257)).is_err());
    assert!(change(String::new()).is_err());
    assert!(read(&report("s", &["c"; 12])).is_ok());
    assert!(read(&report("s", &["c"; 13])).is_err());
    assert!(read(&report("s", &[])).is_err());
}

/// White space, controls, format characters and separators that no trimmed line may have.
const HIDDEN: [char; 14] = [
    '\0',
    '\u{1f}',
    '\u{7f}',
    '\u{85}',
    '\u{9f}',
    '\u{ad}',
    '\u{200b}',
    '\u{200f}',
    '\u{202e}',
    '\u{2066}',
    '\u{feff}',
    '\u{2028}',
    '\u{2029}',
    '\u{e0001}',
];

#[test]
fn report_strings_are_trimmed_and_without_control_or_format_characters() {
    for c in HIDDEN {
        assert!(
            read(&report(&format!("a{c}b"), &["c"])).is_err(),
            "summary {c:?}"
        );
        assert!(
            read(&report("s", &["c", &format!("a{c}b")])).is_err(),
            "change {c:?}"
        );
    }
    for bad in [" a", "a ", "\u{a0}a", "a\u{3000}", "\u{2003}", "\ta", "a\n"] {
        assert!(read(&report(bad, &["c"])).is_err(), "summary {bad:?}");
        assert!(read(&report("s", &[bad])).is_err(), "change {bad:?}");
    }
    for good in [
        "a b",
        "a\u{a0}b",
        "a\u{e000}b",
        "a\u{378}b",
        "é€😀",
        "<b>",
        "-rf",
        "#1",
    ] {
        assert!(read(&report(good, &[good])).is_ok(), "{good:?}");
    }
}

#[test]
fn subject_is_one_trimmed_line_of_1_to_256_bytes() {
    let subject = |text: &str| {
        read(&format!(
            r#","commit_subject":{}"#,
            serde_json::to_string(text).unwrap()
        ))
    };
    assert!(subject(&"x".repeat(256)).is_ok());
    assert!(subject(&"é".repeat(128)).is_ok());
    assert!(subject(&"x".repeat(257)).is_err());
    assert!(subject("").is_err());
    for c in HIDDEN {
        assert!(subject(&format!("a{c}b")).is_err(), "{c:?}");
    }
    for bad in [
        " a",
        "a ",
        "\u{a0}a",
        "a\u{2003}",
        "first\nsecond",
        "first\r\nsecond",
        "first\u{2028}second",
    ] {
        assert!(subject(bad).is_err(), "{bad:?}");
    }
    for good in ["a", "-n", "#1", "\"quoted\" 'x'", "$(date)", "a\u{a0}b"] {
        assert_eq!(subject(good), Ok((Some(good.to_owned()), None)));
    }
}

#[test]
fn failure_categories_are_four() {
    for category in FailureCategory::ALL {
        let body = format!(r#","category":"{category}""#);
        let ended = end(Driver::text().executing(&[Text]), "failure", &body);
        assert_eq!(ended, Ok(Conclusion::Reported(category)));
    }
    for body in [
        r#","category":"other""#,
        r#","category":"Cancelled""#,
        r#","category":null"#,
        r#","category":1"#,
        "",
        r#","category":"cancelled","reason":"x""#,
    ] {
        let ended = end(Driver::text().executing(&[Text]), "failure", body);
        assert!(
            matches!(
                ended,
                Err(Violation::Field {
                    kind: "failure",
                    ..
                })
            ),
            "{body}"
        );
    }
}

#[test]
fn progress_stages_are_three_in_any_order() {
    let mut driver = Driver::text().executing(ALL);
    for (index, stage) in ["finalizing", "started", "working", "started"]
        .iter()
        .enumerate()
    {
        let sequence = index + 1;
        driver.write(frame(
            "progress",
            &format!(r#","sequence":{sequence},"stage":"{stage}","text":"""#),
        ));
        assert!(!driver.session.is_finished(), "{stage}");
    }
    for body in [
        r#","sequence":5,"stage":"analyzing","text":"x""#,
        r#","sequence":5,"stage":null,"text":"x""#,
        r#","sequence":5,"stage":"working""#,
        r#","sequence":5,"text":"x""#,
        r#","stage":"working","text":"x""#,
        r#","sequence":1,"stage":"working","text":null"#,
        r#","sequence":1,"stage":"working","text":"x","percent":1"#,
    ] {
        let mut driver = Driver::text().executing(ALL);
        driver.write(frame("progress", body));
        assert!(
            matches!(
                driver.violation(),
                Violation::Field {
                    kind: "progress",
                    ..
                }
            ),
            "{body}"
        );
    }
}

//! The limits of a task, and what each origin may say.

use super::*;

const SHA: &str = "1111111111111111111111111111111111111111";

fn fields(text: &str) -> Fields {
    parse_object(
        text.as_bytes(),
        &Limits {
            bytes: 64 << 20,
            depth: 8,
        },
        Layout::Spaced,
    )
    .unwrap()
    .fields("task")
}

fn lease(text: &str) -> Result<CodingTask, FieldError> {
    CodingTask::from_fields(fields(text))
}

fn submission(text: &str) -> Result<CodingTask, FieldError> {
    let mut fields = fields(text);
    let task = CodingTask::take(&mut fields, TaskOrigin::Submission)?;
    fields.end()?;
    Ok(task)
}

fn with(instruction: &str, tests: &str, rest: &str) -> String {
    format!(
        r#"{{"repository_id":"r","base_sha":"{SHA}","instruction":"{instruction}","tests":{tests}{rest}}}"#
    )
}

#[test]
fn null_tests_are_kept_as_null() {
    let task = lease(&with("fix", "null", "")).unwrap();
    assert_eq!(task.tests().len(), 0);
    assert!(task.canonical().contains(r#""tests":null"#));
    assert!(
        lease(&with("fix", "[]", ""))
            .unwrap()
            .canonical()
            .contains(r#""tests":[]"#)
    );
    assert_eq!(CodingTask::from_canonical(&task.canonical()).unwrap(), task);
}

#[test]
fn a_lease_names_tests_and_a_submission_may_leave_them_out() {
    let text = format!(r#"{{"repository_id":"r","base_sha":"{SHA}","instruction":"fix"}}"#);
    assert!(lease(&text).is_err());
    assert!(
        submission(&text)
            .unwrap()
            .canonical()
            .contains(r#""tests":null"#)
    );
    assert!(submission(&with("fix", "null", "")).is_ok());
}

#[test]
fn only_a_lease_may_name_a_prepared_repository() {
    let text = with("fix", "null", r#","repository":"/srv/r""#);
    assert_eq!(lease(&text).unwrap().repository(), Some("/srv/r"));
    assert!(
        submission(&text)
            .unwrap_err()
            .to_string()
            .contains("repository")
    );
    for bad in [r#""srv/r""#, r#""""#, r#""/a\u0000b""#, "null"] {
        assert!(
            lease(&with("fix", "null", &format!(r#","repository":{bad}"#))).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn the_instruction_is_bounded_in_bytes() {
    assert!(lease(&with(&"é".repeat(32_768), "null", "")).is_ok());
    assert!(lease(&with(&("é".repeat(32_768) + "x"), "null", "")).is_err());
    assert!(lease(&with("x", "null", "")).is_ok());
    assert!(lease(&with("", "null", "")).is_err());
}

#[test]
fn checks_are_bounded_in_number_and_size() {
    let checks = |count: usize| format!("[{}]", vec![r#"["true"]"#; count].join(","));
    assert_eq!(
        lease(&with("fix", &checks(32), "")).unwrap().tests().len(),
        32
    );
    assert!(lease(&with("fix", &checks(33), "")).is_err());
    let argv = |count: usize| format!("[[{}]]", vec![r#""a""#; count].join(","));
    assert!(lease(&with("fix", &argv(64), "")).is_ok());
    assert!(lease(&with("fix", &argv(65), "")).is_err());
    assert!(lease(&with("fix", &argv(0), "")).is_err());
    let argument = |bytes: usize| format!(r#"[["a","{}"]]"#, "x".repeat(bytes));
    assert!(lease(&with("fix", &argument(4096), "")).is_ok());
    assert!(lease(&with("fix", &argument(4097), "")).is_err());
    for bad in [
        r#"[[""]]"#,
        r#"[["a\u0000"]]"#,
        r#"["a"]"#,
        r#"[[1]]"#,
        r#"[null]"#,
        "{}",
        r#""true""#,
    ] {
        assert!(lease(&with("fix", bad, "")).is_err(), "{bad}");
    }
    assert!(lease(&with("fix", r#"[["a",""]]"#, "")).is_ok());
}

#[test]
fn an_author_has_name_and_address() {
    let name = r#","commit_author_name":"Ada""#;
    let email = r#","commit_author_email":"ada@example.com""#;
    let task = lease(&with("fix", "null", &format!("{name}{email}"))).unwrap();
    assert_eq!(task.author().unwrap().name.as_ref() as &str, "Ada");
    assert_eq!(CodingTask::from_canonical(&task.canonical()).unwrap(), task);
    assert!(lease(&with("fix", "null", name)).is_err());
    assert!(lease(&with("fix", "null", email)).is_err());
    assert!(
        lease(&with(
            "fix",
            "null",
            &format!(r#"{name},"commit_author_email":"nobody""#)
        ))
        .is_err()
    );
}

#[test]
fn errors_name_the_field() {
    for (text, path) in [
        (with("fix", r#"[["a"],[1]]"#, ""), "task.tests[1][0]"),
        (with("fix", "null", r#","policy":1"#), "task.policy"),
        (with("fix", "null", "").replace(SHA, "zz"), "task.base_sha"),
        (
            with("fix", "null", "").replace(r#""r""#, "null"),
            "task.repository_id",
        ),
    ] {
        let error = lease(&text).unwrap_err().to_string();
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn a_submission_must_fit_into_a_lease_message() {
    // 32 checks of 64 arguments; each `<` takes six bytes in the message.
    let tests = |bytes: usize| {
        let argv = format!(
            "[\"a\",{}]",
            vec![format!("\"{}\"", "<".repeat(bytes)); 63].join(",")
        );
        format!("[{}]", vec![argv; 32].join(","))
    };
    assert!(submission(&with("fix", &tests(80), "")).is_ok());
    let refused = submission(&with("fix", &tests(90), ""))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("when it is encoded"), "{refused}");
}

#[test]
fn a_text_is_one_byte_at_least_and_what_a_plugin_can_take_at_most() {
    assert_eq!(
        Work::text("x".repeat(MAX_INPUT_BYTES)).unwrap().kind(),
        JobKind::Legacy
    );
    assert!(Work::text("x".repeat(MAX_INPUT_BYTES + 1)).is_err());
    assert!(Work::text(String::new()).is_err());
}

#[test]
fn another_spelling_of_a_stored_task_is_refused() {
    let text = with("fix", "null", "");
    assert!(CodingTask::from_canonical(&text).is_ok());
    assert!(CodingTask::from_canonical(&text.replace(":null", ": null")).is_err());
    assert!(CodingTask::from_canonical(&text.replace("fix", "f\\u0069x")).is_err());
}

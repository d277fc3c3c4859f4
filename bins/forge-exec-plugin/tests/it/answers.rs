//! What the command says about its edit, and what the plugin makes of it.

use serde_json::json;
use test_case::test_case;

use crate::support::{OFFER, Place, Session};

const BOTH: &str = "echo 'feat: add it' >\"$FORGE_SUBJECT_FILE\"\n\
    printf '{\\n \"summary\": \"Added it.\",\\n \"changes\": [\"one <file>\", \"two\"]\\n}\\n' >\"$FORGE_REPORT_FILE\"";

#[test]
fn subject_and_report_go_into_the_result() {
    let place = Place::new();
    let end = place.run(&["--", &place.script(BOTH)]);
    assert_eq!(
        end.answer(),
        json!({"type": "result", "commit_subject": "feat: add it", "summary": "Added it.", "changes": ["one <file>", "two"]}),
        "{}",
        end.stderr
    );
    assert_eq!((end.status.code(), end.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        std::fs::read_dir(place.temporary()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn what_was_not_negotiated_is_not_said() {
    let place = Place::new();
    let command = place.script(BOTH);
    let run = |offer: &[&str]| {
        Session::start(
            &place,
            &["--", &command],
            offer,
            60_000,
            "edit",
            &place.workspace(),
        )
        .end()
        .answer()
    };
    assert_eq!(run(&["workspace_edit"]), json!({"type": "result"}));
    assert_eq!(
        run(&["workspace_edit", "commit_subject"]),
        json!({"type": "result", "commit_subject": "feat: add it"})
    );
    assert_eq!(
        run(&["agent_report", "workspace_edit"]),
        json!({"type": "result", "summary": "Added it.", "changes": ["one <file>", "two"]})
    );
}

#[test]
fn the_selection_has_the_workers_order() {
    let place = Place::new();
    let session = place.session(&["--", "/bin/true"]);
    assert_eq!(session.initialized["capabilities"], json!(OFFER));
    session.end();
}

#[test_case("printf ' x' >\"$FORGE_SUBJECT_FILE\"", "FORGE_SUBJECT_FILE"; "a_subject_that_is_not_trimmed")]
#[test_case("printf 'a\\nb\\n' >\"$FORGE_SUBJECT_FILE\"", "FORGE_SUBJECT_FILE"; "a_subject_of_two_lines")]
#[test_case("printf '%0257d' 0 >\"$FORGE_SUBJECT_FILE\"", "FORGE_SUBJECT_FILE"; "a_subject_of_257_bytes")]
#[test_case(": >\"$FORGE_SUBJECT_FILE\"", "FORGE_SUBJECT_FILE"; "an_empty_subject")]
#[test_case("mkdir \"$FORGE_SUBJECT_FILE\"", "private directory"; "a_subject_that_is_a_directory")]
#[test_case("mkfifo \"$FORGE_SUBJECT_FILE\"", "private directory"; "a_subject_that_would_block")]
#[test_case("echo '{}' >\"$FORGE_REPORT_FILE\"", "summary"; "a_report_without_its_fields")]
#[test_case("echo '{\"summary\":\"s\",\"changes\":[]}' >\"$FORGE_REPORT_FILE\"", "1 to 12"; "a_report_without_changes")]
#[test_case("echo '{\"summary\":\" s\",\"changes\":[\"c\"]}' >\"$FORGE_REPORT_FILE\"", "summary"; "a_summary_that_is_not_trimmed")]
#[test_case("echo '{\"summary\":\"s\",\"changes\":[\"c\"],\"by\":\"me\"}' >\"$FORGE_REPORT_FILE\"", "by"; "a_report_with_a_field_too_many")]
#[test_case("head -c 40000 /dev/zero >\"$FORGE_REPORT_FILE\"", "private directory"; "a_report_that_is_too_long")]
fn a_malformed_file_fails_the_operation_and_says_why(body: &str, reason: &str) {
    let place = Place::new();
    place
        .run(&["--", &place.script(body)])
        .failed("execution_failed", reason);
    assert_eq!(
        std::fs::read_dir(place.temporary()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn output_of_the_command_goes_nowhere() {
    let place = Place::new();
    let end = place.run(&[
        "--",
        &place.script("head -c 2000000 /dev/zero | tr '\\0' x; echo private >&2"),
    ]);
    assert_eq!(end.answer(), json!({"type": "result"}));
    assert_eq!(end.stderr, "");
}

#[test]
fn progress_has_fixed_texts() {
    let place = Place::new();
    let end = place.run(&["--", "/bin/true"]);
    let seen: Vec<_> = end
        .progress
        .iter()
        .map(|frame| (&frame["sequence"], &frame["stage"], &frame["text"]))
        .collect();
    let expected = [
        (json!(1), json!("started")),
        (json!(2), json!("working")),
        (json!(3), json!("finalizing")),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(sequence, stage)| (sequence, stage, stage))
        .collect();
    assert_eq!(seen, expected);
}

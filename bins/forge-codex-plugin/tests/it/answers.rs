//! The final message, and what the plugin makes of it.

use serde_json::json;
use test_case::test_case;

use crate::fake::{e2e, place};
use crate::support::{OFFER, Place, Session};

const DONE: &str = "printf '%s\\n' \"$good\" >\"$final\"";

fn nothing_is_left(place: &Place) {
    assert_eq!(std::fs::read_dir(place.temporary()).unwrap().count(), 0);
}

#[test]
fn the_edit_is_in_the_workspace_and_subject_and_report_in_the_result() {
    let mut place = place("");
    place.set("CODEX_BIN", e2e("fake-codex.py"));
    let end = place.run(&[]);
    assert_eq!(
        end.answer(),
        json!({
            "type": "result", "commit_subject": "feat: add the answer", "summary": "Added the answer.",
            "changes": ["answer.txt holds the answer"]
        }),
        "{}",
        end.stderr
    );
    assert_eq!((end.status.code(), end.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("answer.txt")).unwrap(),
        "conformance\n"
    );
    nothing_is_left(&place);
}

#[test]
fn the_selection_has_the_workers_order_and_no_text() {
    let place = place(DONE);
    let all: Vec<&str> = ["text"].into_iter().chain(OFFER).collect();
    let session = Session::start(&place, &[], &all, 60_000, "edit", &place.workspace());
    assert_eq!(session.initialized["capabilities"], json!(OFFER));
    session.end();
}

#[test]
fn what_was_not_selected_is_left_out() {
    let place = place(DONE);
    let run = |offer: &[&str]| {
        Session::start(&place, &[], offer, 60_000, "edit", &place.workspace())
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

#[test_case(":", "it is empty"; "none_at_all")]
#[test_case("echo done >\"$final\"", "final message"; "prose")]
#[test_case("printf '%s' '{\"commit_subject\":' >\"$final\"", "final message"; "half_an_object")]
#[test_case("echo '{\"commit_subject\":\"x\",\"summary\":\"s\"}' >\"$final\"", "changes"; "a_missing_field")]
#[test_case("echo '{\"commit_subject\":\"x\"}' >\"$final\"", "summary"; "the_shape_of_earlier_times")]
#[test_case("echo '{\"commit_subject\":\"x\",\"summary\":\"s\",\"changes\":[\"c\"],\"files\":[]}' >\"$final\"", "files"; "a_field_too_many")]
#[test_case("echo '{\"commit_subject\":\"x \",\"summary\":\"s\",\"changes\":[\"c\"]}' >\"$final\"", "commit_subject"; "a_subject_that_is_not_trimmed")]
#[test_case("echo '{\"commit_subject\":\"x\",\"summary\":\"\",\"changes\":[\"c\"]}' >\"$final\"", "summary"; "an_empty_summary")]
#[test_case("rm \"$final\"", "no longer a regular file"; "a_removed_file")]
#[test_case("echo \"$good\" >good.json; ln -sf \"$PWD/good.json\" \"$final\"", "no longer a regular file"; "a_link")]
#[test_case("rm \"$final\"; mkfifo \"$final\"", "no longer a regular file"; "a_fifo")]
fn a_final_message_that_breaks_a_rule_fails_the_operation(body: &str, reason: &str) {
    let place = place(body);
    place.run(&[]).failed("execution_failed", reason);
    nothing_is_left(&place);
}

#[test]
fn a_final_message_is_judged_whether_or_not_it_is_sent() {
    let place = place("echo '{}' >\"$final\"");
    let end = Session::start(
        &place,
        &[],
        &["workspace_edit"],
        60_000,
        "edit",
        &place.workspace(),
    )
    .end();
    end.failed("execution_failed", "commit_subject");
}

#[test]
fn a_final_message_of_27648_bytes_passes_and_one_more_fails() {
    let long = |bytes: usize| {
        place(&format!(
            "{DONE}\nhead -c {bytes} /dev/zero | tr '\\0' ' ' >>\"$final\"\ntruncate -s {bytes} \"$final\""
        ))
    };
    assert_eq!(long(27_648).run(&[]).answer()["type"], "result");
    long(27_649).run(&[]).failed("execution_failed", "27648");
}

#[test]
fn progress_has_fixed_texts_and_the_output_of_the_cli_goes_nowhere() {
    let noise = "echo canary-out; echo canary-err >&2\n\
        head -c 10000000 /dev/zero | tr '\\0' x\n\
        head -c 10000000 /dev/zero | tr '\\0' y >&2\n";
    for (ending, code) in [(DONE, 0), ("exit 1", 1)] {
        let place = place(&format!("{noise}{ending}"));
        let end = place.run(&[]);
        let seen: Vec<_> = end
            .progress
            .iter()
            .map(|frame| {
                (
                    frame["stage"].as_str().unwrap(),
                    frame["text"].as_str().unwrap(),
                )
            })
            .collect();
        let all = [
            ("started", "started"),
            ("working", "working"),
            ("finalizing", "finalizing"),
        ];
        assert_eq!(seen, all[..3 - code], "{}", end.stderr);
        let everything = format!("{:?}{:?}{}", end.progress, end.terminal, end.stderr);
        for private in ["canary", "xxxx", "yyyy"] {
            assert!(!everything.contains(private), "{private}");
        }
    }
}

#[test]
fn error_items_and_notices_of_a_run_that_succeeds_count_for_nothing() {
    let place = place(&format!(
        "echo 'Reading prompt from stdin...' >&2\n\
         echo '{{\"type\":\"item.completed\",\"item\":{{\"type\":\"error\",\"message\":\"no\"}}}}'\n\
         echo '{{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}}' >&2\n{DONE}"
    ));
    assert_eq!(place.run(&[]).answer()["type"], "result");
}

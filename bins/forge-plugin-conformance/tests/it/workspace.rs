//! The same scenarios for a plugin that edits a workspace.

use std::path::PathBuf;

use test_case::test_case;

use crate::support::{failed, mutant, names, stdout, steady, tool};

/// The example as an editor: it writes the file that the valid session asks for.
const EDITOR: [(&str, &str); 7] = [
    (
        "SUPPORTED = (\"text\",)",
        "SUPPORTED = (\"workspace_edit\",)",
    ),
    (
        "\"execute\", \"operation\", \"input\")",
        "\"execute\", \"operation\", \"workspace\", \"instruction\", \"timeout_ms\")",
    ),
    (
        "frame[\"operation\"] == \"text\"",
        "frame[\"operation\"] == \"workspace_edit\"",
    ),
    (
        "type(frame[\"input\"]) is str",
        "type(frame[\"instruction\"]) is str",
    ),
    (
        "utf8_length(frame[\"input\"])",
        "utf8_length(frame[\"instruction\"])",
    ),
    (
        "return frame[\"input\"]",
        "open(frame[\"workspace\"] + \"/answer.txt\", \"w\").write(\"conformance\\n\")\n    return frame[\"instruction\"]",
    ),
    ("\"result\", output=output)", "\"result\")"),
];

/// The editor with its last but one or its last piece replaced.
fn editor(directory: &tempfile::TempDir, writes: &str, answers: &str) -> PathBuf {
    let mut edits = EDITOR;
    if !writes.is_empty() {
        edits[5].1 = writes;
    }
    if !answers.is_empty() {
        edits[6].1 = answers;
    }
    mutant(directory.path(), &edits)
}

#[test]
fn an_editor_that_keeps_the_rules_passes_everything() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = editor(&directory, "", "");
    let output = steady(&["-operation", "workspace_edit", plugin.to_str().unwrap()]);
    let report = stdout(&output);
    assert_eq!(failed(&report), names([]), "{report}");
    assert_eq!(report.lines().count(), 26);
    assert_eq!(output.status.code(), Some(0));
}

#[test_case("return frame[\"instruction\"]", "", "without changes"; "that_changes_nothing")]
#[test_case("", "\"result\", output=output)", "`output`"; "that_answers_with_text")]
#[test_case("", "\"result\", commit_subject=\"feat: x\")", "commit_subject"; "that_proposes_a_subject_without_selecting_it")]
#[test_case("", "\"failure\", category=\"incompatible\")", "category `incompatible`"; "that_reports_a_failure")]
fn an_editor_fails_the_valid_session(writes: &str, answers: &str, reason: &str) {
    let directory = tempfile::tempdir().unwrap();
    let plugin = editor(&directory, writes, answers);
    let output = steady(&[
        "--operation=workspace_edit",
        "--only",
        "valid-session",
        "--only",
        "wrong-id",
        plugin.to_str().unwrap(),
    ]);
    let report = stdout(&output);
    assert_eq!(failed(&report), names(["valid-session"]), "{report}");
    assert!(report.contains(reason), "{report}");
}

#[test]
fn a_text_plugin_is_no_editor() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = mutant(directory.path(), &[]);
    let output = tool([
        "--operation",
        "workspace_edit",
        "--only",
        "valid-session",
        "--only",
        "input-type",
        plugin.to_str().unwrap(),
    ]);
    assert_eq!(
        failed(&stdout(&output)),
        names(["valid-session", "input-type"])
    );
}

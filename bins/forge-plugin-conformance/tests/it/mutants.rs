//! The tool tests itself: plugins that break one rule each, and the lines that must say so.

use std::collections::BTreeSet;

use test_case::test_case;

use crate::support::{EXECUTES, REJECTIONS, failed, mutant, names, stdout, steady, tool};

/// Runs everything against a mutant and returns the failed lines.
fn caught(edits: &[(&str, &str)]) -> BTreeSet<String> {
    judged(edits, &[])
}

/// Runs a few lines against a mutant (none means all) and returns the failed ones.
fn judged(edits: &[(&str, &str)], lines: &[&str]) -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let plugin = mutant(directory.path(), edits);
    let only = lines.iter().flat_map(|line| ["--only", line]);
    let args: Vec<&str> = only.chain([plugin.to_str().unwrap()]).collect();
    let output = steady(&args);
    let report = stdout(&output);
    let verdicts = report.lines().filter(|line| !line.starts_with("    "));
    let expected = if lines.is_empty() { 26 } else { lines.len() };
    assert_eq!(verdicts.count(), expected, "{report}");
    let failed = failed(&report);
    let code = i32::from(!failed.is_empty());
    assert_eq!(output.status.code(), Some(code), "{report}");
    failed
}

#[test]
fn the_example_breaks_no_rule() {
    assert_eq!(caught(&[]), names([]));
}

#[test_case(
    &[("require(bare and not NOT_COMPACT.search(bare),", "bare or sys.exit(0)\n    require(not NOT_COMPACT.search(bare),")],
    &["blank-frame"]; "leaves_in_peace_on_a_blank_line")]
#[test_case(
    &[("raise ProtocolError(\"a frame is not JSON: %s\" % error)", "sys.exit(0)")],
    &["malformed-frame"]; "leaves_in_peace_on_malformed_json")]
#[test_case(
    &[("rb\"[^!-~]\"", "rb\"[^!-~\\x80-\\xff]\""), ("frame.decode(\"utf-8\")", "frame.decode(\"latin-1\")"),
      ("raise ProtocolError(\"a frame is not JSON: %s\" % error)", "return sys.exit(0) if b\"\\xff\" in frame else require(False, \"\")")],
    &["invalid-utf8"]; "leaves_in_peace_on_bytes_that_are_not_utf8")]
#[test_case(&[("rb\"[^!-~]\"", "rb\"[^!-~\\r]\"")], &["crlf-frame"]; "accepts_crlf")]
#[test_case(&[("rb\"[^!-~]\"", "rb\"[^!-~ ]\"")], &["non-compact-frame"]; "accepts_spaces")]
#[test_case(&[("[0-9a-f]{32}", "[0-9a-fA-F]{32}")], &["invalid-id"]; "accepts_an_upper_case_id")]
#[test_case(
    &[("type(one) is str and one in KNOWN", "type(one) is not str or one in KNOWN"),
      ("[one for one in SUPPORTED if one in offer]", "list(SUPPORTED)")],
    &["capability-type"]; "accepts_a_capability_that_is_no_text")]
#[test_case(
    &[("type(one) is str and one in KNOWN", "type(one) is str"),
      ("[one for one in SUPPORTED if one in offer]", "list(SUPPORTED)")],
    &["unsupported-capability"]; "accepts_an_unknown_capability")]
#[test_case(&[("len(set(offer)) == len(offer)", "True")], &["duplicate-capability"]; "accepts_a_capability_twice")]
#[test_case(
    &[("set(frame) == expected", "set(frame) >= expected")],
    &["unknown-field", "execute-unknown-field", "contradictory-execute"]; "accepts_unknown_fields")]
#[test_case(&[("object_pairs_hook=unique, ", "")], &["duplicate-field", "duplicate-execute"]; "accepts_a_field_twice")]
#[test_case(&[("frame.get(\"version\") == VERSION", "True")], &["unsupported-version"]; "accepts_any_version")]
#[test_case(&[("type(one) is int for one", "True for one")], &["limit-float"]; "accepts_a_float_limit")]
#[test_case(
    &[("type(limits) is dict and limits == LIMITS", "True"), ("type(one) is int for one", "type(one) in (int, bool) for one")],
    &["limit-bool"]; "accepts_a_boolean_limit")]
#[test_case(
    &[("type(limits) is dict and limits == LIMITS", "True"),
      ("type(one) is int for one", "type(one) is int or one != one for one"), (", parse_constant=refuse_constant", "")],
    &["non-standard-constant"]; "accepts_nan")]
#[test_case(&[("frame[\"id\"] == session", "True")], &["wrong-id"]; "accepts_another_session_id")]
#[test_case(&[("frame.get(\"type\") == kind", "True")], &["wrong-order"]; "accepts_frames_in_any_order")]
#[test_case(&[("frame[\"operation\"] == \"text\"", "True")], &["unsupported-operation"]; "accepts_any_operation")]
#[test_case(
    &[("require(type(frame[\"input\"]) is str,", "frame[\"input\"] = str(frame[\"input\"])\n    require(True,")],
    &["input-type"]; "accepts_a_number_as_input")]
#[test_case(
    &[("utf8_length(frame[\"input\"]) <= LIMITS[\"text_bytes\"]", "True")],
    &["oversized-input"]; "accepts_an_input_that_is_too_long")]
#[test_case(
    &[("require(line.endswith(b\"\\n\"), \"a frame is too long or lacks its LF\")",
       "len(line) <= LIMITS[\"frame_bytes\"] or sys.exit(0)\n    require(line.endswith(b\"\\n\"), \"\")")],
    &["oversized-frame"]; "leaves_in_peace_on_a_frame_that_is_too_long")]
#[test_case(
    &[("require(line.endswith(b\"\\n\"), \"a frame is too long or lacks its LF\")", "line = line.rstrip(b\"\\n\") + b\"\\n\"")],
    &["no-lf-frame"]; "accepts_a_frame_without_lf")]
fn a_mutant_is_caught_by_its_line(edits: &[(&str, &str)], lines: &[&str]) {
    // What such a mutant has in common with a right plugin is told by a line of each kind: a
    // session, a refusal without an answer and one after `initialized`.
    let controls = [
        "valid-session",
        "malformed-frame",
        "unsupported-operation",
        "input-type",
    ];
    let controls = controls.into_iter().filter(|name| !lines.contains(name));
    let all: Vec<&str> = lines.iter().copied().chain(controls).collect();
    assert_eq!(judged(edits, &all), names(lines.iter().copied()));
}

#[test]
fn c01_leaving_with_success_on_bad_input_fails_every_rejection() {
    assert_eq!(caught(&[("return 2\n", "return 0\n")]), names(REJECTIONS));
}

#[test]
fn c01_c02_a_failure_frame_on_bad_input_fails_every_rejection() {
    let edit = (
        "        return 2\n",
        "        write_frame(sys.stdout.buffer, \"0123456789abcdef0123456789abcdef\", \"failure\", category=\"invalid_request\")\n        return 2\n",
    );
    assert_eq!(caught(&[edit]), names(REJECTIONS));
}

#[test]
fn a_banner_fails_every_line() {
    let edit = (
        "def main():\n",
        "def main():\n    print(\"ready\", flush=True)\n",
    );
    let mut all = names(REJECTIONS);
    all.insert("valid-session".to_owned());
    assert_eq!(caught(&[edit]), all);
}

#[test_case("capabilities=selected", "capabilities=selected + [\"progress\"]"; "selects_what_was_not_offered")]
#[test_case("capabilities=selected", "capabilities=[]"; "selects_nothing")]
#[test_case("\"initialized\", capabilities=selected", "\"initialised\", capabilities=selected"; "misspells_the_type")]
fn c02_a_wrong_initialized_fails_the_session_and_every_execute(from: &str, to: &str) {
    let mut lines = names(EXECUTES);
    lines.insert("valid-session".to_owned());
    assert_eq!(caught(&[(from, to)]), lines);
}

#[test_case("output=output)\n", "output=output)\n        stdout.write(b\"\\n\")\n        stdout.flush()\n"; "writes_after_the_result")]
#[test_case("        return 2\n    return 0\n", "        return 2\n    return 3\n"; "leaves_with_an_error_after_the_result")]
#[test_case("output = read_execute(stdin, session).upper()", "output = read_execute(stdin, session)[:0]"; "answers_with_nothing")]
#[test_case("output=output)\n", "result=output)\n"; "misspells_a_field_of_the_result")]
#[test_case("        return 2\n    return 0\n", "        return 2\n    import time\n    time.sleep(5)\n    return 0\n"; "lingers_after_the_result")]
fn c08_a_wrong_end_fails_the_valid_session_alone(from: &str, to: &str) {
    let lines = ["valid-session", "blank-frame", "duplicate-execute"];
    assert_eq!(judged(&[(from, to)], &lines), names(["valid-session"]));
}

#[test]
fn c01_hanging_on_bad_input_fails_in_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = mutant(
        directory.path(),
        &[(
            "        return 2\n",
            "        import time\n        time.sleep(600)\n",
        )],
    );
    let output = tool([
        "--reject-timeout".as_ref(),
        "300ms".as_ref(),
        "--only".as_ref(),
        "blank-frame".as_ref(),
        plugin.as_os_str(),
    ]);
    let report = stdout(&output);
    assert_eq!(failed(&report), names(["blank-frame"]));
    assert!(
        report.contains("within 300ms of end of input, still running"),
        "{report}"
    );
}

#[test]
fn c09_a_descendant_that_holds_the_output_fails_every_line() {
    let edit = (
        "def main():\n",
        "def main():\n    import subprocess\n    subprocess.Popen([\"sleep\", \"600\"])\n",
    );
    let mut all = names(REJECTIONS);
    all.insert("valid-session".to_owned());
    assert_eq!(caught(&[edit]), all);
}

#[test]
fn a_descendant_with_its_own_output_is_killed_and_forgiven() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let spawn = format!(
        "def main():\n    import subprocess\n    child = subprocess.Popen([\"sleep\", \"600\"], start_new_session=True,\n        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n    print(child.pid, file=open({:?}, \"a\"))\n",
        pids.display().to_string()
    );
    let plugin = mutant(directory.path(), &[("def main():\n", &spawn)]);
    let lines = ["blank-frame", "wrong-id", "no-lf-frame"];
    let only = lines.iter().flat_map(|line| ["--only", line]);
    let output = tool(only.chain([plugin.to_str().unwrap()]));
    assert_eq!(failed(&stdout(&output)), names([]));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 3);
    for pid in pids.lines() {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(
            !command.starts_with(b"sleep"),
            "process {pid} outlived the tool"
        );
    }
}

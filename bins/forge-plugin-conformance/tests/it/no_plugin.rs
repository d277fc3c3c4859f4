//! What is no plugin fails every line, whatever a rejection may look like from outside.

use std::path::Path;

use test_case::test_case;

use crate::support::{executable, failed, stdout, tool};

/// Runs everything against a target that can pass nothing, and returns the report.
fn all_fail(target: &Path) -> String {
    let output = tool([target.as_os_str()]);
    let report = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(failed(&report).len(), 26, "{report}");
    report
}

/// That every failure gives this reason.
fn each_says(report: &str, part: &str) {
    assert_eq!(
        report
            .lines()
            .filter(|line| line.starts_with("    ") && line.contains(part))
            .count(),
        26,
        "{report}"
    );
}

#[test]
fn a_path_to_nothing() {
    let directory = tempfile::tempdir().unwrap();
    each_says(
        &all_fail(&directory.path().join("absent")),
        "does not exist",
    );
}

#[test]
fn a_directory() {
    let directory = tempfile::tempdir().unwrap();
    each_says(&all_fail(directory.path()), "it is a directory");
}

#[test]
fn a_file_that_may_not_be_executed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    each_says(&all_fail(&file), "no execute permission");
}

#[test]
fn a_script_whose_interpreter_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    executable(&file, "#!/no/such/interpreter\n");
    each_says(&all_fail(&file), "/no/such/interpreter");
}

#[test]
fn a_script_whose_interpreter_env_does_not_find() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    executable(&file, "#!/usr/bin/env no-such-interpreter\n");
    let report = all_fail(&file);
    assert!(report.contains("does not seem to start"), "{report}");
    assert!(report.contains("no-such-interpreter"), "{report}");
}

#[test]
fn an_empty_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    executable(&file, "");
    each_says(&all_fail(&file), "the file is empty");
}

#[test]
fn a_name_that_is_not_in_the_path() {
    each_says(
        &all_fail(Path::new("no-such-plugin-in-any-path")),
        "no-such-plugin-in-any-path",
    );
}

#[test_case("/bin/true")]
#[test_case("/bin/cat")]
fn a_program_that_does_something_else(program: &str) {
    all_fail(Path::new(program));
}

/// The words that lines of a report begin with, by name.
fn strict(target: &Path) -> Vec<(String, String)> {
    let report = stdout(&tool(["--strict".as_ref(), target.as_os_str()]));
    report
        .lines()
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_once(' '))
        .map(|(word, name)| (word.to_owned(), name.to_owned()))
        .collect()
}

#[test_case("/bin/true")]
#[test_case("/bin/cat")]
#[test_case("/no/such/plugin")]
fn strict_lets_nothing_of_it_pass(program: &str) {
    let lines = strict(Path::new(program));
    let passed: Vec<_> = lines.iter().filter(|(word, _)| word == "PASS").collect();
    assert!(passed.is_empty(), "{passed:?}");
    // What was not selected is no excuse for a program that selects nothing at all.
    let skipped = lines.iter().filter(|(word, _)| word == "SKIP");
    let about = ["workspace-", "instruction-", "timeout-"];
    for (_, name) in skipped {
        assert!(about.iter().any(|start| name.starts_with(start)), "{name}");
    }
}

#[test]
fn a_program_that_always_refuses_leads_no_session() {
    let lines = strict(Path::new("/bin/false"));
    let sessions = lines
        .iter()
        .skip_while(|(_, name)| name != "keys-reordered");
    let (mut count, mut odd) = (0, Vec::new());
    for (word, name) in sessions {
        count += 1;
        odd.extend((word != "FAIL").then_some(name));
    }
    assert!(count > 25);
    assert!(odd.is_empty(), "{odd:?}");
}

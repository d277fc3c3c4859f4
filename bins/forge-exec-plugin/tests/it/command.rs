//! What the command gets: instruction, workspace, environment, and from where it is taken.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{OFFER, Place, Session, script};

#[test]
fn it_runs_in_the_workspace_with_the_instruction_on_its_input() {
    let place = Place::new();
    let command = place.script("cat >instruction.txt; pwd -P >where.txt");
    let instruction = "add \"tests\"\nand <docs> — größer ✓\n";
    let session = Session::start(
        &place,
        &["--", &command],
        &OFFER,
        60_000,
        instruction,
        &place.workspace(),
    );
    let end = session.end();
    assert_eq!(end.answer(), json!({"type": "result"}), "{}", end.stderr);
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("instruction.txt")).unwrap(),
        instruction
    );
    let here = std::fs::read_to_string(place.workspace().join("where.txt")).unwrap();
    assert_eq!(
        here.trim_end(),
        place.workspace().canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn the_longest_instruction_arrives_whole_and_need_not_be_read() {
    let place = Place::new();
    let instruction = "x".repeat(65_536);
    let reads = place.script("wc -c >count.txt");
    let start = |command: &str| {
        Session::start(
            &place,
            &["--", command],
            &OFFER,
            60_000,
            &instruction,
            &place.workspace(),
        )
    };
    assert_eq!(start(&reads).end().answer(), json!({"type": "result"}));
    let count = std::fs::read_to_string(place.workspace().join("count.txt")).unwrap();
    assert_eq!(count.trim(), "65536");
    let ignores = place.script("exit 0");
    assert_eq!(start(&ignores).end().answer(), json!({"type": "result"}));
}

#[test]
fn it_gets_the_plugins_environment_and_three_variables() {
    let mut place = Place::new();
    place.set("FORGE_TEST_CANARY", "passed on");
    let command = place.script(&format!(
        "printf '%s\\n' \"$FORGE_TEST_CANARY\" \"$FORGE_WORKSPACE\" \"$FORGE_SUBJECT_FILE\" \"$FORGE_REPORT_FILE\" >{0:?}\n\
         stat -c %a \"$(dirname \"$FORGE_SUBJECT_FILE\")\" >>{0:?}\n\
         ls -A \"$(dirname \"$FORGE_SUBJECT_FILE\")\" >>{0:?}",
        place.seen()
    ));
    assert_eq!(
        place.run(&["--", &command]).answer(),
        json!({"type": "result"})
    );
    let seen = std::fs::read_to_string(place.seen()).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(
        lines.len(),
        5,
        "the private directory is empty at first: {seen}"
    );
    assert_eq!(lines[0], "passed on");
    assert_eq!(lines[1], place.workspace().to_str().unwrap());
    let temporary = place.temporary().canonicalize().unwrap();
    for file in [lines[2], lines[3]] {
        assert!(file.starts_with(temporary.to_str().unwrap()), "{file}");
        assert!(
            !file.starts_with(place.workspace().to_str().unwrap()),
            "{file}"
        );
    }
    assert_eq!(lines[4], "700");
    assert_eq!(
        std::fs::read_dir(place.temporary()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn its_arguments_are_passed_as_they_are() {
    let place = Place::new();
    let command = place.script(&format!("printf '%s|' \"$@\" >{:?}", place.seen()));
    place.run(&[
        "--signal", "TERM", "--", &command, "--signal", "HUP", "a b", "", "--",
    ]);
    assert_eq!(
        std::fs::read_to_string(place.seen()).unwrap(),
        "--signal|HUP|a b||--|"
    );
}

#[test]
fn a_relative_command_is_never_taken_from_the_workspace() {
    let place = Place::new();
    script(
        &place.start().join("agent.sh"),
        &format!("echo start >{:?}", place.seen()),
    );
    script(
        &place.workspace().join("agent.sh"),
        &format!("echo workspace >{:?}", place.seen()),
    );
    assert_eq!(
        place.run(&["--", "./agent.sh"]).answer(),
        json!({"type": "result"})
    );
    assert_eq!(std::fs::read_to_string(place.seen()).unwrap(), "start\n");
    script(&place.workspace().join("only-here.sh"), "exit 0");
    place
        .run(&["--", "./only-here.sh"])
        .failed("execution_failed", "only-here.sh");
    place
        .run(&["--", "only-here.sh"])
        .failed("execution_failed", "only-here.sh");
}

#[test]
fn a_command_that_cannot_start_says_why() {
    let place = Place::new();
    place
        .run(&["--", "/no/such/command"])
        .failed("execution_failed", "`/no/such/command` does not exist");
    let file = place.script("exit 0");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    place
        .run(&["--", &file])
        .failed("execution_failed", "no execute permission");
}

#[test]
fn a_workspace_that_is_none_is_an_invalid_request() {
    let place = Place::new();
    let missing = place.workspace().join("missing");
    let session = Session::start(
        &place,
        &["--", "/bin/true"],
        &OFFER,
        60_000,
        "edit",
        &missing,
    );
    session
        .end()
        .failed("invalid_request", "missing` is no directory");
}

#[test]
fn private_files_are_never_put_into_the_workspace() {
    let place = Place::new();
    std::fs::remove_dir(place.temporary()).unwrap();
    let inside = place.workspace().join("tmp");
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(&inside, place.temporary()).unwrap();
    place
        .run(&["--", "/bin/true"])
        .failed("execution_failed", "lies inside the workspace");
}

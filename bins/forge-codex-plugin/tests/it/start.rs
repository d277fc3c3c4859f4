//! What the CLI gets, and from where it is taken.

use std::os::unix::fs::PermissionsExt;

use crate::fake::place;
use crate::repository::repository;
use crate::support::{OFFER, Place, Session, script};

const DONE: &str = "printf '%s' \"$good\" >\"$final\"";

#[test]
fn the_cli_gets_its_fixed_arguments_and_the_task_on_standard_input() {
    let mut place = Place::new();
    repository(&place.workspace());
    let seen = place.seen();
    let recorder = place.script(&format!(
        "printf '%s\\n' \"$@\" >{seen:?}; cat >{seen:?}.task; exit 1"
    ));
    place.set("CODEX_BIN", recorder);
    let instruction = "add \"tests\"\nand <docs> — größer ✓\n";
    Session::start(&place, &[], &OFFER, 60_000, instruction, &place.workspace()).end();
    let arguments = std::fs::read_to_string(&seen).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    let temporary = place.temporary().canonicalize().unwrap();
    let private = |name: &str, argument: &str| {
        assert!(argument.starts_with(&format!("{}/forge-codex-", temporary.display())));
        assert!(argument.ends_with(name), "{argument}");
    };
    assert_eq!(
        arguments[..9],
        [
            "exec",
            "--ephemeral",
            "--sandbox",
            "workspace-write",
            "--color",
            "never",
            "-C",
            place.workspace().to_str().unwrap(),
            "--output-schema",
        ]
    );
    private("/schema.json", arguments[9]);
    assert_eq!(arguments[10], "--output-last-message");
    private("/final.json", arguments[11]);
    assert_eq!(arguments[12..], ["-"]);
    let task = std::fs::read_to_string(format!("{}.task", seen.display())).unwrap();
    assert!(task.ends_with(&format!("\nTask:\n{instruction}")), "{task}");
    for rule in ["AGENTS.md", "no commit", "HEAD", "actual difference"] {
        assert!(task.contains(rule), "{rule}");
    }
}

#[test]
fn the_longest_instruction_arrives_whole_and_need_not_be_read() {
    let place = place(&format!(
        "printf '%s' \"$task\" | tail -c 65536 | wc -c >size\n{DONE}"
    ));
    let long = "x".repeat(65_536);
    let run = |place: &Place| {
        Session::start(place, &[], &OFFER, 60_000, &long, &place.workspace())
            .end()
            .answer()
    };
    assert_eq!(run(&place)["type"], "result");
    let size = std::fs::read_to_string(place.workspace().join("size")).unwrap();
    assert_eq!(size.trim(), "65536");
    let mut deaf = Place::new();
    repository(&deaf.workspace());
    let path = deaf.script(
        "while [ \"$1\" != --output-last-message ]; do shift; done\n\
         echo '{\"commit_subject\":\"x\",\"summary\":\"s\",\"changes\":[\"c\"]}' >\"$2\"",
    );
    deaf.set("CODEX_BIN", path);
    assert_eq!(run(&deaf)["type"], "result");
}

#[test]
fn the_files_are_private_and_the_environment_is_passed_on() {
    let mut place = place(&format!(
        "for file in \"$(dirname \"$final\")\" \"$schema\" \"$final\"; do stat -c '%a %s' \"$file\"; done >$FORGE_TEST_SEEN\n\
         echo \"$CODEX_HOME\" >>$FORGE_TEST_SEEN\n\
         ls -A \"$(dirname \"$final\")\" >>$FORGE_TEST_SEEN\n{DONE}"
    ));
    place.set("CODEX_HOME", "/home of the cli");
    place.set("FORGE_TEST_SEEN", place.seen());
    assert_eq!(place.run(&[]).answer()["type"], "result");
    let seen = std::fs::read_to_string(place.seen()).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("700 "), "{seen}");
    assert!(
        lines[1].starts_with("600 ") && lines[1] != "600 0",
        "{seen}"
    );
    assert_eq!(
        lines[2..],
        ["600 0", "/home of the cli", "final.json", "schema.json"]
    );
}

#[test]
fn without_codex_bin_the_cli_is_looked_up_on_path() {
    let mut place = Place::new();
    repository(&place.workspace());
    let folder = place.start();
    let body = format!(": >{:?}\nexit 7", place.seen());
    script(&folder.join("codex"), &body);
    let path = std::env::join_paths(
        [folder]
            .into_iter()
            .chain(["/usr/bin".into(), "/bin".into()]),
    )
    .unwrap();
    place.set("PATH", path);
    place.set("CODEX_BIN", "");
    place.run(&[]).failed("execution_failed", "exit code 7");
    assert!(place.seen().exists());
}

#[test]
fn a_relative_codex_bin_is_never_taken_from_the_workspace() {
    let mut place = Place::new();
    repository(&place.workspace());
    script(&place.workspace().join("codex"), ": >taken");
    place.set("CODEX_BIN", "./codex");
    let end = place.run(&[]);
    end.failed("execution_failed", "does not exist");
    end.failed("execution_failed", "CODEX_BIN");
    assert!(!place.workspace().join("taken").exists());
    script(&place.start().join("codex"), "exit 9");
    place.run(&[]).failed("execution_failed", "exit code 9");
}

#[test]
fn a_cli_that_cannot_start_says_why() {
    let mut place = Place::new();
    repository(&place.workspace());
    place.set("CODEX_BIN", "no-such-codex");
    place
        .run(&[])
        .failed("execution_failed", "no executable `no-such-codex`");
    let file = place.script("exit 0");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    place.set("CODEX_BIN", file);
    place
        .run(&[])
        .failed("execution_failed", "no execute permission");
    assert_eq!(std::fs::read_dir(place.temporary()).unwrap().count(), 0);
}

#[test]
fn private_files_are_never_put_into_the_workspace() {
    let mut place = place(DONE);
    let inside = place.workspace().join("tmp");
    std::fs::create_dir(&inside).unwrap();
    place.set("TMPDIR", inside);
    place
        .run(&[])
        .failed("execution_failed", "lies inside the workspace");
}

#[test]
fn usage_errors_exit_with_2_and_say_nothing_on_stdout() {
    for args in [&["exec"][..], &["--", "codex"], &["--sandbox", "none"]] {
        let output = std::process::Command::new(crate::PROGRAM)
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}

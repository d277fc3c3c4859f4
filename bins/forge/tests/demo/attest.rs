//! The part about receipts: what it shows holds, and what does not hold ends it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::user::{Home, processes_with, signal, wait_until};

/// The whole about receipts, with a program that shells meet instead of the system's.
fn with(home: &Home, program: &str, script: &str) -> Command {
    let mark = home.mark();
    fs::create_dir(&mark).unwrap();
    let path = format!("{mark}/{program}");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(&["demo", "--part", "attest"]);
    command.env("PATH", format!("{mark}:/usr/local/bin:/usr/bin:/bin"));
    command
}

#[test]
fn a_receipt_from_one_command() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "attest"]);
    assert_eq!(code, 0, "{out}{err}");
    for wanted in [
        "$ attest init\n",
        "$ attest run --sign --receipt receipt.yaml\n",
        "the total is 42\n",
        "receipt.yaml: pass\n",
        "changed.yaml: fail\n",
        "receipt.yaml: fail\n",
        "step 'sum': input hash mismatch",
        "the file is out/stamp.txt\n",
        "$ attest plugins pin policy\n",
        "error: plugin policy denied: same-each-time (high)",
    ] {
        assert!(err.contains(wanted), "{wanted}: {err}");
    }
    for wanted in [
        "as it was made     accepted: ",
        "one digit changed  refused: ",
        "asked of a plugin  denied by the rule same-each-time",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    for line in out.lines().chain(err.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    home.is_clean();
}

#[test]
fn the_record_has_every_command_with_its_outcome() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "attest", "--format", "json", "-q"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.lines().count(), 1);
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["part"], "attest");
    assert_eq!(
        record["not_reproducible"],
        serde_json::json!(["out/stamp.txt"])
    );
    assert_eq!(record["state"], Value::Null);
    let commands = record["commands"].as_array().unwrap();
    let codes: Vec<_> = commands
        .iter()
        .map(|one| one["exit_code"].as_i64())
        .collect();
    let expected = [0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1];
    assert_eq!(codes, expected.map(Some), "{out}");
    assert_eq!(record["denied_by_rule"], "same-each-time");
    let key_id = record["key_id"].as_str().unwrap();
    let shown = commands[4]["stdout"].as_str().unwrap();
    let row = shown.lines().find_map(|line| line.strip_prefix("key id"));
    assert_eq!(row.map(str::trim), Some(key_id), "{out}");
    home.is_clean();
}

#[test]
fn without_options_all_parts_are_shown() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--format", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let records = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let parts: Vec<_> = records.map(|record| record["part"].clone()).collect();
    assert_eq!(parts, ["forge", "attest", "backplane"]);
    let first = err.find("a candidate commit").unwrap();
    let second = err.find("attest init").unwrap();
    let third = err.find("backplane init").unwrap();
    assert!(first < second && second < third, "{err}");
    home.is_clean();
}

#[test]
fn a_kept_workspace_is_one_to_go_on_with() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "attest", "--keep", "--format", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let work = record["state"].as_str().unwrap();
    assert!(err.contains(&format!("cd {work}\n")), "{err}");
    let verify = |more: &[&str]| {
        let words = [&["__attest", "verify", "receipt.yaml"], more].concat();
        let done = home.command(&words).current_dir(work).output().unwrap();
        done.status.code()
    };
    assert_eq!(verify(&[]), Some(0));
    assert_eq!(verify(&["--recompute"]), Some(1));
    // The plugin's script is still there, and denies the same build again.
    let run = ["__attest", "run", "-p", "stamped.yaml"];
    let run = home.command(&run).current_dir(work).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    // What was changed is put back: the receipt holds again.
    fs::write(format!("{work}/numbers.txt"), "19\n23\n").unwrap();
    assert_eq!(verify(&["--recompute"]), Some(0));
    for state in home.state_folders() {
        fs::remove_dir_all(state).unwrap();
    }
    home.is_clean();
}

#[test]
fn a_command_that_ends_otherwise_ends_the_whole() {
    let home = Home::new();
    let output = with(&home, "mkdir", "echo broken >&2; exit 3")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("error: `attest run --sign --receipt receipt.yaml`"),
        "{err}"
    );
    assert!(
        err.contains("expected exit code 0, found exit code 1"),
        "{err}"
    );
    assert!(output.stdout.is_empty());
    home.is_clean();

    // What a command says is looked at too.
    let home = Home::new();
    let output = with(&home, "cat", "echo the total is 41").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("expected the total is 42"), "{err}");
    home.is_clean();
}

#[test]
fn an_interrupt_of_the_pipeline_leaves_nothing() {
    for name in ["-INT", "-TERM"] {
        let home = Home::new();
        let mut demo = with(&home, "mkdir", "sleep 600")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mark = home.mark();
        wait_until("the step runs", || {
            let found = processes_with(&mark, "environ");
            found.iter().any(|line| line.starts_with("sleep 600"))
        });
        signal(name, demo.id());
        assert_eq!(demo.wait().unwrap().code(), Some(2), "{name}");
        home.is_clean();
    }
}

//! `attest run --wrap`, as a user of a shell meets it.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use test_case::test_case;

use crate::bed::{Bed, ran, snapshot};
use crate::disk::without_room;

const WRAP: [&str; 4] = ["run", "--wrap", "--name", "step"];

fn wrap<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    WRAP.iter().chain(rest).copied().collect()
}

#[test]
fn stdout_is_the_commands_own_and_the_receipt_is_told_on_stderr() {
    let bed = Bed::new();
    let ran = bed
        .attest(&wrap(&["--", "printf", "a\\nb"]))
        .expect(0)
        .says("attest: receipt written to ");
    assert_eq!(ran.out, "a\nb");
    let names = bed.names(".attest/receipts");
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with("receipt_") && names[0].contains("_step_"));
    let receipt = format!(".attest/receipts/{}", names[0]);
    let verified = bed.attest(&[
        "verify",
        "--recompute",
        "--check-signatures",
        "false",
        &receipt,
    ]);
    assert!(verified.expect(0).out.contains("recompute    pass"));
}

#[test_case("exit 3", 3)]
#[test_case("kill -TERM $$", 143)]
#[test_case("exit 255", 255)]
fn the_exit_code_is_the_commands_own(script: &str, code: i32) {
    let bed = Bed::new();
    bed.attest(&wrap(&["--", "sh", "-c", script])).expect(code);
    assert_eq!(bed.names(".attest/receipts").len(), 1);
}

#[test]
fn the_commands_code_wins_over_everything_that_fails_around_it() {
    let bed = Bed::new();
    let made = bed.attest(&["keys", "generate", "--name", "k"]).expect(0);
    let key = format!(".attest/keys/{}.key", made.out.trim_end());
    // That the key is none is known when it is loaded, after the command; its mode stays.
    bed.write(&key, "none");
    // The place of the report is fine until the command takes it away.
    let fails = |code: &str, argv: &[&str]| {
        std::fs::create_dir(bed.path("made")).unwrap();
        let script = format!("rmdir made; exit {code}");
        let mut argv = [argv, &["--report", "made/r", "--", "sh", "-c"]].concat();
        argv.push(&script);
        bed.attest(&wrap(&argv))
    };
    fails("9", &["--sign"])
        .expect(9)
        .says("cannot load the signing key")
        .says("cannot write the report");
    // The same around a command that succeeds is a failed operation.
    fails("0", &[]).expect(2).says("cannot write the report");
    bed.attest(&wrap(&["--sign", "--", "true"])).expect(2);
}

#[test]
fn what_cannot_be_started_is_127_and_what_cannot_be_attested_is_1() {
    let bed = Bed::new();
    bed.attest(&wrap(&["--", "surely-not-in-path"]))
        .expect(127)
        .says("failed to execute command");
    bed.attest(&wrap(&["--output", "absent", "--", "true"]))
        .expect(1)
        .says("attestation failed: declared output not found: absent");
    bed.attest(&wrap(&["--output", "absent", "--", "sh", "-c", "exit 5"]))
        .expect(5)
        .says("declared output not found: absent");
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
}

#[test]
fn what_is_piped_in_reaches_the_command() {
    let bed = Bed::new();
    let mut command = bed.program(&wrap(&["--output", "out", "--", "sh", "-c", "cat > out"]));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text = "line\n".repeat(100_000);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(bed.read("out"), text);
}

#[test]
fn a_secret_appears_nowhere() {
    const CANARY: &str = "canary-51c07b";
    let bed = Bed::new();
    let argv = wrap(&[
        "--secret",
        "TOKEN",
        "--",
        "sh",
        "-c",
        "echo $TOKEN; echo $TOKEN >&2",
    ]);
    let ran = ran(bed.program(&argv).env("TOKEN", CANARY)).expect(0);
    assert_eq!(ran.out, "[redacted TOKEN]\n");
    assert!(!ran.err.contains(CANARY), "{}", ran.err);
    for (path, bytes) in snapshot(bed.folder()) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(CANARY), "{}", path.display());
    }
}

#[test]
fn a_full_disk_leaves_neither_receipt_nor_event_and_the_commands_code_stays() {
    let bed = Bed::new();
    bed.attest(&wrap(&["--", "true"])).expect(0);
    let before = snapshot(bed.folder());
    for (script, code) in [("exit 0", 2), ("exit 3", 3)] {
        let ran = without_room(&bed, &wrap(&["--", "sh", "-c", script])).expect(code);
        assert!(ran.err.contains("File too large"), "{}", ran.err);
        assert_eq!(snapshot(bed.folder()), before, "{script}");
    }
}

#[test]
fn a_full_disk_leaves_no_copy_of_the_workspace() {
    let bed = Bed::new();
    let temporary = tempfile::tempdir().unwrap();
    bed.attest(&["init"]).expect(0);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
        .arg(bed.program(&[]).get_program())
        .args(["run", "--check-reproducibility"])
        .env("TMPDIR", temporary.path())
        .current_dir(bed.folder());
    ran(&mut shell).expect(2).says("cannot copy `.gitignore`");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_the_command_and_is_told_as_shells_do() {
    let bed = Bed::new();
    let mut command = bed.program(&wrap(&["--", "sh", "-c", "echo $$ > pid; exec sleep 600"]));
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let pid = first_line(&bed, "pid");
    let id = i32::try_from(child.id()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::SIGINT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.signal(), None);
    assert_eq!(done.status.code(), Some(130));
    assert!(!std::path::Path::new("/proc").join(&pid).exists());
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
}

#[test]
fn an_interrupted_check_of_reproducibility_leaves_no_copy() {
    let bed = Bed::new();
    let temporary = tempfile::tempdir().unwrap();
    bed.attest(&["init"]).expect(0);
    let mark = bed.path("pid");
    bed.write(
        "attest.yaml",
        format!(
            "version: '1'\nsteps:\n  s:\n    run: echo $$ > {}; exec sleep 600\n",
            mark.display()
        ),
    );
    let mut command = bed.program(&["run", "--check-reproducibility"]);
    command
        .env("TMPDIR", temporary.path())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    first_line(&bed, "pid");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 1);
    let id = i32::try_from(child.id()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::SIGTERM).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_difference_is_told_by_file_and_ends_with_1() {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  s:\n    run: pwd > out\n    outputs: [out]\n",
    );
    let ran = bed
        .attest(&["run", "--check-reproducibility"])
        .expect(1)
        .says("reproducibility check failed: 1 step(s) diverged between the two runs");
    assert!(ran.err.contains("  A: f:") && ran.err.contains(" out"));
    assert_eq!(ran.out.lines().count(), 1, "the receipt's path alone");
    let json = bed.attest(&["--format", "json", "run", "--check-reproducibility"]);
    let json: serde_json::Value = serde_json::from_str(&json.expect(1).out).unwrap();
    assert_eq!(json["reproducibility"]["verified"], false);
    assert_eq!(
        json["reproducibility"]["steps"][0]["differs"][0]["path"],
        "out"
    );
}

/// Waits until a file has a line.
fn first_line(bed: &Bed, name: &str) -> String {
    for _ in 0..6_000 {
        let text = std::fs::read_to_string(bed.path(name)).unwrap_or_default();
        if let Some((line, _)) = text.split_once('\n') {
            return line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing was written to {name}");
}

//! `attest run`, as a user of a shell meets it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::process::{Child, Stdio};
use std::time::Duration;

use test_case::test_case;

use crate::bed::{Bed, Ran, snapshot};
use crate::disk::without_room;
use crate::read_only::ReadOnly;

const GOOD: &str = "\
version: '1'
name: good
steps:
  make:
    run: cat in > out; echo made
    inputs: [in]
    outputs: [out]
";

const BAD: &str = "\
version: '1'
steps:
  a:
    run: for i in $(seq 30); do echo line $i >&2; done; exit 3
  b:
    run: 'true'
    needs: [a]
  c:
    run: echo quietly; exit 4
";

fn bed(pipeline: &str) -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", pipeline);
    bed.write("in", "source");
    bed
}

/// What is written by runs: nothing half may be among it.
fn written(bed: &Bed) -> Vec<String> {
    ["receipts", "causal_ledger/events"]
        .iter()
        .filter(|folder| bed.path(&format!(".attest/{folder}")).exists())
        .flat_map(|folder| bed.names(&format!(".attest/{folder}")))
        .collect()
}

fn receipt(ran: &Ran) -> &str {
    ran.out.strip_suffix('\n').unwrap()
}

#[test]
fn stdout_is_the_receipts_path_and_the_rest_is_on_stderr() {
    let bed = bed(GOOD);
    let ran = bed.attest(&["run"]).expect(0).says("[make] made\n");
    let path = receipt(&ran);
    let folder = bed
        .folder()
        .canonicalize()
        .unwrap()
        .join(".attest/receipts/receipt_");
    assert!(path.starts_with(folder.to_str().unwrap()), "{path}");
    assert!(path.contains("_good_"), "{path}");
    let quiet = bed.attest(&["run", "-q"]).expect(0);
    assert_eq!(quiet.err, "");
    assert_eq!(quiet.out.lines().count(), 1);
    let json = bed.attest(&["run", "-q", "--format", "json"]).expect(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["failed"], serde_json::json!([]));
    assert!(json["receipt"].as_str().unwrap().contains("_good_"));
}

#[test]
fn a_signed_receipt_verifies_here() {
    let bed = bed(GOOD);
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    let ran = bed.attest(&["run", "--sign", "-q"]).expect(0);
    bed.attest(&["verify", receipt(&ran)]).expect(0);
}

#[test]
fn failures_are_reported_with_the_last_lines_and_in_the_receipt() {
    let bed = bed(BAD);
    let ran = bed.attest(&["run", "-q"]).expect(1);
    let tail: String = (11..=30).map(|i| format!("  line {i}\n")).collect();
    let told = format!(
        "error: step 'a' failed with exit code 3\n--- stderr of 'a' (tail) ---\n{tail}error: step 'c' failed with exit code 4\n--- stdout of 'c' (tail) ---\n  quietly\nerror: step 'b' skipped: a dependency did not succeed\n"
    );
    assert_eq!(ran.err, told);
    let stored = std::fs::read_to_string(receipt(&ran)).unwrap();
    assert!(stored.contains("exit_code: 3"));
}

#[test]
fn control_characters_of_a_step_are_shown_and_not_obeyed() {
    let bed =
        bed("version: '1'\nsteps:\n  a:\n    run: printf 'x\\033[2Jy\\rz\\t\\377\\n'; exit 1\n");
    let ran = bed.attest(&["run"]).expect(1);
    let shown = "[a] x\\u{1b}[2Jy\\u{d}z\t\u{fffd}\n";
    assert!(ran.err.starts_with(shown), "{}", ran.err);
    assert!(!ran.err.contains('\u{1b}'));
}

#[test]
fn a_missing_input_is_an_honest_no_without_a_receipt() {
    let bed = bed(GOOD);
    std::fs::remove_file(bed.path("in")).unwrap();
    let ran = bed.attest(&["run"]).expect(1);
    assert_eq!(
        ran.err,
        "error: step 'make': declared input not found: in\n"
    );
    assert_eq!(ran.out, "");
    assert!(written(&bed).is_empty());
}

#[test_case(&["--key", "x"], "--key requires --sign; a key was named but nothing would be signed"; "key")]
#[test_case(&["--wrap", "--", "true"], "--wrap requires --name <STEP_NAME>; the receipt records the wrapped command under a step name"; "name of the wrapped")]
#[test_case(&["--wrap", "--name", "x"], "--wrap requires a command after `--`; there is nothing to wrap otherwise"; "command")]
#[test_case(&["--name", "x"], "--name requires --wrap; a pipeline run takes step names from the pipeline file"; "name")]
#[test_case(&["--input", "x"], "--input requires --wrap; a pipeline run declares inputs in the pipeline file"; "input")]
#[test_case(&["--workspace", "x"], "--workspace requires --wrap; a pipeline run uses the current directory"; "workspace")]
#[test_case(&["--", "true"], "a command after `--` requires --wrap; a pipeline run takes its commands from the pipeline file"; "lone command")]
#[test_case(&["--report", "x"], "--report requires --wrap; a wrap report describes one existing build command"; "report")]
#[test_case(&["--secret", "x"], "--secret requires --wrap; a pipeline run names secrets in the pipeline file"; "secret")]
#[test_case(&["--output", "x", "--output", "y"], "--output more than once requires --wrap; a pipeline run has one receipt, and declares outputs in the pipeline file"; "outputs")]
#[test_case(&["--wrap", "--name", "x", "-p", "y", "--", "true"], "--pipeline requires a pipeline run, not --wrap; --wrap takes a command, not a pipeline file"; "pipeline")]
#[test_case(&["--wrap", "--name", "x", "--check-reproducibility", "--", "true"], "--check-reproducibility requires a pipeline run, not --wrap; a wrapped command runs once; there is nothing to replay"; "reproducibility")]
fn an_option_that_could_not_take_effect_is_refused(options: &[&str], told: &str) {
    let bed = bed(GOOD);
    let args: Vec<_> = ["run"].iter().chain(options).copied().collect();
    let ran = bed.attest(&args).expect(2);
    assert_eq!(ran.err, format!("error: {told}\n"));
    assert!(!bed.path("out").exists());
    assert!(written(&bed).is_empty());
}

#[test]
fn a_pattern_as_a_declared_path_is_told_to_be_literal() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path(".attest")).unwrap();
    let hint = "hint: declared paths are literal";
    let steps = "version: '1'\nsteps:\n  s:\n    run: 'true'\n    inputs: ['src/*.c']\n";
    bed.write("attest.yaml", steps);
    bed.attest(&["run"]).expect(1).says(hint);
    for path in ["src/*.c", "a?", "[ab]"] {
        let wrapped = [
            "run", "--wrap", "--name", "a", "--input", path, "--", "true",
        ];
        bed.attest(&wrapped).expect(1).says(hint);
    }
    let plain = ["run", "--wrap", "--name", "a", "--input", "c", "--", "true"];
    let ran = bed.attest(&plain).expect(1);
    assert!(!ran.err.contains(hint), "{ran:?}");
}

#[test]
fn a_key_and_a_folder_that_are_not_there_are_told_with_what_to_do() {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    for args in [
        &["run", "--sign", "--key", "me"][..],
        &["keys", "export", "me"],
    ] {
        bed.attest(args).expect(2).says("hint: `attest keys list`");
    }
    for name in ["a", "b"] {
        bed.attest(&["keys", "generate", "--name", name]).expect(0);
    }
    bed.attest(&["run", "--sign"])
        .expect(2)
        .says("hint: `attest keys list`");
    let ran = bed.attest(&["run", "--receipt", "new/x.yaml"]).expect(2);
    ran.says("`new`").says("because: there is no such folder");
}

#[test]
fn the_place_of_a_receipt_stands_on_a_line_of_its_own() {
    let bed = Bed::new();
    for (script, before) in [
        ("printf x >&2", "x\n"),
        ("echo x >&2", "x\n"),
        ("echo x", ""),
    ] {
        let wrapped = ["run", "--wrap", "--name", "a", "--", "sh", "-c", script];
        let err = bed.attest(&wrapped).expect(0).err;
        let at = err.find("attest: receipt written").unwrap();
        let said = err[..at].rsplit("string only\n").next().unwrap();
        assert_eq!(said, before, "{err}");
    }
}

#[test]
fn a_receipt_is_no_pipeline() {
    let bed = Bed::with_vectors();
    std::fs::create_dir_all(bed.path(".attest")).unwrap();
    let ran = bed.attest(&["run", "-p", "r3_unsigned.yaml"]).expect(2);
    ran.says("`r3_unsigned.yaml`").says("hint: it is a receipt");
}

#[test_case(&["run", "attest.yaml"], "`attest.yaml` cannot stand here: a pipeline file is named with `--pipeline`"; "file")]
#[test_case(&["run", "--wrap", "--name", "a", "true"], "`true` cannot stand here: the command that is wrapped stands after `--`"; "command")]
#[test_case(&["run", "--jobs", "0"], "a whole number from 1 is asked for"; "jobs")]
#[test_case(&["run", "-p", "absent.yaml"], "hint: `attest init` makes a first pipeline, `--pipeline FILE` names another file"; "absent")]
fn a_likely_slip_is_told_what_to_write_instead(args: &[&str], told: &str) {
    let bed = bed(GOOD);
    bed.attest(args).expect(2).says(told);
    assert!(written(&bed).is_empty());
}

#[test]
fn a_bad_pipeline_is_an_operational_error() {
    let bed = bed("version: '1'\nsteps:\n  a:\n    run: 'true'\n    results: [x]\n");
    let ran = bed.attest(&["run"]).expect(2).says("results");
    assert!(
        ran.err
            .starts_with("error: cannot read the pipeline `attest.yaml`"),
        "{}",
        ran.err
    );
    bed.attest(&["run", "-p", "absent.yaml"])
        .expect(2)
        .says("absent.yaml");
    assert!(written(&bed).is_empty());
}

#[test]
fn a_receipt_goes_to_a_named_file_and_state_to_a_named_folder() {
    let bed = Bed::new();
    bed.write("attest.yaml", GOOD);
    bed.write("in", "x");
    let ran = bed
        .attest(&["run", "-q", "--state-dir", "state", "--output", "r.yaml"])
        .expect(0);
    assert_eq!(ran.out, "r.yaml\n");
    assert_eq!(
        bed.names("."),
        ["attest.yaml", "in", "out", "r.yaml", "state"]
    );
    assert_eq!(bed.names("state/cache").len(), 1);
    let mut program = bed.program(&["run", "-q"]);
    program.env("ATTEST_STATE_DIR", "elsewhere");
    assert!(
        crate::bed::ran(&mut program)
            .expect(0)
            .out
            .contains("/elsewhere/receipts/receipt_")
    );
    assert!(!bed.path(".attest").exists());
}

#[test]
fn outputs_are_recorded_as_asked() {
    let bed = bed("version: '1'\nsteps:\n  a: {run: echo said}\n");
    for (how, said) in [("none", false), ("tail", true), ("full", true)] {
        let ran = bed.attest(&["run", "-q", "--record-output", how]).expect(0);
        let stored = std::fs::read_to_string(receipt(&ran)).unwrap();
        assert_eq!(stored.contains("said"), said, "{how}");
    }
    bed.attest(&["run", "--record-output", "some"]).expect(2);
}

const WRAPPED: [&str; 9] = [
    "run", "--sign", "-q", "--wrap", "--name", "s", "--output", "out", "--",
];

/// Runs the pipeline and a wrapped command with `--sign`; neither may have started.
#[track_caller]
fn signs_nothing(bed: &Bed, choice: &[&str], told: &str) {
    let pipeline: &[&str] = &["run", "--sign", "-q"];
    let twice: &[&str] = &["run", "--sign", "-q", "--check-reproducibility"];
    let (wrap, command) = WRAPPED.split_at(WRAPPED.len() - 1);
    for (start, end) in [
        (pipeline, &[][..]),
        (twice, &[]),
        (wrap, &[command[0], "touch", "out"]),
    ] {
        let args = [start, choice, end].concat();
        let ran = bed.attest(&args).expect(2).says(told);
        let first = "error: cannot load the signing key\n";
        assert!(ran.err.starts_with(first), "{args:?} {}", ran.err);
        assert_eq!(ran.out, "");
        assert!(!bed.path("out").exists(), "{args:?}");
        assert!(written(bed).is_empty(), "{args:?}");
    }
}

#[test]
fn what_can_be_known_of_a_key_is_known_before_anything_runs() {
    let bed = bed(GOOD);
    signs_nothing(&bed, &[], "no private key in");
    std::fs::create_dir_all(bed.path(".attest/keys")).unwrap();
    signs_nothing(&bed, &[], "no private key in");
    let make = || {
        let made = bed.attest(&["keys", "generate", "--name", "k"]).expect(0);
        made.out.trim_end().to_owned()
    };
    let (first, second) = (make(), make());
    signs_nothing(&bed, &[], "multiple private keys, use --key");
    signs_nothing(&bed, &["--key", "nonsense"], "32 lowercase hexadecimal");
    let unknown = "0".repeat(32);
    signs_nothing(&bed, &["--key", &unknown], "no private key for id 0000");

    let file = bed.path(&format!(".attest/keys/{first}.key"));
    let mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&file, mode).unwrap();
    };
    mode(0o644);
    signs_nothing(&bed, &["--key", &first], "chmod 600");
    mode(0o600);
    bed.attest(&["keys", "revoke", &second]).expect(0);
    signs_nothing(&bed, &["--key", &second], "is revoked");
    let policy = bed.read(".attest/trust/trust.toml");
    bed.write(".attest/trust/trust.toml", "version = 2\n");
    signs_nothing(&bed, &[], "cannot use the trust store");
    signs_nothing(&bed, &["--key", &first], "cannot use the trust store");
    bed.write(".attest/trust/trust.toml", "version = 1\n");
    signs_nothing(&bed, &["--key", &first], "has a private half but no entry");
    bed.write(".attest/trust/trust.toml", policy);
    let ran = bed.attest(&["run", "--sign", "-q"]).expect(0);
    bed.attest(&["verify", receipt(&ran)]).expect(0);
}

#[test]
fn a_key_is_opened_after_the_last_step_and_leaves_no_receipt_if_it_is_none() {
    let bed = bed(GOOD);
    let made = bed.attest(&["keys", "generate", "--name", "k"]).expect(0);
    let key = bed.path(&format!(".attest/keys/{}.key", made.out.trim_end()));
    // The mode stays as it is.
    std::fs::write(key, "none").unwrap();
    let ran = bed.attest(&["run", "--sign", "-q"]).expect(2);
    let told = "error: cannot load the signing key\n";
    assert!(ran.err.starts_with(told), "{}", ran.err);
    assert_eq!(ran.out, "");
    assert!(written(&bed).is_empty());
    assert!(bed.path("out").exists());
}

#[test]
fn a_full_disk_leaves_nothing_half() {
    let bed = bed("version: '1'\nsteps:\n  a: {run: 'true'}\n");
    let before = snapshot(bed.folder());
    for args in [&["run"][..], &["run", "--output", "r.yaml"]] {
        let ran = without_room(&bed, args).expect(2);
        assert!(ran.err.contains("error: cannot write"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert!(written(&bed).is_empty());
        let files = |all: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
            all.into_iter().filter(|(path, _)| path.is_file()).collect()
        };
        assert_eq!(files(snapshot(bed.folder())), files(before.clone()));
    }
    bed.attest(&["run"]).expect(0);
}

#[test]
fn a_read_only_workspace_is_refused_before_anything_runs_unless_state_is_elsewhere() {
    let bed = bed("version: '1'\nsteps:\n  a: {run: 'echo ran >&2'}\n");
    bed.attest(&["run"]).expect(0);
    let before = snapshot(bed.folder());
    let elsewhere = tempfile::tempdir().unwrap();
    {
        let Some(_read_only) = ReadOnly::make(bed.folder()) else {
            return;
        };
        let ran = bed.attest(&["run"]).expect(2);
        assert!(!ran.err.contains("ran"), "{}", ran.err);
        let told = ["Read-only file system", "Permission denied"];
        assert!(
            told.iter().any(|text| ran.err.contains(text)),
            "{}",
            ran.err
        );
        let state = elsewhere.path().to_str().unwrap();
        let ran = bed.attest(&["run", "--state-dir", state]).expect(0);
        assert!(receipt(&ran).starts_with(state));
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_link_out_of_the_workspace_is_refused() {
    let bed = bed(GOOD);
    std::fs::remove_file(bed.path("in")).unwrap();
    symlink("/etc/passwd", bed.path("in")).unwrap();
    bed.attest(&["run"])
        .expect(2)
        .says("leads out of the workspace");
    assert!(written(&bed).is_empty());
}

#[test]
fn a_receipt_path_with_odd_characters_is_printed_as_it_is() {
    let bed = Bed::new();
    bed.write("attest.yaml", GOOD);
    bed.write("in", "x");
    let ran = bed
        .attest(&["run", "-q", "--state-dir", "s\u{1b}t\nate"])
        .expect(0);
    assert!(
        ran.out.starts_with("s\u{1b}t\nate/receipts/receipt_"),
        "{}",
        ran.out
    );
    assert!(std::path::Path::new(&bed.path(receipt(&ran))).exists());
}

/// Starts a run whose step waits, and returns when it does.
fn waiting(bed: &Bed) -> Child {
    let mut program = bed.program(&["run"]);
    let child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !bed.path("runs").exists() {
        assert!(std::time::Instant::now() < deadline, "the step never ran");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test_case(nix::sys::signal::Signal::SIGINT; "interrupt")]
#[test_case(nix::sys::signal::Signal::SIGTERM; "terminate")]
#[test_case(nix::sys::signal::Signal::SIGHUP; "hang up")]
fn a_signal_ends_the_step_and_leaves_no_receipt(signal: nix::sys::signal::Signal) {
    let bed = bed("version: '1'\nsteps:\n  a: {run: 'echo $$ > pid; touch runs; sleep 300'}\n");
    let child = waiting(&bed);
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        err.contains(
            "error: interrupted; everything that ran was ended, and no receipt was written"
        ),
        "{err}"
    );
    let step: i32 = bed.read("pid").trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(step), None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH));
    assert!(written(&bed).is_empty());
}

#[test]
fn a_second_run_waits_for_the_first() {
    let bed = bed(
        "version: '1'\nsteps:\n  a: {run: 'mkdir lock || exit 9; touch runs; while ! test -e go; do sleep 0.01; done; rmdir lock', cache: false}\n",
    );
    let first = waiting(&bed);
    let mut second = bed
        .program(&["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first goes on only when the second has said that it waits.
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.contains("waiting for another run in this workspace"),
        "{line}"
    );
    bed.write("go", "");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(0), "{rest}");
    let output = first.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("waiting for another run"), "{err}");
    assert_eq!(bed.names(".attest/receipts").len(), 2);
}

#[test]
fn a_step_that_runs_the_pipeline_again_is_told_so() {
    let attest = env!("CARGO_BIN_EXE_attest");
    let bed = bed(&format!(
        "version: '1'\nsteps:\n  a: {{run: '{attest} run'}}\n"
    ));
    bed.attest(&["run"])
        .expect(1)
        .says("a step of another run of this workspace cannot run the workspace's pipeline again");
}

#[test]
fn steps_run_at_once_with_jobs_and_the_receipt_is_in_order() {
    let meet = |own: &str, other: &str| {
        format!(
            "touch {own}; for i in $(seq 6000); do test -e {other} && exit 0; sleep 0.01; done; exit 1"
        )
    };
    let bed = bed(&format!(
        "version: '1'\nsteps:\n  b: {{run: '{}', cache: false}}\n  a: {{run: '{}', cache: false}}\n",
        meet("here-a", "here-b"),
        meet("here-b", "here-a")
    ));
    let ran = bed.attest(&["run", "--jobs", "2"]).expect(0);
    let stored = std::fs::read_to_string(receipt(&ran)).unwrap();
    assert!(stored.find("- name: a").unwrap() < stored.find("- name: b").unwrap());
    bed.attest(&["run", "--jobs", "0"]).expect(2);
}

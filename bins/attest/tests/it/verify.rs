//! `attest verify`: verdicts, exit codes and records.

use serde_json::Value;

use crate::bed::{Bed, Ran, snapshot, stamped};

const SIGNED: &str = "r1_pipeline_signed.yaml";
const KEY: &str = "6ef3714ba22a37b9819c46fdcd7dc6e19af7ffdd294f19bd9d6a32a89709f8af";

fn verify(bed: &Bed, more: &[&str]) -> Ran {
    let mut args = vec!["verify", "--trust-store", "trust"];
    args.extend(more);
    bed.attest(&args)
}

fn records(ran: &Ran) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap();
    ran.out.lines().map(line).collect()
}

#[test]
fn the_originals_receipts_verify() {
    let bed = Bed::with_vectors();
    let ran = verify(&bed, &[SIGNED, "r6_wrapped.yaml"]).expect(0);
    assert_eq!(ran.err, "");
    let (first, second) = ran.out.split_once("r6_wrapped.yaml: pass\n").unwrap();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[0], "r1_pipeline_signed.yaml: pass");
    assert_eq!(lines[1], "  schema       pass     receipt matches schema");
    assert_eq!(lines[2], "  consistency  pass     receipt is coherent");
    assert_eq!(
        lines[3],
        format!("  signature    pass     valid signature by trusted key {KEY}")
    );
    assert_eq!(lines[5], "  recompute    skipped  enable with --recompute");
    assert_eq!(lines[6], format!("  signed by: {KEY}"));
    assert_eq!(lines[7], "  execution: success");
    assert!(second.starts_with("  schema "), "{second}");
    let old = "v0.1.0/r1_pipeline_signed.yaml";
    bed.attest(&["verify", "--trust-store", "v0.1.0/trust", old])
        .expect(0);
}

#[test]
fn who_has_no_trust_store_is_told_how_one_is_named() {
    let bed = Bed::with_vectors();
    let hint = "hint: `--trust-store DIR` names a folder of trusted keys\n";
    let ran = bed.attest(&["verify", SIGNED, SIGNED]).expect(1);
    assert_eq!(ran.err.matches(hint).count(), 1, "{}", ran.err);
    for silent in [
        &["verify", "--format", "json", SIGNED][..],
        &["verify", "--check-signatures", "false", SIGNED],
        &["verify", "--trust-store", "trust", SIGNED],
    ] {
        let ran = bed.attest(silent);
        assert!(!ran.err.contains("hint: "), "{}", ran.err);
    }
}

#[test]
fn json_has_one_record_a_receipt_with_keys_in_their_order() {
    let bed = Bed::with_vectors();
    let ran = verify(&bed, &["--format", "json", SIGNED, "r3_unsigned.yaml"]).expect(1);
    assert_eq!(ran.out.lines().count(), 2);
    let first = ran.out.lines().next().unwrap();
    let mut rest = first;
    for key in [
        "receipt",
        "verdict",
        "checks",
        "signed_by",
        "warnings",
        "trust_material",
        "execution",
        "policy",
    ] {
        let key = format!("\"{key}\":");
        let at = rest
            .find(&key)
            .unwrap_or_else(|| panic!("{key} in {first}"));
        rest = &rest[at + key.len()..];
    }
    let records = records(&ran);
    assert_eq!(records[0]["verdict"], "pass");
    assert_eq!(records[0]["signed_by"], KEY);
    let names: Vec<&str> = records[0]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "schema",
            "consistency",
            "signature",
            "timestamp",
            "recompute"
        ]
    );
    assert_eq!(records[1]["verdict"], "fail");
    assert_eq!(records[1]["signed_by"], Value::Null);
}

#[test]
fn a22_a_changed_fact_is_refused() {
    let bed = Bed::with_vectors();
    let text = bed.read(SIGNED);
    for (from, to) in [
        ("exit_code: 0", "exit_code: 1"),
        ("hi alone true", "hi alone false"),
        (
            "timestamp: 2026-11-30T11:51:16",
            "timestamp: 2026-11-30T11:51:15",
        ),
        ("tracked_dirty: false", "tracked_dirty: true"),
        ("schema_version: 3", "schema_version: 2"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        bed.write("changed.yaml", changed);
        let ran = verify(&bed, &["changed.yaml"]).expect(1);
        assert!(ran.out.starts_with("changed.yaml: fail\n"), "{}", ran.out);
        assert!(ran.out.contains("signature    FAIL"), "{}", ran.out);
    }
}

#[test]
fn a16_a_key_that_nobody_trusts_is_no_pass() {
    let bed = Bed::with_vectors();
    let ran = bed.attest(&["verify", SIGNED]).expect(1);
    assert!(ran.out.contains("FAIL"), "{}", ran.out);
    std::fs::create_dir(bed.path("empty")).unwrap();
    bed.attest(&["verify", "--trust-store", "empty", SIGNED])
        .expect(1);
}

#[test]
fn what_is_no_receipt_but_something_else_is_told() {
    let bed = Bed::with_vectors();
    bed.write("a.tar.zst", b"\x28\xb5\x2f\xfdrest");
    bed.write(
        "s.json",
        r#"{ "payloadType": "t", "payload": "", "signatures": []}"#,
    );
    for (command, code) in [("verify", [2, 1]), ("show", [2, 1])] {
        let ran = bed.attest(&[command, "a.tar.zst"]).expect(code[0]);
        ran.says("`attest verify --archive FILE`");
        let ran = bed.attest(&[command, "s.json"]).expect(code[1]);
        ran.says("`attest import FILE --format in-toto`");
    }
    let ran = bed.attest(&["verify", "--archive", SIGNED]).expect(2);
    assert!(!ran.err.contains("Magic"), "{ran:?}");
    ran.says("it is no zstd frame");
}

#[test]
fn a_folder_that_is_named_has_to_be_there() {
    let bed = Bed::with_vectors();
    for (command, option) in [
        (&["verify", SIGNED][..], "--trust-store"),
        (
            &["import", "s.json", "--format", "in-toto"],
            "--trust-store",
        ),
        (
            &["import", "s.json", "--format", "in-toto"],
            "--artifact-root",
        ),
    ] {
        bed.attest(&[command, &[option, "nowhere"]].concat())
            .expect(2)
            .says("there is no such folder");
    }
}

#[test]
fn a33_a_newer_version_says_to_upgrade() {
    let bed = Bed::with_vectors();
    let text = bed
        .read(SIGNED)
        .replace("schema_version: 3", "schema_version: 4");
    bed.write("new.yaml", text + "something_new: 1\n");
    let ran = verify(&bed, &["new.yaml"]).expect(1);
    assert!(
        ran.out.contains("upgrade attest to verify this receipt"),
        "{}",
        ran.out
    );
    assert_eq!(
        ran.out.matches("schema check failed").count(),
        4,
        "{}",
        ran.out
    );
}

#[test]
fn the_workspace_is_hashed_again_where_that_is_asked_for() {
    let bed = Bed::with_vectors();
    // What the three steps of the vectors leave.
    let made = std::process::Command::new("sh")
        .args(["-c", "mkdir -p out && cat src/a.txt src/b.txt > out/ab.txt"])
        .current_dir(bed.path("workspace"))
        .status()
        .unwrap();
    assert!(made.success());
    let args = [
        "--recompute",
        "--require",
        "recompute",
        "--workspace",
        "workspace",
        SIGNED,
    ];
    let ran = verify(&bed, &args).expect(0);
    assert!(ran.out.contains("  recompute    pass "), "{}", ran.out);
    bed.write("workspace/src/a.txt", "changed");
    let ran = verify(&bed, &args).expect(1);
    assert!(
        ran.out.contains("step 'build': input hash mismatch"),
        "{}",
        ran.out
    );
    verify(&bed, &["--recompute", SIGNED]).expect(1);
}

#[test]
fn requirements_refuse_what_only_was_not_checked() {
    let bed = Bed::with_vectors();
    let ran = verify(&bed, &["--require", "signature,success", SIGNED]).expect(0);
    assert!(
        ran.out.contains("  required: signature, success\n"),
        "{}",
        ran.out
    );
    let ran = verify(
        &bed,
        &["--require", "timestamp", "--require", "plugins", SIGNED],
    )
    .expect(1);
    assert!(
        ran.out
            .contains("REFUSED: requirement 'timestamp' not met: "),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("REFUSED: requirement 'plugins' not met: "),
        "{}",
        ran.out
    );
    let off = ["--check-signatures", "false"];
    verify(&bed, &[&off[..], &[SIGNED]].concat()).expect(0);
    verify(
        &bed,
        &[&off[..], &["--require", "signature", SIGNED]].concat(),
    )
    .expect(1);
    verify(&bed, &["--require", "nonsense", SIGNED])
        .expect(2)
        .says("expected one of");
    verify(&bed, &["--require", "log-inclusion", SIGNED])
        .expect(2)
        .says("log-inclusion");
}

#[test]
fn a_policy_file_refuses() {
    let bed = Bed::with_vectors();
    bed.write(
        "ok.toml",
        "version = 1\nrequire = [\"signature\"]\nsteps = [\"alone\", \"build\", \"test\"]\n",
    );
    verify(&bed, &["--policy", "ok.toml", SIGNED]).expect(0);
    bed.write(
        "steps.toml",
        "version = 1\nsteps = [\"alone\", \"build\"]\n",
    );
    let ran = verify(&bed, &["--policy", "steps.toml", SIGNED]).expect(1);
    assert!(
        ran.out.contains("REFUSED: requirement 'policy:steps'"),
        "{}",
        ran.out
    );
    bed.write("bad.toml", "version = 1\nsigner = 3\n");
    verify(&bed, &["--policy", "bad.toml", SIGNED])
        .expect(2)
        .says("`bad.toml`");
    verify(&bed, &["--policy", "gone.toml", SIGNED])
        .expect(2)
        .says("`gone.toml`");
}

#[test]
fn the_first_receipt_that_cannot_be_judged_ends_it() {
    let bed = Bed::with_vectors();
    bed.write("broken.yaml", "steps: [\n");
    let ran = verify(&bed, &["--format", "json", SIGNED, "gone.yaml", SIGNED]).expect(2);
    let seen = records(&ran);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1]["subject"], "gone.yaml");
    assert_eq!(seen[1]["verdict"], "error");
    assert_eq!(seen[1]["error"], "operational");
    assert!(ran.err.contains("`gone.yaml`"), "{}", ran.err);
    verify(&bed, &["broken.yaml", SIGNED])
        .expect(2)
        .says("broken.yaml");
    let text = verify(&bed, &["gone.yaml"]).expect(2);
    assert_eq!(text.out, "");
}

#[test]
fn a09_a_receipt_that_is_too_long_is_refused_unread() {
    let bed = Bed::with_vectors();
    let long = bed.read(SIGNED) + &"#".repeat(16 * 1024 * 1024);
    bed.write("long.yaml", long);
    let ran = verify(&bed, &["--format", "json", "long.yaml"]).expect(2);
    assert_eq!(records(&ran)[0]["error"], "resource-limit");
}

#[test]
fn a25_what_is_no_file_is_refused_and_not_waited_for() {
    let bed = Bed::with_vectors();
    let fifo = bed.path("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    verify(&bed, &["fifo"]).expect(2).says("not a regular file");
    verify(&bed, &["trust"])
        .expect(2)
        .says("not a regular file");
    verify(&bed, &["/dev/null"])
        .expect(2)
        .says("not a regular file");
}

#[test]
fn a_name_that_is_hostile_is_shown_and_not_obeyed() {
    let bed = Bed::with_vectors();
    let name = "evil\u{1b}[2J\u{202e}.yaml";
    std::fs::copy(bed.path(SIGNED), bed.path(name)).unwrap();
    let ran = verify(&bed, &[name]).expect(0);
    assert!(
        ran.out.starts_with("evil\\u{1b}[2J\\u{202e}.yaml: pass"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn wrong_invocations_say_what_to_do() {
    let bed = Bed::with_vectors();
    bed.attest(&["verify"]).expect(2).says("<RECEIPT>");
    verify(&bed, &["--check-signatures", "maybe", SIGNED])
        .expect(2)
        .says("true, false");
    verify(
        &bed,
        &[
            "--check-signatures",
            "false",
            "--trust-receipt-timestamp",
            SIGNED,
        ],
    )
    .expect(2)
    .says("requires --check-signatures true");
    verify(&bed, &["--format", "xml", SIGNED])
        .expect(2)
        .says("xml");
    verify(&bed, &["--offlin", SIGNED])
        .expect(2)
        .says("--offline");
}

#[test]
fn options_of_the_original_are_taken() {
    let bed = Bed::with_vectors();
    let args = [
        "--offline",
        "--trust-receipt-timestamp",
        "--check-signatures",
        "true",
        "--format",
        "text",
        SIGNED,
    ];
    verify(&bed, &args).expect(0);
}

#[test]
fn nothing_is_written() {
    let bed = Bed::with_vectors();
    let before = snapshot(bed.folder());
    verify(&bed, &[SIGNED]).expect(0);
    bed.attest(&["verify", SIGNED]).expect(1);
    assert_eq!(snapshot(bed.folder()), before);
}

/// The exit code with a standard output that nobody reads.
fn unread(bed: &Bed, args: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut program = bed.program(args);
    program.stdout(writer).status().unwrap().code()
}

#[test]
fn a_no_that_nobody_reads_is_still_a_no() {
    let bed = Bed::with_vectors();
    let trusted = ["verify", "--trust-store", "trust"];
    let code = |names: &[&str]| unread(&bed, &[&trusted[..], names].concat());
    assert_eq!(code(&[SIGNED]), Some(0));
    assert_eq!(code(&["r3_unsigned.yaml"]), Some(1));
    assert_eq!(code(&["r3_unsigned.yaml", SIGNED]), Some(1));
    assert_eq!(code(&["--format", "json", "r3_unsigned.yaml"]), Some(1));
    assert_eq!(code(&["--format", "json", "gone.yaml"]), Some(2));
    assert_eq!(unread(&bed, &["diff", SIGNED, "r6_wrapped.yaml"]), Some(1));
    bed.attest(&["init"]).expect(0);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a:\n    run: 'false'\n",
    );
    assert_eq!(unread(&bed, &["run"]), Some(1));
}

#[test]
fn options_without_effect_are_refused() {
    let bed = Bed::with_vectors();
    verify(&bed, &["--workspace", "workspace", SIGNED])
        .expect(2)
        .says("--workspace requires --recompute");
    verify(&bed, &["--workspace", "workspace", "--recompute", SIGNED]).says("");
    let import = ["import", "--format", "in-toto", "--trust-store", "trust"];
    bed.attest(&[&import[..], &["--workspace", "workspace", "x"]].concat())
        .expect(2)
        .says("--workspace requires no --trust-store");
}

#[test]
fn a_store_counts_without_signatures_too() {
    let bed = Bed::new();
    bed.copy_in("stamped", &stamped());
    let names = bed.names("stamped");
    let receipt = names.iter().find(|name| name.ends_with(".yaml")).unwrap();
    let receipt = format!("stamped/{receipt}");
    let without = ["verify", "--check-signatures", "false", &receipt];
    let ran = bed.attest(&[&without[..], &["--trust-store", "stamped/trust"]].concat());
    assert!(ran.out.contains("timestamp    pass"), "{ran:?}");
    let ran = bed.attest(&without);
    assert!(!ran.out.contains("timestamp    pass"), "{ran:?}");
}

#[test]
fn a_workspace_that_is_not_there_is_told_as_such() {
    let bed = Bed::with_vectors();
    for (folder, why) in [
        ("gone", "there is no such folder"),
        (SIGNED, "not a folder"),
    ] {
        let ran = verify(&bed, &["--recompute", "--workspace", folder, SIGNED]).expect(2);
        assert_eq!(ran.out, "");
        let said = format!("'{folder}' for '--workspace <DIR>'");
        assert!(
            ran.err.contains(&said) && ran.err.contains(why),
            "{}",
            ran.err
        );
    }
}

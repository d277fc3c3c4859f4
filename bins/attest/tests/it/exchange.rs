//! Receipts that travel: archives and statements of the original, and ours.

use std::path::Path;

use serde_json::Value;

use crate::bed::{Bed, Ran, snapshot};

const PIPELINE: &str = r#"version: "1"
name: demo
steps:
  one: {run: "mkdir -p out && cat src/a > out/b && ln -sf b out/l", inputs: [src], outputs: [out]}
  two: {run: "echo done", needs: [one]}
"#;

/// A workspace with a signed receipt, which is `receipt.yaml`.
fn built() -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.attest(&["keys", "generate", "--name", "me"]).expect(0);
    bed.write("src/a", "hello\n");
    bed.write("attest.yaml", PIPELINE);
    let ran = bed.attest(&["-q", "run", "--sign"]).expect(0);
    std::fs::copy(ran.out.trim_end(), bed.path("receipt.yaml")).unwrap();
    bed
}

fn archived() -> Bed {
    let bed = built();
    bed.attest(&[
        "causal",
        "export",
        "--receipt",
        "receipt.yaml",
        "-o",
        "a.zst",
    ])
    .expect(0);
    bed
}

fn exported(bed: &Bed, more: &[&str]) -> Ran {
    let mut args = vec!["export", "--receipt", "receipt.yaml", "--format", "in-toto"];
    args.extend(more);
    bed.attest(&args)
}

fn imported(bed: &Bed, file: &str, more: &[&str]) -> Ran {
    let mut args = vec!["import", file, "--format", "in-toto"];
    args.extend(more);
    bed.attest(&args)
}

/// Both options are called `--format`: the global one stands before the command.
#[test]
fn the_global_format_counts_beside_the_one_of_the_statement() {
    let bed = built();
    let export = ["export", "--receipt", "receipt.yaml", "--format", "in-toto"];
    let json = ["--format", "json"];
    let refused = bed.attest(&[&json, &export[..]].concat()).expect(2);
    assert_eq!(refused.says("--format json").out, "");
    assert_eq!(exported(&bed, &["-o", "e"]).expect(0).out, "e\n");
    let import = ["import", "e", "--format", "in-toto"];
    let record = bed.attest(&[&json, &import[..]].concat()).expect(0).out;
    assert_eq!(
        record,
        imported(&bed, "e", &["--report", "json"]).expect(0).out
    );
    assert_eq!(
        serde_json::from_str::<Value>(&record).unwrap()["verdict"],
        "pass"
    );
    let text = imported(&bed, "e", &[]).expect(0).out;
    assert!(text.starts_with("e: pass\n"), "{text}");
    // What a command says itself is nearer than what holds for all.
    let both = [&json, &import[..], &["--report", "text"]].concat();
    assert_eq!(bed.attest(&both).expect(0).out, text);
    let behind = ["import", "e", "--format", "json"];
    bed.attest(&behind)
        .expect(2)
        .says("goes before the command");
}

fn last(ran: &Ran) -> &str {
    ran.out.lines().last().unwrap_or_default()
}

#[test]
fn the_originals_archives_and_statements_are_accepted() {
    let bed = Bed::with_vectors();
    for name in ["passed", "failed"] {
        let archive = format!("v0.4.0/{name}_signed.attest.tar.zst");
        let ran = bed
            .attest(&[
                "verify",
                "--trust-store",
                "v0.4.0/trust",
                "--archive",
                &archive,
                "--require",
                "linkage",
            ])
            .expect(0);
        assert_eq!(last(&ran), format!("archive {archive}: pass"));
        assert!(ran.out.contains("\n  chain-linkage pass "), "{}", ran.out);
        let statement = format!("v0.4.0/{name}_signed.intoto.json");
        let ran = imported(
            &bed,
            &statement,
            &["--trust-store", "v0.4.0/trust", "--require", "signature"],
        );
        assert!(
            ran.expect(0)
                .out
                .starts_with(&format!("{statement}: pass\n"))
        );
    }
    let root = [
        "--trust-store",
        "v0.4.0/trust",
        "--artifact-root",
        "v0.4.0/workspace",
    ];
    let ran = imported(&bed, "v0.4.0/passed_signed.intoto.json", &root).expect(1);
    // The collection holds the link among the outputs as a file.
    assert!(ran.out.contains("is not a symbolic link"), "{}", ran.out);
}

#[test]
fn an_archive_is_made_alike_twice_and_verifies_elsewhere() {
    let bed = archived();
    bed.attest(&[
        "causal",
        "export",
        "--receipt",
        "receipt.yaml",
        "-o",
        "b.zst",
    ])
    .expect(0);
    let bytes = |name| std::fs::read(bed.path(name)).unwrap();
    assert_eq!(bytes("a.zst"), bytes("b.zst"));
    let elsewhere = Bed::new();
    elsewhere.write("a.zst", bytes("a.zst"));
    // The key in the archive makes nobody trusted.
    let ran = elsewhere
        .attest(&["verify", "--archive", "a.zst"])
        .expect(1);
    assert!(ran.out.contains("untrusted key"), "{}", ran.out);
    assert_eq!(last(&ran), "archive a.zst: fail");
    let store = bed.path(".attest/trust");
    let before = snapshot(elsewhere.folder());
    let ran = elsewhere
        .attest(&[
            "verify",
            "--archive",
            "a.zst",
            "--trust-store",
            store.to_str().unwrap(),
            "--format",
            "json",
        ])
        .expect(0);
    assert_eq!(snapshot(elsewhere.folder()), before);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["receipt"], "a.zst:receipt.yaml");
    assert_eq!(lines[0]["checks"][5]["name"], "chain-linkage");
    assert_eq!(
        ran.out.lines().last().unwrap(),
        r#"{"archive":"a.zst","verdict":"pass","partial":false}"#
    );
}

#[test]
fn a31_an_event_that_is_missing_or_changed_is_not_exported_as_if_it_were_there() {
    let bed = built();
    let events = bed.names(".attest/causal_ledger/events");
    let file = format!(".attest/causal_ledger/events/{}", events[0]);
    let good = bed.read(&file);
    let export = |more: &[&str]| {
        let mut args = vec![
            "causal",
            "export",
            "--receipt",
            "receipt.yaml",
            "-o",
            "a.zst",
        ];
        args.extend(more);
        bed.attest(&args)
    };
    for changed in [
        good.replace("\"exit_code\": 0", "\"exit_code\": 7"),
        "{".to_owned(),
        String::new(),
    ] {
        bed.write(&file, changed);
        export(&[])
            .expect(1)
            .says("is not believed")
            .says("--allow-partial");
        assert!(!bed.path("a.zst").exists());
    }
    std::fs::remove_file(bed.path(&file)).unwrap();
    export(&[]).expect(1).says("not complete");
    assert!(!bed.path("a.zst").exists());
    export(&["--allow-partial"]).expect(0).says("partial");
    let ran = bed.attest(&["verify", "--archive", "a.zst"]).expect(0);
    assert_eq!(last(&ran), "archive a.zst: pass (partial)");
    let ran = bed
        .attest(&["verify", "--archive", "a.zst", "--require", "linkage"])
        .expect(1);
    assert_eq!(last(&ran), "archive a.zst: fail (partial)");
    assert!(
        ran.out.contains("REFUSED: requirement 'linkage' not met"),
        "{}",
        ran.out
    );
}

#[test]
fn a_receipt_cannot_name_files_outside_the_ledger() {
    let bed = built();
    let text = bed.read("receipt.yaml");
    let id = bed.names(".attest/causal_ledger/events")[0].replace(".json", "");
    bed.write("secret.json", "{}");
    bed.write("receipt.yaml", text.replace(&id, "../../../secret"));
    let args = [
        "causal",
        "export",
        "--receipt",
        "receipt.yaml",
        "-o",
        "a.zst",
    ];
    bed.attest(&args).expect(1).says("../../../secret");
    assert!(!bed.path("a.zst").exists());
}

#[test]
fn limits_of_an_archive_are_met_exactly_and_told_apart() {
    let bed = archived();
    let size = std::fs::metadata(bed.path("a.zst")).unwrap().len();
    let verify = |option: &str, value: u64| {
        bed.attest(&[
            "verify",
            "--format",
            "json",
            "--archive",
            "a.zst",
            option,
            &value.to_string(),
        ])
    };
    verify("--max-archive-bytes", size).expect(0);
    verify("--max-entries", 5).expect(0);
    for (option, value, words) in [
        ("--max-archive-bytes", size - 1, "archive bytes"),
        ("--max-entries", 4, "4 entries"),
        ("--max-entry-bytes", 10, "10 bytes of an entry"),
        ("--max-unpacked-bytes", 4096, "4096 unpacked bytes"),
    ] {
        let ran = verify(option, value).expect(2).says(words);
        let record: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(record["verdict"], "error");
        assert_eq!(record["error"], "resource-limit");
        assert_eq!(record["subject"], "a.zst");
        // Without an archive the option could not take effect.
        let args = ["verify", "receipt.yaml", option, "1"];
        bed.attest(&args).expect(2).says("requires --archive");
    }
    bed.attest(&["verify", "receipt.yaml", "--archive", "a.zst"])
        .expect(2);
    bed.attest(&["verify"]).expect(2);
}

#[test]
fn what_is_no_archive_is_refused_with_a_line() {
    let bed = archived();
    let good = std::fs::read(bed.path("a.zst")).unwrap();
    for (bytes, words) in [
        (Vec::new(), "not a zstd archive"),
        (b"plain".to_vec(), "not a zstd archive"),
        (good[..good.len() / 2].to_vec(), ""),
        ([good.as_slice(), &good].concat(), "goes on after its end"),
    ] {
        bed.write("bad.zst", bytes);
        let ran = bed
            .attest(&["verify", "--archive", "bad.zst"])
            .expect(2)
            .says(words);
        assert_eq!(ran.out, "");
    }
    bed.attest(&["verify", "--archive", "absent"])
        .expect(2)
        .says("absent");
    bed.attest(&["verify", "--archive", "."]).expect(2);
}

#[test]
fn a_statement_has_both_digests_of_files_that_are_at_hand() {
    let bed = built();
    let ran = exported(&bed, &[]).expect(0);
    assert_eq!(ran.err, "");
    assert!(ran.out.ends_with("]}\n") && ran.out.lines().count() == 1);
    bed.write("s.json", &ran.out);
    let again = exported(&bed, &["-o", "again.json"]).expect(0);
    assert_eq!(again.out, "again.json\n");
    assert_eq!(bed.read("again.json"), ran.out);
    let text = imported(
        &bed,
        "s.json",
        &["--artifact-root", ".", "--require", "artifacts,success"],
    );
    assert!(text.expect(0).out.starts_with("s.json: pass\n"));

    // Elsewhere there are no files; here one has changed, and then is behind a link.
    let mut without = bed.program(&[
        "export",
        "--receipt",
        "receipt.yaml",
        "--format",
        "in-toto",
        "--workspace",
        "src",
        "--allow-unsigned",
    ]);
    crate::bed::ran(&mut without)
        .expect(0)
        .says("subjects without SHA-256: out/b is not there");
    bed.write("out/b", "other\n");
    exported(&bed, &[]).expect(0).says("out/b has changed");
    let ran = imported(&bed, "s.json", &["--artifact-root", "."]).expect(1);
    assert!(
        ran.out.contains("'out/b' differs from the receipt's"),
        "{}",
        ran.out
    );
    std::fs::rename(bed.path("out"), bed.path("real")).unwrap();
    std::os::unix::fs::symlink("real", bed.path("out")).unwrap();
    exported(&bed, &[]).expect(0).says("is behind a link");
}

#[test]
fn a_fifo_among_the_files_does_not_hang() {
    let bed = built();
    std::fs::remove_file(bed.path("out/b")).unwrap();
    nix::unistd::mkfifo(&bed.path("out/b"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    exported(&bed, &[])
        .expect(0)
        .says("out/b is not a regular file");
}

#[test]
fn what_is_not_signed_or_does_not_hold_is_refused() {
    let bed = built();
    let good = bed.read("receipt.yaml");
    bed.write("receipt.yaml", good.replace("exit_code: 0", "exit_code: 3"));
    exported(&bed, &["--allow-unsigned"])
        .expect(1)
        .says("refusing to export")
        .says("does not verify");
    let unsigned = bed.attest(&["-q", "run"]).expect(0);
    let path = unsigned.out.trim_end();
    std::fs::copy(path, bed.path("receipt.yaml")).unwrap();
    exported(&bed, &[])
        .expect(1)
        .says("is unsigned")
        .says("--allow-unsigned");
    let ran = exported(&bed, &["--allow-unsigned"]).expect(0);
    assert!(ran.out.ends_with("\"signatures\":[]}\n"));
    bed.write("u.json", &ran.out);
    let ran = imported(&bed, "u.json", &[]).expect(1);
    assert!(
        ran.out.contains("FAIL     envelope is unsigned"),
        "{}",
        ran.out
    );
    let key = "0".repeat(32);
    exported(&bed, &["--allow-unsigned", "--key", &key])
        .expect(2)
        .says("--key requires a signed receipt");

    bed.write("receipt.yaml", &good);
    std::fs::remove_dir_all(bed.path(".attest/keys")).unwrap();
    let ran = exported(&bed, &[])
        .expect(1)
        .says("no key to sign the envelope");
    assert_eq!(ran.out, "");
    exported(&bed, &["--allow-unsigned"])
        .expect(0)
        .says("unsigned");
    bed.write("receipt.yaml", "steps: []\n");
    exported(&bed, &[]).expect(1).says("is not a receipt");
}

#[test]
fn a_private_key_never_travels_along() {
    let bed = built();
    let keys = bed.names(".attest/keys");
    let key = keys.iter().find(|name| name.ends_with(".key")).unwrap();
    std::fs::copy(
        bed.path(&format!(".attest/keys/{key}")),
        bed.path(".attest/trust/wrong.pub"),
    )
    .unwrap();
    let ran = exported(&bed, &[]).expect(2).says("holds a private key");
    assert_eq!(ran.out, "");
}

#[test]
fn options_without_a_surface_are_refused_in_a_line() {
    let bed = built();
    for (args, words) in [
        (
            &[
                "export",
                "--receipt",
                "receipt.yaml",
                "--format",
                "in-toto",
                "--identity-bundle",
                "x",
            ][..],
            "identities",
        ),
        (
            &[
                "import",
                "s",
                "--format",
                "in-toto",
                "--identity-policy",
                "x",
            ],
            "identities",
        ),
        (
            &[
                "import",
                "s",
                "--format",
                "in-toto",
                "--require",
                "identity",
            ],
            "no check in this program",
        ),
        (
            &["import", "s", "--format", "in-toto", "--require", "x"],
            "unknown requirement",
        ),
        (
            &["import", "s", "--format", "slsa"],
            "the only format of a statement is `in-toto`",
        ),
        (&["import", "s"], "--format"),
        (&["export", "--receipt", "receipt.yaml"], "--format"),
        (&["import", "absent", "--format", "in-toto"], "absent"),
    ] {
        let ran = bed.attest(args).expect(2).says(words);
        assert_eq!(ran.out, "");
    }
    bed.write("s", "not JSON");
    let ran = imported(&bed, "s", &["--report", "json"])
        .expect(2)
        .says("unreadable JSON");
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(record["error"], "operational");
}

#[test]
fn the_record_of_an_import_has_its_keys_in_order() {
    let bed = Bed::with_vectors();
    let args = ["--trust-store", "v0.4.0/trust", "--report", "json"];
    let ran = imported(&bed, "v0.4.0/passed_signed.intoto.json", &args).expect(0);
    let mut rest = ran.out.as_str();
    for key in [
        "receipt",
        "verdict",
        "checks",
        "signed_by",
        "interop",
        "original_verdict",
        "semantics",
        "warnings",
        "trust_material",
        "execution",
        "policy",
    ] {
        let (_, after) = rest
            .split_once(&format!("\"{key}\":"))
            .unwrap_or_else(|| panic!("{key}"));
        rest = after;
    }
}

#[test]
fn the_ledger_beside_the_receipt_is_the_one_that_is_meant() {
    let bed = built();
    let receipts = bed.names(".attest/receipts");
    let receipt = bed.path(&format!(".attest/receipts/{}", receipts[0]));
    let elsewhere = Bed::new();
    let receipt = receipt.to_str().unwrap();
    let args = ["causal", "export", "--receipt", receipt, "-o", "a.zst"];
    elsewhere.attest(&args).expect(0);
    assert!(Path::new(&elsewhere.path("a.zst")).exists());
    let named = [args.as_slice(), &["--state-dir", "."]].concat();
    elsewhere.attest(&named).expect(1).says("not complete");
}

#[test]
fn nothing_is_written_over_what_is_no_file() {
    let bed = built();
    nix::unistd::mkfifo(&bed.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    bed.write("real", "old");
    std::os::unix::fs::symlink("real", bed.path("link")).unwrap();
    for (output, code) in [("pipe", 2), ("src", 2), ("absent/x", 2), ("link", 0)] {
        let args = [
            "causal",
            "export",
            "--receipt",
            "receipt.yaml",
            "-o",
            output,
        ];
        bed.attest(&args).expect(code);
        exported(&bed, &["-o", output]).expect(code);
    }
    let still = |name: &str| std::fs::symlink_metadata(bed.path(name)).unwrap();
    assert!(!still("pipe").is_file() && still("src").is_dir() && still("link").is_symlink());
    assert!(bed.read("real").starts_with("{\"payload\""));
}

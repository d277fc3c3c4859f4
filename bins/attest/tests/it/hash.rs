//! `attest hash`: the hashes of receipts, by hand.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::bed::{Bed, Ran};

/// The command of the step `build` of the vectors.
const BUILD: &str = "mkdir -p out && cat src/a.txt src/b.txt > out/ab.txt\n\
    printf 'ünï\\t\\033[1mx\\033[0m back\\\\slash \"q\" \\001 end\\n'\n";
const NO_OUTPUTS: &str = "attest-manifest/v1\n";

fn build(bed: &Bed, more: &[&str]) -> Ran {
    let mut args = vec!["hash", "--workspace", "workspace", "--input", "src/"];
    args.extend(["--run", BUILD]);
    args.extend(more);
    bed.attest(&args)
}

#[test]
fn the_manifest_is_the_originals_and_its_hash_the_receipts() {
    let bed = Bed::with_vectors();
    assert_eq!(
        build(&bed, &[]).expect(0).out,
        "d8a676e0da6cf6ffef3fa5f12eac8259d192f8c8d8e7734e1658d2fe99998ed2\n"
    );
    let manifest = build(&bed, &["--manifest"]).expect(0).out;
    assert_eq!(manifest, bed.read("build.input-manifest.txt"));
}

#[test]
fn outputs_are_hashed_without_a_command() {
    let bed = Bed::with_vectors();
    bed.write("out/ab.txt", "x");
    let args = [
        "hash",
        "--manifest",
        "--output",
        "out",
        "--output",
        "out/ab.txt",
    ];
    let manifest = bed.attest(&args).expect(0).out;
    let lines: Vec<&str> = manifest.lines().collect();
    assert_eq!(lines.len(), 2, "{manifest}");
    assert!(manifest.starts_with(NO_OUTPUTS) && lines[1].ends_with(" out/ab.txt"));
    let record = bed.attest(&["--format", "json", "hash", "--manifest", "--output", "out"]);
    let record: serde_json::Value = serde_json::from_str(&record.expect(0).out).unwrap();
    assert_eq!(record["manifest"][0]["path"], "out/ab.txt");
    assert_eq!(record["manifest"][0]["kind"], "file");
    assert_eq!(record["hash"].as_str().unwrap().len(), 64);
}

#[test]
fn a25_what_cannot_be_hashed_is_exit_code_1_and_named() {
    let bed = Bed::new();
    let output = |path: &str| bed.attest(&["hash", "--name", "s", "--output", path]);
    output("gone")
        .expect(1)
        .says("step 's': declared output not found: gone");
    output("src/*.txt")
        .expect(1)
        .says("declared output not found: src/*.txt");
    symlink("/etc/passwd", bed.path("link")).unwrap();
    output("link").expect(1).says("leads out of the workspace");
    let made = Command::new("mkfifo")
        .arg(bed.path("fifo"))
        .status()
        .unwrap();
    assert!(made.success());
    output("fifo").expect(1).says("is a FIFO");
}

#[test]
fn a26_paths_that_climb_or_forge_a_line_are_exit_code_1() {
    let bed = Bed::new();
    for path in ["../x", "/etc/passwd", "a/../b", "a\nf:0 b", ""] {
        let ran = bed.attest(&["hash", "--output", path]).expect(1);
        assert_eq!(ran.out, "");
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
}

#[test]
fn a_mode_that_means_nothing_is_refused() {
    let bed = Bed::new();
    bed.attest(&["hash"]).expect(2).says("nothing to hash");
    bed.attest(&["hash", "--manifest"])
        .expect(2)
        .says("--output");
    bed.attest(&["hash", "--input", "x"])
        .expect(2)
        .says("--input requires --run");
    bed.attest(&["hash", "--run", "x", "--output", "y"])
        .expect(2)
        .says("requires no --run");
    for blank in ["", " ", "\n\t"] {
        bed.attest(&["hash", "--run", blank])
            .expect(2)
            .says("--run is blank");
    }
    bed.attest(&["hash", "--output"]).expect(2);
    let ran = bed
        .attest(&["hash", "--workspace", "gone", "--output", "x"])
        .expect(2);
    assert!(ran.err.contains("there is no such folder"), "{}", ran.err);
}

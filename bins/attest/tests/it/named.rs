//! What is named by an option: folders that have to be there, `-`, receipts that stand in the way.

use test_case::test_case;

use crate::bed::{Bed, ran, snapshot};

const UNSIGNED: &str = "r3_unsigned.yaml";

#[test_case("keys generate --name k --workspace nope"; "keys generate")]
#[test_case("keys list --workspace nope"; "keys list")]
#[test_case("capsule init --name c --image i --workspace nope"; "capsule init")]
#[test_case("causal events --workspace nope"; "causal events")]
#[test_case("causal stats --workspace nope"; "causal stats")]
#[test_case("causal stats --state-dir nope"; "stats of a state folder")]
#[test_case("causal chain 00000000 --save --state-dir nope"; "chain of a state folder")]
#[test_case("verify r --workspace nope"; "verify")]
#[test_case("sign r --workspace nope"; "sign")]
#[test_case("hash --run true --workspace nope"; "hash")]
#[test_case("import e --format in-toto --workspace nope"; "import")]
#[test_case("run --wrap --name s --workspace nope -- touch ran"; "wrap")]
#[test_case("keys list --workspace file"; "a file")]
fn a_folder_that_is_named_is_there(command: &str) {
    let bed = Bed::new();
    bed.write("file", "");
    let before = snapshot(bed.folder());
    let words: Vec<_> = command.split(' ').collect();
    let ran = bed.attest(&words).expect(2);
    let why = if command.ends_with("file") {
        "'file' for '--workspace <DIR>': it is not a folder"
    } else {
        "there is no such folder"
    };
    let first = ran.err.lines().next().unwrap();
    assert!(first.ends_with(why), "{}", ran.err);
    assert_eq!(ran.out, "");
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_state_folder_of_the_environment_is_there_for_those_who_read_it() {
    let bed = Bed::new();
    bed.write("attest.yaml", "version: '1'\nsteps:\n  a: {run: 'true'}\n");
    let with = |args: &[&str]| {
        let mut program = bed.program(args);
        ran(program.env("ATTEST_STATE_DIR", "state"))
    };
    for command in ["stats", "events"] {
        let ran = with(&["causal", command]).expect(2);
        assert_eq!(
            ran.err,
            "error: ATTEST_STATE_DIR names `./state`, but there is no such folder\n"
        );
    }
    // Those who write make it.
    with(&["run", "-q"]).expect(0);
    assert!(with(&["causal", "stats"]).expect(0).out.contains("events"));
}

fn with_a_key() -> Bed {
    let bed = Bed::with_vectors();
    bed.attest(&["keys", "generate", "--name", "me"]).expect(0);
    bed
}

#[test]
fn a_dash_is_standard_output_where_bytes_make_sense() {
    let bed = with_a_key();
    let signed = bed.attest(&["sign", UNSIGNED, "--output", "-"]).expect(0);
    bed.write("signed.yaml", &signed.out);
    bed.attest(&["verify", "signed.yaml"]).expect(0);
    assert!(bed.read(UNSIGNED).contains("signature: null"));
    let id = bed.attest(&["keys", "list"]).expect(0).out;
    let id = id.split(' ').next().unwrap();
    let pem = bed.attest(&["keys", "export", id, "-o", "-"]).expect(0).out;
    assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----\n"));
    let export = [
        "causal",
        "export",
        "--receipt",
        "signed.yaml",
        "--allow-partial",
        "-o",
        "-",
    ];
    let archive = bed.program(&export).output().unwrap();
    assert_eq!(archive.status.code(), Some(0), "{archive:?}");
    bed.write("a.zst", archive.stdout);
    bed.attest(&["verify", "--archive", "a.zst"]).expect(0);
    for args in [&export[..], &["sign", UNSIGNED, "--output", "-"]] {
        bed.attest(&[args, &["--format", "json"]].concat())
            .expect(2)
            .says("--format json requires a file as --output");
    }
    assert!(!bed.path("-").exists());
}

#[test_case("run --output -", "--output"; "output")]
#[test_case("run --receipt -", "--receipt"; "receipt")]
#[test_case("run --wrap --name s --receipt - -- touch ran", "--receipt"; "wrapped receipt")]
#[test_case("run --wrap --name s --report - -- touch ran", "--report"; "wrapped report")]
fn a_dash_is_refused_where_standard_output_has_another_use(command: &str, option: &str) {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a: {run: 'touch ran'}\n",
    );
    let words: Vec<_> = command.split(' ').collect();
    let told = format!("{option} does not write to standard output");
    bed.attest(&words).expect(2).says(&told).says("`./-`");
    assert!(!bed.path("ran").exists() && !bed.path("-").exists());
}

#[test]
fn a_signed_receipt_is_not_written_over_by_another() {
    let bed = with_a_key();
    let other = "r1_pipeline_signed.yaml";
    let before = bed.read(other);
    let ran = bed
        .attest(&["sign", UNSIGNED, "--output", other])
        .expect(2)
        .says("is another signed receipt, which is not written over");
    assert_eq!(ran.out, "");
    assert_eq!(bed.read(other), before);
    // Another file is, and so is the receipt itself by whatever name.
    bed.write("text", "x");
    bed.attest(&["sign", UNSIGNED, "--output", "text"])
        .expect(0);
    let itself = format!("./{UNSIGNED}");
    bed.attest(&["sign", UNSIGNED, "--output", &itself])
        .expect(0);
    bed.attest(&["verify", "text", UNSIGNED]).expect(0);
    // The authority is never asked: nobody listens there.
    bed.attest(&[
        "timestamp",
        UNSIGNED,
        "--tsa",
        "http://127.0.0.1:9/",
        "--output",
        other,
    ])
    .expect(2)
    .says("is another signed receipt, which is not written over");
    assert_eq!(bed.read(other), before);
}

#[test]
fn builds_that_agree_are_said_to() {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a: {run: 'true'}\n  b: {run: 'true'}\n",
    );
    let args = ["run", "--check-reproducibility"];
    bed.attest(&args)
        .expect(0)
        .says("reproducibility: 2 builds agree, 2 steps compared\n");
    let quiet = bed
        .attest(&["run", "-q", "--check-reproducibility"])
        .expect(0);
    assert_eq!(quiet.err, "");
}

#[test]
fn isolation_that_is_not_offered_is_refused_with_what_is() {
    let bed = Bed::new();
    bed.attest(&["run", "--verify"])
        .expect(2)
        .says("--verify is not offered")
        .says("`capsule: NAME`");
}

#[test]
fn import_requires_what_it_can_establish() {
    let bed = Bed::new();
    let required = |name: &str| {
        bed.attest(&["import", "e", "--format", "in-toto", "--require", name])
            .expect(2)
    };
    required("recompute").says("'recompute' is checked by `attest verify`, not here");
    required("linkage").says("'linkage' is checked by `attest verify --archive`, not here");
    required("nonsense")
        .says("signature, timestamp, artifacts, trust, success, plugins, plugin:NAME");
    bed.attest(&["verify", "r", "--require", "artifacts"])
        .expect(2)
        .says("'artifacts' is checked by `attest import`, not here");
}

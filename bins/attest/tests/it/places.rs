//! What a run is asked to write, beside what it hashes: refused before anything is made.

use std::os::unix::fs::symlink;

use test_case::test_case;

use crate::bed::{Bed, snapshot};

const PIPELINE: &str = "\
version: '1'
steps:
  make:
    run: touch ran; cp in out
    inputs: [in, src/]
    outputs: [out]
";

fn bed(pipeline: &str) -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", pipeline);
    bed.write("in", "source");
    bed.write("src/a", "source");
    symlink("src", bed.path("link")).unwrap();
    bed
}

#[test_case("--output in", "--output names `in`, which clashes with the declared input `in` of step 'make'"; "an input")]
#[test_case("--receipt out", "--receipt names `out`, which clashes with the declared output `out`"; "an output")]
#[test_case("--output link/../src/r", "which clashes with the declared input `src/`"; "below an input")]
#[test_case("--output link/r", "which clashes with the declared input `src/`"; "through a link")]
#[test_case("--output ./attest.yaml", "--output names the pipeline file"; "the pipeline file")]
#[test_case("--state-dir src/st", "the state folder `src/st` lies in the declared input `src/`"; "state in an input")]
#[test_case("--state-dir link/st", "the state folder `link/st` lies in the declared input `src/`"; "state through a link")]
#[test_case("--state-dir new --output new", "name the same place: `new`"; "state and output")]
#[test_case("--check-reproducibility --output out/r", "which clashes with the declared output `out`"; "built twice")]
#[test_case("--wrap --name s --output out --receipt out", "--receipt names `out`, which clashes with the declared output `out` of step 's'"; "wrapped receipt")]
#[test_case("--wrap --name s --output out --report out", "--report names `out`, which clashes with the declared output `out`"; "wrapped report")]
#[test_case("--wrap --name s --input src --report src/r", "--report names `src/r`, which clashes with the declared input `src`"; "report in an input")]
#[test_case("--wrap --name s --receipt r --report src/../r", "--report and --receipt name the same place"; "receipt and report")]
#[test_case("--wrap --name s --input src --state-dir src/st", "the state folder `src/st` lies in the declared input `src`"; "wrapped state")]
#[test_case("--wrap --name s --input .", "the state folder"; "wrapped workspace")]
fn what_is_written_is_not_what_is_hashed(options: &str, told: &str) {
    let bed = bed(PIPELINE);
    let before = snapshot(bed.folder());
    let mut words = vec!["run"];
    words.extend(options.split(' '));
    if options.contains("--wrap") {
        words.extend(["--", "touch", "ran", "out"]);
    }
    let ran = bed.attest(&words).expect(2).says(told).says("hint: ");
    assert_eq!(ran.out, "");
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_wrapped_commands_workspace_is_where_its_paths_are() {
    let bed = bed(PIPELINE);
    let wrap = |receipt: &str| {
        bed.attest(&[
            "run",
            "--wrap",
            "--name",
            "s",
            "--workspace",
            "src",
            "--output",
            "out",
            "--receipt",
            receipt,
            "--",
            "touch",
            "out",
        ])
    };
    wrap("src/out").expect(2).says("clashes with");
    assert!(!bed.path("src/out").exists());
    wrap("out").expect(0);
    assert!(bed.read("out").contains("signature"));
}

#[test]
fn state_in_what_is_declared_is_refused_and_beside_it_recomputes() {
    let steps: Vec<String> = ["a", "b"]
        .iter()
        .map(|name| format!("  {name}: {{run: 'touch ran', inputs: [.]}}\n"))
        .collect();
    let bed = bed(&format!("version: '1'\nsteps:\n{}", steps.concat()));
    let before = snapshot(bed.folder());
    bed.attest(&["run", "--jobs", "2"])
        .expect(2)
        .says("lies in the declared input `.` of step 'a'")
        .says("--state-dir");
    assert_eq!(snapshot(bed.folder()), before);

    let quiet = steps.concat().replace("touch ran", "true");
    bed.write("attest.yaml", format!("version: '1'\nsteps:\n{quiet}"));
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().to_str().unwrap();
    let ran = bed
        .attest(&["run", "-q", "--jobs", "2", "--state-dir", state])
        .expect(0);
    let receipt = ran.out.trim_end();
    let args = [
        "verify",
        "--recompute",
        "--check-signatures",
        "false",
        receipt,
    ];
    assert!(
        bed.attest(&args)
            .expect(0)
            .out
            .contains("recompute    pass")
    );
}

#[test]
fn hash_takes_the_workspace_and_warns_of_state_in_it() {
    let bed = bed(PIPELINE);
    let warning = "the state folder `";
    let whole = ["hash", "--run", "true", "--input", "."];
    let ran = bed.attest(&whole).expect(0).says(warning);
    assert_eq!(ran.out.trim_end().len(), 64);
    let ran = bed.attest(&["hash", "--run", "true", "--input", "src"]);
    assert_eq!(ran.expect(0).err, "");
    std::fs::remove_dir_all(bed.path(".attest")).unwrap();
    assert_eq!(bed.attest(&whole).expect(0).err, "");
}

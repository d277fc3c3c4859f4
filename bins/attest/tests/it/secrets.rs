//! A secret in every argument that a message, a receipt or a file's name could repeat.

use test_case::test_case;

use crate::bed::{Bed, Ran, ran, snapshot};

const CANARY: &str = "canary-c1b5e9";

fn attest(bed: &Bed, args: &[&str]) -> Ran {
    let args: Vec<String> = args.iter().map(|a| a.replace("CANARY", CANARY)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = ran(bed.program(&args).env("TOKEN", CANARY));
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains(CANARY), "{text}");
    }
    ran
}

/// Requires that no file has the value in its name or text.
#[track_caller]
fn nothing_knows(bed: &Bed, but: &[&str]) {
    for (path, bytes) in snapshot(bed.folder()) {
        let name = path.strip_prefix(bed.folder()).unwrap().to_string_lossy();
        if !but.contains(&name.as_ref()) {
            assert!(!name.contains(CANARY), "{name}");
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(CANARY), "{name}: {text}");
        }
    }
}

const WRAP: [&str; 4] = ["run", "--wrap", "--secret", "TOKEN"];

#[test_case(&["--name", "CANARY", "--", "touch", "ran"], "receipt.provenance.pipeline_name"; "name")]
#[test_case(&["--name", "a", "--output", "o/CANARY-missing", "--", "touch", "ran"], "steps[0].outputs[0] (`o/[redacted TOKEN]-missing`)"; "output")]
#[test_case(&["--name", "a", "--input", "CANARY", "--", "touch", "ran"], "steps[0].inputs[0]"; "input")]
#[test_case(&["--name", "a", "--receipt", "CANARY.yaml", "--", "touch", "ran"], "the path of the receipt"; "receipt")]
#[test_case(&["--name", "a", "--state-dir", "CANARY", "--", "touch", "ran"], "the path of the state folder"; "state")]
fn a_fact_with_a_secret_is_refused(args: &[&str], place: &str) {
    let bed = Bed::new();
    let args: Vec<&str> = WRAP.iter().chain(args).copied().collect();
    let ran = attest(&bed, &args).expect(2).says(place);
    assert!(ran.err.contains("secret `TOKEN`"), "{}", ran.err);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert!(!bed.path("ran").exists());
    nothing_knows(&bed, &[]);
}

#[test]
fn a_message_has_the_secret_replaced() {
    let bed = Bed::new();
    let wrap = |args: &[&str]| {
        let args: Vec<&str> = WRAP
            .iter()
            .chain(["--name", "a"].iter())
            .chain(args)
            .copied()
            .collect();
        attest(&bed, &args)
    };
    wrap(&["--", "/nonexistent/CANARY"])
        .expect(127)
        .says("/nonexistent/[redacted TOKEN]");
    wrap(&["--report", "CANARY/report", "--", "true"])
        .expect(2)
        .says("`[redacted TOKEN]`");
    wrap(&["--report", "report", "--", "/nonexistent/CANARY"]).expect(127);
    assert!(bed.read("report").contains("/nonexistent/[redacted TOKEN]"));
    wrap(&["--workspace", "CANARY", "--receipt", "r", "--", "true"])
        .expect(2)
        .says("[redacted TOKEN]");
    wrap(&["--", "echo", "CANARY"])
        .expect(0)
        .says("the command line holds a secret value");
    nothing_knows(&bed, &[]);
}

#[test]
fn a_pipeline_keeps_its_secrets_too() {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    let pipeline = |steps: &str| {
        let text = format!("version: '1'\nsecrets: [TOKEN]\nsteps:\n  a: {{{steps}}}\n");
        bed.write("attest.yaml", text.replace("CANARY", CANARY));
    };
    pipeline("run: 'mkdir o; touch o/$TOKEN', outputs: [o]");
    attest(&bed, &["run"])
        .expect(2)
        .says("receipt.provenance.artifacts[0].path");
    attest(&bed, &["run", "--check-reproducibility"])
        .expect(2)
        .says("receipt.provenance.artifacts[0].path");
    std::fs::remove_dir_all(bed.path("o")).unwrap();
    pipeline("run: 'true', working_dir: CANARY");
    attest(&bed, &["run"])
        .expect(2)
        .says("working_dir '[redacted TOKEN]'");
    attest(&bed, &["run", "--output", "CANARY/r.yaml"])
        .expect(2)
        .says("[redacted TOKEN]");
    attest(&bed, &["run", "--state-dir", "attest.yaml/CANARY"]).expect(2);
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
    nothing_knows(&bed, &["attest.yaml"]);
}

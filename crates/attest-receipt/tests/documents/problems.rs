//! What is incoherent in a receipt whose fields all have their types.

use serde_json::{Value, json};

use crate::sample::{self, HASH, full, with};

/// Returns the problems after a change at one place, which must be read.
fn problems(pointer: &str, value: Value) -> Vec<String> {
    let shown = format!("{pointer} = {value}");
    match with(pointer, value) {
        Ok(receipt) => receipt.problems(),
        Err(error) => panic!("{shown}: {error}"),
    }
}

fn one_problem(pointer: &str, value: Value) -> String {
    let problems = problems(pointer, value);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn a24_every_hash_is_64_lowercase_digits() {
    for (pointer, what) in [
        ("/pipeline_hash", "pipeline_hash"),
        ("/steps/0/input_hash", "step 'build': input_hash"),
        ("/steps/1/output_hash", "step 'test': output_hash"),
        ("/steps/0/capsule_hash", "step 'build': capsule_hash"),
        ("/causal_events/0", "causal_events"),
        ("/causal_chain_hash", "causal_chain_hash"),
        (
            "/provenance/steps/0/command_hash",
            "provenance: step 'build': command_hash",
        ),
        ("/provenance/artifacts/0/digest", "artifact 'out/a': digest"),
    ] {
        for hash in [
            String::new(),
            HASH[1..].to_owned(),
            format!("{HASH}0"),
            HASH.to_uppercase(),
            format!("blake3:{HASH}"),
            format!("{} ", &HASH[1..]),
            format!("{}g", &HASH[1..]),
        ] {
            assert_eq!(
                one_problem(pointer, json!(hash)),
                format!("{what} is not a 64-char lowercase hex digest")
            );
        }
    }
}

#[test]
fn a24_another_algorithm_is_refused() {
    for algorithm in ["sha256", "BLAKE3", "", "blake3 "] {
        assert_eq!(
            one_problem("/provenance/artifacts/0/algorithm", json!(algorithm)),
            "artifact 'out/a': algorithm is not blake3"
        );
    }
}

#[test]
fn a26_an_artifacts_path_is_clean_and_relative() {
    for path in [
        "../a", "/a", "a/./b", "a/../b", "a//b", "a/", "", ".", "a\0b", "a\nf:0 b",
    ] {
        let problem = one_problem("/provenance/artifacts/0/path", json!(path));
        assert!(problem.starts_with("artifact '"), "{problem}");
        assert!(!problem.contains(['\n', '\0']), "{problem:?}");
    }
    assert!(problems("/provenance/artifacts/0/path", json!("é/ x~/..a")).is_empty());
}

#[test]
fn a07_a_steps_name_stands_once() {
    let mut receipt = full();
    receipt["steps"][1]["name"] = json!("build");
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, ["receipt: step 'build' stands twice"]);
    receipt = full();
    receipt["provenance"]["steps"][1]["name"] = json!("build");
    receipt["provenance"]["steps"][1]["needs"] = json!([]);
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(
        problems,
        [
            "provenance: step 'build' stands twice",
            "provenance: step 'test' is not declared"
        ]
    );
}

#[test]
fn a08_names_that_look_alike_are_different_steps() {
    for (one, other) in [
        ("lint", "\u{217c}int"),
        ("\u{e9}", "e\u{301}"),
        ("a", "\u{430}"),
        ("a", "A"),
        ("a", "a "),
    ] {
        let mut receipt = full();
        let mut rename = |index: usize, name: &str| {
            receipt["steps"][index]["name"] = json!(name);
            receipt["provenance"]["steps"][index]["name"] = json!(name);
        };
        rename(0, one);
        rename(1, other);
        receipt["provenance"]["steps"][1]["needs"] = json!([one]);
        receipt["provenance"]["artifacts"][0]["step"] = json!(one);
        receipt["isolation"]["capsule_steps"] = json!([one]);
        let read = sample::read(&receipt).unwrap();
        assert_eq!(read.problems(), Vec::<String>::new());
        let signing = String::from_utf8(read.signing_bytes()).unwrap();
        assert!(
            signing.contains(one) && signing.contains(other),
            "{signing}"
        );
        receipt["provenance"]["artifacts"][0]["step"] = json!(format!("{one}\u{200b}"));
        assert_eq!(sample::read(&receipt).unwrap().problems().len(), 1);
    }
}

#[test]
fn a_steps_name_has_no_control_character() {
    for c in ['\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}'] {
        let mut receipt = full();
        let name = format!("te{c}st");
        receipt["steps"][1]["name"] = json!(name);
        receipt["provenance"]["steps"][1]["name"] = json!(name);
        let problems = sample::read(&receipt).unwrap().problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        for problem in problems {
            assert!(problem.contains("control character"), "{problem}");
            assert!(!problem.contains(c), "{problem:?}");
        }
    }
}

#[test]
fn a30_steps_that_were_removed_added_or_renamed_are_noticed() {
    let mut receipt = full();
    receipt["steps"] = json!([]);
    receipt["provenance"] = json!(null);
    receipt["isolation"] = json!(null);
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, ["receipt has no steps"]);
    assert_eq!(
        problems_of_names("/steps/0/name", "other"),
        [
            "provenance: step 'other' is not declared",
            "provenance.artifacts: step 'build' is not in the receipt",
            "isolation.capsule_steps: step 'build' is not in the receipt",
        ]
    );
    assert_eq!(
        one_problem("/provenance/steps/1/needs", json!(["zz"])),
        "provenance: step 'test' needs 'zz', which is not declared"
    );
}

#[test]
fn a30_declared_steps_that_need_each_other_are_noticed() {
    assert_eq!(
        one_problem("/provenance/steps/0/needs", json!(["test"])),
        "provenance: steps need each other: build -> test -> build"
    );
    assert_eq!(
        one_problem("/provenance/steps/0/needs", json!(["build"])),
        "provenance: steps need each other: build -> build"
    );
}

#[test]
fn very_many_problems_are_told_in_bounded_words() {
    let events: Vec<String> = (0..100_000).map(|index| index.to_string()).collect();
    let problems = problems("/causal_events", json!(events));
    assert_eq!(problems.len(), 51);
    assert_eq!(problems.last().unwrap(), "and 99950 more");
    let long = "\u{202e}".repeat(100_000);
    let problems = self::problems("/provenance/steps/1/needs", json!([long]));
    assert!(problems[0].len() < 3_000, "{problems:?}");
    assert!(!problems[0].contains('\u{202e}'));
}

fn problems_of_names(pointer: &str, name: &str) -> Vec<String> {
    problems(pointer, json!(name))
}

#[test]
fn a_step_that_was_skipped_is_declared_and_not_in_the_receipt() {
    let mut receipt = full();
    receipt["steps"].as_array_mut().unwrap().pop();
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn the_version_of_the_writer_is_not_empty() {
    assert_eq!(
        one_problem("/attest_version", json!("")),
        "attest_version is empty"
    );
}

#[test]
fn all_problems_are_told_and_none_is_about_the_signature() {
    let mut receipt = full();
    receipt["signature"] = json!("");
    receipt["signer_public_key"] = json!("x");
    receipt["timestamp_token"] = json!("");
    assert!(sample::read(&receipt).unwrap().problems().is_empty());
    receipt["attest_version"] = json!("");
    receipt["pipeline_hash"] = json!("");
    receipt["steps"][0]["input_hash"] = json!("");
    assert_eq!(
        sample::read(&receipt).unwrap().problems(),
        [
            "attest_version is empty",
            "pipeline_hash is not a 64-char lowercase hex digest",
            "step 'build': input_hash is not a 64-char lowercase hex digest",
        ]
    );
}

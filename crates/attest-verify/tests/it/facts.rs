//! Facts that cannot be: signed by the trusted key, and refused all the same.

use attest_receipt::manifest::{Entry, Manifest};
use attest_receipt::receipt::{self, Artifact, ArtifactKind, DeclaredStep, Provenance, Receipt};
use attest_verify::{CheckName, Execution, Options, Requirement};

use crate::common::{check, fails, judge, options, passes, receipt, signed, step, trusting, usual};

fn provenance() -> Provenance {
    let declared = |name: &str, needs: &[&str]| DeclaredStep {
        name: name.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        command_hash: "d".repeat(64),
        inputs: vec!["src".to_owned()],
        outputs: vec!["out".to_owned()],
    };
    Provenance {
        invocation_id: None,
        started_at: None,
        pipeline_name: None,
        source: None,
        runner_os: "linux".to_owned(),
        runner_arch: "x86_64".to_owned(),
        ci: None,
        steps: vec![declared("build", &[]), declared("test", &["build"])],
        artifacts: vec![Artifact {
            step: "build".to_owned(),
            path: "out/a".to_owned(),
            kind: ArtifactKind::File,
            digest: "e".repeat(64),
            algorithm: "blake3".to_owned(),
        }],
        execution: None,
    }
}

fn told() -> Receipt {
    let mut receipt = receipt();
    let provenance = provenance();
    let made = &provenance.artifacts[0];
    let mut outputs = Manifest::of_outputs();
    let entry = Entry {
        kind: made.kind,
        digest: made.digest.clone(),
    };
    outputs.add(made.path.as_str(), entry).unwrap();
    receipt.steps[0].output_hash = outputs.hash();
    receipt.provenance = Some(provenance);
    receipt
}

#[track_caller]
fn incoherent(change: impl FnOnce(&mut Receipt), words: &str) {
    let mut receipt = told();
    change(&mut receipt);
    fails(&usual(&signed(receipt)), CheckName::Consistency, words);
}

#[test]
fn what_is_changed_here_is_coherent_unchanged() {
    passes(&usual(&signed(told())));
}

#[test]
fn a24_hashes_of_another_form() {
    for hash in [
        String::new(),
        "b".repeat(63),
        "b".repeat(65),
        "B".repeat(64),
        format!("blake3:{}", "b".repeat(64)),
        format!("sha256:{}", "b".repeat(64)),
        "g".repeat(64),
        format!(" {}", "b".repeat(63)),
    ] {
        incoherent(
            |it| it.steps[0].input_hash.clone_from(&hash),
            "step 'build': input_hash is not a 64-char lowercase hex digest",
        );
        incoherent(
            |it| it.steps[1].output_hash.clone_from(&hash),
            "step 'test': output_hash is not a 64-char lowercase hex digest",
        );
        incoherent(
            |it| it.pipeline_hash.clone_from(&hash),
            "pipeline_hash is not a 64-char lowercase hex digest",
        );
        incoherent(
            |it| it.steps[0].capsule_hash = Some(hash.clone()),
            "capsule_hash",
        );
        incoherent(|it| it.causal_events = vec![hash.clone()], "causal_events");
    }
    incoherent(
        |it| it.provenance.as_mut().unwrap().artifacts[0].algorithm = "sha256".to_owned(),
        "algorithm",
    );
}

#[test]
fn a26_artifacts_outside_the_workspace_or_with_forged_lines() {
    for path in [
        "../a",
        "/a",
        "a/../../b",
        "a/./b",
        "a//b",
        "",
        "a\nf:00 b",
        "a\0",
    ] {
        incoherent(
            |it| it.provenance.as_mut().unwrap().artifacts[0].path = path.to_owned(),
            "artifact",
        );
    }
}

#[test]
fn a30_steps_that_do_not_hang_together() {
    incoherent(|it| it.steps.clear(), "receipt has no steps");
    incoherent(|it| it.steps.push(step("build")), "build");
    incoherent(|it| it.steps.push(step("more")), "more");
    incoherent(|it| it.steps[0].name = "other".to_owned(), "other");
    incoherent(
        |it| it.provenance.as_mut().unwrap().steps[1].needs = vec!["gone".to_owned()],
        "gone",
    );
    incoherent(|it| it.attest_version.clear(), "attest_version is empty");
}

#[test]
fn a32_a_tag_is_no_digest_of_a_capsule() {
    for tag in ["latest", "repo:1.2", "repo@sha256:aa", "sha256"] {
        incoherent(
            |it| it.steps[0].capsule_hash = Some(tag.to_owned()),
            "step 'build': capsule_hash",
        );
    }
}

#[test]
fn a08_names_that_look_alike_are_refused() {
    for (one, other) in [
        ("\u{e9}", "e\u{301}"),
        ("build", "bu\u{456}ld"),
        ("build", "build "),
    ] {
        let mut two = receipt();
        two.steps = vec![step(one), step(other)];
        fails(&usual(&signed(two)), CheckName::Consistency, "looks like");
    }
    // Nothing is normalised on the way: the other spelling is another receipt.
    let mut one = receipt();
    one.steps = vec![step("e\u{301}")];
    let mut one = signed(one);
    passes(&usual(&one));
    one.steps[0].name = "\u{e9}".to_owned();
    fails(&usual(&one), CheckName::Signature, "does not verify");
}

#[test]
fn a24_a26_a28_a30_a31_a35_a36_what_no_run_could_have_left() {
    let told = |change: &dyn Fn(&mut Provenance), words: &str| {
        incoherent(|it| change(it.provenance.as_mut().unwrap()), words);
    };
    told(
        &|it| it.artifacts[0].digest = "f".repeat(64),
        "output_hash is not the hash of its artifacts",
    );
    told(
        &|it| it.steps[1].inputs = vec!["../x".to_owned()],
        "step 'test': input '../x'",
    );
    told(
        &|it| it.artifacts.push(it.artifacts[0].clone()),
        "stands twice",
    );
    told(
        &|it| it.steps[0].outputs = vec!["other".to_owned()],
        "lies under no declared output",
    );
    told(
        &|it| it.execution = Some(receipt::Execution::Wrapped { command: vec![] }),
        "a wrapped command is one step",
    );
    incoherent(|it| it.steps[0].duration_secs = 4, "longer than the whole");
    incoherent(|it| it.steps[0].exit_code = 1, "which failed");
    incoherent(
        |it| it.causal_chain_hash = Some("1".repeat(64)),
        "without causal_events",
    );
    incoherent(
        |it| {
            it.reproducibility = Some(receipt::Reproducibility {
                verified: true,
                runs: 1,
                method: "double-build/v1".to_owned(),
            });
        },
        "1 runs cannot be compared",
    );
    incoherent(
        |it| {
            it.isolation = Some(receipt::Isolation {
                mode: receipt::IsolationMode::StrictContainer,
                platform: "linux".to_owned(),
                controls: Vec::new(),
                capsule_steps: Vec::new(),
            });
        },
        "has no controls",
    );
}

#[test]
fn a27_a_failed_step_shows_as_failure_whatever_else_is_said() {
    let mut failed = receipt();
    failed.steps[1].exit_code = 7;
    failed.steps[1].stdout = "success\n".to_owned();
    let failed = signed(failed);
    let outcome = usual(&failed);
    passes(&outcome);
    assert_eq!(outcome.execution, Execution::Failure(1));
    let strict = Options {
        require: vec![Requirement::Success],
        ..options()
    };
    let outcome = judge(&failed, &trusting(), &strict);
    assert!(!outcome.passed());
    assert_eq!(
        outcome.policy.unmet[0].reason,
        "the receipt records a failure with 1 failed step(s)"
    );
}

#[test]
fn a09_more_problems_than_anybody_reads_are_told_in_a_few() {
    let mut many = receipt();
    many.steps = (0..2_000)
        .map(|n| {
            let mut step = step(&format!("s{n}"));
            step.input_hash.clear();
            step
        })
        .collect();
    let outcome = usual(&signed(many));
    let detail = &check(&outcome, CheckName::Consistency).detail;
    assert!(detail.len() < 8 * 1024, "{} bytes", detail.len());
    assert!(detail.ends_with("and 1950 more"), "{detail}");
}

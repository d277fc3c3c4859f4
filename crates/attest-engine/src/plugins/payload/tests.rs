//! What each payload holds, and what it does not.

use std::collections::BTreeMap;

use attest_receipt::receipt::ArtifactKind;

use super::*;
use crate::hooks::StepOutput;

fn json(payload: &Payload) -> serde_json::Value {
    serde_json::to_value(payload).unwrap()
}

fn result() -> StepResult {
    StepResult {
        name: "a".into(),
        input_hash: "1".repeat(64),
        output_hash: "2".repeat(64),
        duration_secs: 7,
        exit_code: 3,
        cache_hit: false,
        stdout: "said".into(),
        stderr: "warned".into(),
        capsule_hash: None,
    }
}

fn shown() -> Receipt {
    Receipt {
        schema_version: Some(3),
        pipeline_hash: "4".repeat(64),
        steps: vec![result()],
        timestamp: "2026-11-30T12:00:00Z".parse().unwrap(),
        total_duration_secs: 7,
        signature: Some("5".repeat(128)),
        signer_public_key: Some("6".repeat(64)),
        attest_version: "1.2.3".into(),
        causal_events: vec!["7".repeat(64)],
        causal_chain_hash: Some("7".repeat(64)),
        reproducibility: None,
        provenance: Some(Provenance {
            invocation_id: None,
            started_at: None,
            pipeline_name: Some("p".into()),
            source: None,
            runner_os: "linux".into(),
            runner_arch: "x86_64".into(),
            ci: None,
            steps: Vec::new(),
            artifacts: vec![artifact(0)],
            execution: None,
        }),
        timestamp_token: None,
        isolation: None,
        plugins: Some(Vec::new()),
    }
}

fn artifact(number: usize) -> Artifact {
    Artifact {
        step: "a".into(),
        path: format!("out/{number}"),
        kind: ArtifactKind::File,
        digest: "8".repeat(64),
        algorithm: "blake3".into(),
    }
}

#[test]
fn a_pipeline_is_told_without_what_is_absent() {
    let facts = PipelineFacts {
        path: None,
        hash: "h".into(),
        name: None,
        version: Some("1".into()),
        steps: vec![StepFacts {
            name: "a".into(),
            run: "make".into(),
            needs: vec!["b".into()],
            env: BTreeMap::from([("A".into(), "1".into())]),
            timeout_secs: Some(9),
            ..StepFacts::default()
        }],
    };
    assert_eq!(
        json(&pipeline(&facts)),
        serde_json::json!({"pipeline": {"pipeline_hash": "h", "version": "1", "steps": [{
            "name": "a", "run": "make", "needs": ["b"], "inputs": [], "outputs": [],
            "env": {"A": "1"}, "cache": false, "timeout_secs": 9,
        }]}})
    );
}

#[test]
fn what_a_step_wrote_is_told_to_those_who_want_it() {
    let output = StepOutput {
        stdout: "said".into(),
        stderr: "warned".into(),
        stdout_truncated: true,
        stderr_truncated: false,
    };
    let result = result();
    let facts = AfterStep {
        result: &result,
        output: Some(&output),
    };
    let mut expected = serde_json::json!({
        "name": "a", "input_hash": "1".repeat(64), "output_hash": "2".repeat(64),
        "duration_secs": 7, "exit_code": 3, "cache_hit": false,
    });
    assert_eq!(json(&after_step(&facts, false))["step"], expected);
    for (key, value) in [
        ("stdout", serde_json::json!("said")),
        ("stderr", serde_json::json!("warned")),
        ("stdout_truncated", serde_json::json!(true)),
        ("stderr_truncated", serde_json::json!(false)),
    ] {
        expected[key] = value;
    }
    assert_eq!(json(&after_step(&facts, true))["step"], expected);
}

#[test]
fn a_receipt_is_shown_without_signature_records_and_outputs() {
    let seen = json(&receipt(&shown(), false));
    let mut expected = serde_json::to_value(Receipt {
        signature: None,
        signer_public_key: None,
        plugins: None,
        ..shown()
    })
    .unwrap();
    expected["steps"][0]["stdout"] = "".into();
    expected["steps"][0]["stderr"] = "".into();
    assert!(expected["signature"].is_null() && expected["signer_public_key"].is_null());
    assert_eq!(expected.get("plugins"), None);
    assert_eq!(seen["receipt"], expected);
    let seen = json(&receipt(&shown(), true));
    assert_eq!(seen["receipt"]["steps"][0]["stdout"], "said");
    assert_eq!(seen["receipt"]["steps"][0]["stderr"], "warned");
}

#[test]
fn outputs_in_a_receipt_are_shown_up_to_their_limit() {
    let mut long = shown();
    let tail = "y".repeat(wire::OUTPUT_BYTES);
    long.steps[0].stdout = format!("[1 bytes cut by attest]\n{tail}");
    long.steps[0].stderr = format!("é{}", "y".repeat(wire::OUTPUT_BYTES - 1));
    let seen = json(&receipt(&long, true));
    let step = &seen["receipt"]["steps"][0];
    assert_eq!(step["stdout"], tail);
    assert_eq!(step["stderr"], "y".repeat(wire::OUTPUT_BYTES - 1));
}

#[test]
fn a_thousand_artifacts_are_told_and_more_are_counted() {
    let mut many = shown();
    let artifacts = |receipt: &mut Receipt, count| {
        let told = receipt.provenance.as_mut().unwrap();
        told.artifacts = (0..count).map(artifact).collect();
    };
    artifacts(&mut many, ARTIFACTS);
    let seen = json(&receipt(&many, false));
    let told = &seen["receipt"]["provenance"];
    assert_eq!(told["artifacts"].as_array().unwrap().len(), ARTIFACTS);
    assert_eq!(told.get("artifact_count"), None);

    artifacts(&mut many, ARTIFACTS + 1);
    let seen = json(&receipt(&many, false));
    let told = &seen["receipt"]["provenance"];
    assert_eq!(told.get("artifacts"), None);
    assert_eq!(told["artifact_count"], ARTIFACTS + 1);
    let mut lines: Vec<String> = (0..=ARTIFACTS)
        .map(|number| {
            format!(
                "{{\"step\":\"a\",\"path\":\"out/{number}\",\"kind\":\"file\",\"digest\":\"{}\",\"algorithm\":\"blake3\"}}\n",
                "8".repeat(64)
            )
        })
        .collect();
    lines.sort();
    let hash = blake3_hex(lines.concat().as_bytes());
    assert_eq!(told["artifact_manifest_hash"], hash);
    let mut turned: Vec<_> = (0..=ARTIFACTS).map(artifact).collect();
    turned.reverse();
    assert_eq!(artifact_manifest_hash(&turned), hash);
    assert_eq!(told["runner_os"], "linux");
}

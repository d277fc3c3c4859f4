//! Canaries in every field of a receipt and of an event.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::ledger::Event;
use attest_receipt::receipt::{
    Artifact, ArtifactKind, Ci, CiProvider, Control, ControlStatus, Decision, Execution, Isolation,
    IsolationMode, PluginRecord, Provenance, Receipt, Reproducibility, StepResult,
};
use attest_receipt::time::Time;
use strict_json::Json;

use super::*;

const CANARY: &str = "canary-9f27ab";

fn secrets() -> Secrets {
    Secrets::new([("TOKEN", CANARY.as_bytes())])
}

fn json(text: &str) -> Json {
    let limits = strict_json::Limits {
        bytes: 1000,
        depth: 8,
    };
    strict_json::parse_value(text.as_bytes(), &limits, strict_json::Layout::Compact).unwrap()
}

fn text_of(name: &str) -> String {
    format!("the {name}")
}

fn now() -> Time {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

/// A receipt with every field; one that is new has to be added here to compile.
fn receipt() -> Receipt {
    Receipt {
        schema_version: Some(3),
        pipeline_hash: text_of("hash"),
        steps: vec![StepResult {
            name: text_of("step"),
            input_hash: text_of("hash"),
            output_hash: text_of("hash"),
            duration_secs: 1,
            exit_code: 0,
            cache_hit: false,
            stdout: text_of("output"),
            stderr: text_of("output"),
            capsule_hash: Some(text_of("hash")),
        }],
        timestamp: now(),
        total_duration_secs: 1,
        signature: Some(text_of("signature")),
        signer_public_key: Some(text_of("key")),
        attest_version: text_of("version"),
        causal_events: vec![text_of("hash")],
        causal_chain_hash: Some(text_of("hash")),
        reproducibility: Some(Reproducibility {
            verified: true,
            runs: 2,
            method: text_of("method"),
        }),
        provenance: Some(provenance()),
        timestamp_token: Some(text_of("token")),
        isolation: Some(Isolation {
            mode: IsolationMode::None,
            platform: text_of("platform"),
            controls: vec![Control {
                name: text_of("control"),
                status: ControlStatus::Enforced,
                detail: text_of("detail"),
            }],
            capsule_steps: vec![text_of("step")],
        }),
        plugins: Some(vec![PluginRecord {
            name: text_of("plugin"),
            version: text_of("version"),
            protocol: 1,
            digest: text_of("hash"),
            decision: Decision::Allow,
            deterministic: true,
            reason: Some(text_of("reason")),
            annotation: Some(json(r#"{"key":["the value",{"b":"c"}]}"#)),
        }]),
    }
}

fn provenance() -> Provenance {
    Provenance {
        invocation_id: Some(text_of("number")),
        started_at: Some(now()),
        pipeline_name: Some(text_of("pipeline")),
        source: Some(Source {
            repository: Some(text_of("address")),
            commit: text_of("commit"),
            branch: Some(text_of("branch")),
            tracked_dirty: false,
        }),
        runner_os: text_of("system"),
        runner_arch: text_of("machine"),
        ci: Some(Ci {
            provider: CiProvider::Github,
            run_id: Some(text_of("number")),
            job_id: Some(text_of("number")),
        }),
        steps: vec![DeclaredStep {
            name: text_of("step"),
            needs: vec![text_of("step")],
            command_hash: text_of("hash"),
            inputs: vec![text_of("path")],
            outputs: vec![text_of("path")],
        }],
        artifacts: vec![Artifact {
            step: text_of("step"),
            path: text_of("path"),
            kind: ArtifactKind::File,
            digest: text_of("hash"),
            algorithm: text_of("algorithm"),
        }],
        execution: Some(Execution::Wrapped {
            command: vec![text_of("word")],
        }),
    }
}

fn event() -> Event {
    let metadata = ["cache_hit", "duration_secs", "stdout_hash", "else"];
    Event {
        event_id: text_of("hash"),
        step_name: text_of("step"),
        causal_parents: vec![text_of("hash")],
        input_hash: text_of("hash"),
        output_hash: text_of("hash"),
        timestamp: now(),
        exit_code: 0,
        pipeline_hash: text_of("hash"),
        environment_hash: text_of("hash"),
        signer_public_key: Some(text_of("key")),
        signature: Some(text_of("signature")),
        metadata: BTreeMap::from(metadata.map(|name| (name.to_owned(), text_of("value")))),
    }
}

/// The pointers to all texts, with what [`OURS`] calls them.
fn texts(shape: &str, pointer: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(_) => found.push((shape.to_owned(), pointer.to_owned())),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let pointer = format!("{pointer}/{number}");
                texts(&format!("{shape}[]"), &pointer, item, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let pointer = format!("{pointer}/{name}");
                texts(&format!("{shape}.{name}"), &pointer, field, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn a_secret_is_found_in_every_text_that_is_not_attests_own() {
    let mut exempt = BTreeSet::new();
    let mut refused = 0;
    let receipt = serde_json::to_value(receipt()).unwrap();
    let events = serde_json::to_value([event()]).unwrap();
    for (root, whole) in [("receipt", receipt), ("events", events)] {
        check(&secrets(), root, &whole).unwrap();
        let mut found = Vec::new();
        texts(root, "", &whole, &mut found);
        for (shape, pointer) in found {
            let mut changed = whole.clone();
            *changed.pointer_mut(&pointer).unwrap() = Value::String(format!("a/{CANARY}/b"));
            let checked = check(&secrets(), root, &changed);
            if OURS.contains(&shape.as_str()) {
                exempt.insert(shape);
                checked.unwrap();
                continue;
            }
            let error = checked.unwrap_err().to_string();
            let place = shape.replace("[]", "[");
            let named = error.contains("secret `TOKEN`") && error.contains("a/[redacted TOKEN]/b");
            assert!(named && !error.contains(CANARY), "{error}");
            assert!(error.contains(place.split('[').next().unwrap()), "{error}");
            refused += 1;
        }
    }
    let ours: BTreeSet<String> = OURS.iter().map(|shape| (*shape).to_owned()).collect();
    assert_eq!(exempt, ours, "every exception is a field");
    assert!(refused > 20, "{refused}");
}

#[test]
fn keys_and_numbers_of_annotations_are_looked_at_and_other_keys_are_attests_own() {
    let secrets = Secrets::new([
        ("A", b"steps".as_slice()),
        ("B", b"keyhole"),
        ("C", b"31337"),
    ]);
    let mut receipt = receipt();
    receipt.provenance = None;
    check(&secrets, "receipt", &receipt).unwrap();
    for annotation in [r#"{"keyhole":1}"#, r#"{"a":{"b":31337}}"#] {
        let plugins = receipt.plugins.as_mut().unwrap();
        plugins[0].annotation = Some(json(annotation));
        let error = check(&secrets, "receipt", &receipt)
            .unwrap_err()
            .to_string();
        assert!(error.contains("receipt.plugins[0].annotation"), "{error}");
    }
}

#[test]
fn outputs_whose_values_were_replaced_pass() {
    let secrets = Secrets::new([("KEY", b"redacted".as_slice())]);
    let mut receipt = receipt();
    receipt.steps[0].stdout = secrets.replace("it is redacted here");
    check(&secrets, "receipt", &receipt).unwrap();
    receipt.steps[0].name = "redacted".into();
    check(&secrets, "receipt", &receipt).unwrap_err();
}

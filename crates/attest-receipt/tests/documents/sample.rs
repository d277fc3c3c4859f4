//! A receipt with every field, and ways to change one place of it.

use attest_receipt::encode;
use attest_receipt::receipt::{self, ReadError, Receipt};
use serde_json::{Value, json};

pub(crate) const HASH: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Returns a receipt that says everything a receipt can say.
pub(crate) fn full() -> Value {
    json!({
        "schema_version": 3,
        "pipeline_hash": HASH,
        "steps": [
            {
                "name": "build", "input_hash": HASH, "output_hash": HASH, "duration_secs": 3,
                "exit_code": 0, "cache_hit": false, "stdout": "out\n", "stderr": "",
                "capsule_hash": HASH,
            },
            {
                "name": "test", "input_hash": HASH, "output_hash": HASH, "duration_secs": 0,
                "exit_code": -1, "cache_hit": true, "stdout": "", "stderr": "é",
            },
        ],
        "timestamp": "2026-11-30T12:00:00.123Z",
        "total_duration_secs": 3,
        "signature": "ab".repeat(64),
        "signer_public_key": HASH,
        "attest_version": "0.0.0",
        "causal_events": [HASH, "ff".repeat(32)],
        "causal_chain_hash": HASH,
        "reproducibility": {"verified": true, "runs": 2, "method": "double-build/v1"},
        "provenance": provenance(),
        "timestamp_token": "MIIB",
        "isolation": {
            "mode": "strict-container",
            "platform": "linux",
            "controls": [{"name": "network", "status": "not-available", "detail": "none"}],
            "capsule_steps": ["build"],
        },
        "plugins": plugins(),
    })
}

/// The hash of the outputs of a step that declares none.
pub(crate) const NO_OUTPUTS: &str =
    "95aba9c3ec14d9c6acb31a2dd401aff1b5fb3a913a0dbd59ec602fc683a6732d";

/// Returns the same receipt as a run of a pipeline would leave it: nothing in it contradicts.
pub(crate) fn coherent() -> Value {
    let mut receipt = full();
    receipt["steps"][1]["exit_code"] = json!(0);
    receipt["steps"][0]["output_hash"] = json!(outputs(&[("f", "out/a")]));
    receipt["steps"][1]["output_hash"] = json!(NO_OUTPUTS);
    receipt["provenance"]["execution"] = json!({"mode": "native"});
    receipt
}

/// Returns a coherent receipt of a wrapped command.
pub(crate) fn wrapped() -> Value {
    let mut receipt = coherent();
    let argv = r#"["sh","-c","true"]"#;
    let hash = |text: String| json!(encode::blake3_hex(text.as_bytes()));
    receipt["pipeline_hash"] = hash(format!("attest-wrap/v1\n{argv}"));
    receipt["provenance"]["execution"] = full()["provenance"]["execution"].clone();
    receipt["provenance"]["steps"][0]["command_hash"] = hash(argv.to_owned());
    for list in ["/steps", "/provenance/steps", "/causal_events"] {
        receipt
            .pointer_mut(list)
            .unwrap()
            .as_array_mut()
            .unwrap()
            .truncate(1);
    }
    receipt
}

/// Returns the hash of outputs, each with [`HASH`] as its digest, of `f` and `l` and a path.
pub(crate) fn outputs(files: &[(&str, &str)]) -> String {
    let lines = files
        .iter()
        .map(|(kind, path)| format!("{kind}:{HASH} {path}\n"));
    let text = format!("attest-manifest/v1\n{}", lines.collect::<String>());
    encode::blake3_hex(text.as_bytes())
}

/// Returns an artifact of a step.
pub(crate) fn artifact(step: &str, kind: &str, path: &str) -> Value {
    json!({"step": step, "path": path, "kind": kind, "digest": HASH, "algorithm": "blake3"})
}

fn provenance() -> Value {
    json!({
        "invocation_id": "200af1c6-aa57-4d8d-82b7-b615e0c07851",
        "started_at": "2026-11-30T11:59:57Z",
        "pipeline_name": "tiny pipe",
        "source": {
            "repository": "https://example.com/team/repo.git", "commit": "9b8b02c5",
            "branch": "main", "tracked_dirty": false,
        },
        "runner_os": "linux",
        "runner_arch": "x86_64",
        "ci": {"provider": "gitlab", "run_id": "7", "job_id": "8"},
        "steps": [
            {"name": "build", "needs": [], "command_hash": HASH, "inputs": ["src/"],
             "outputs": ["out/a"]},
            {"name": "test", "needs": ["build"], "command_hash": HASH, "inputs": ["out/a"],
             "outputs": []},
        ],
        "artifacts": [
            {"step": "build", "path": "out/a", "kind": "file", "digest": HASH,
             "algorithm": "blake3"},
        ],
        "execution": {"mode": "wrapped", "command": ["sh", "-c", "true"]},
    })
}

fn plugins() -> Value {
    json!([
        {"name": "audit", "version": "", "protocol": 1, "digest": format!("blake3:{HASH}"),
         "decision": "error", "deterministic": false, "reason": "timed out"},
        {"name": "policy", "version": "1.4.2", "protocol": 1, "digest": format!("blake3:{HASH}"),
         "decision": "warn", "deterministic": true,
         "annotation": {"level": 2, "ratio": 0.5, "nested": {"b": [null, true], "a": "x"}}},
    ])
}

/// Reads a receipt that is written as JSON.
pub(crate) fn read(value: &Value) -> Result<Receipt, ReadError> {
    receipt::read(value.to_string().as_bytes())
}

/// Reads the full receipt after a change at one place.
pub(crate) fn with(pointer: &str, value: Value) -> Result<Receipt, ReadError> {
    let mut receipt = full();
    *receipt.pointer_mut(pointer).unwrap() = value;
    read(&receipt)
}

/// Returns the message with which the full receipt is refused after a change at one place.
pub(crate) fn refusal(pointer: &str, value: Value) -> String {
    let shown = format!("{pointer} = {value}");
    match with(pointer, value) {
        Ok(_) => panic!("{shown} was read"),
        Err(error) => error.to_string(),
    }
}

/// Returns the pointers of all values below one, itself included.
pub(crate) fn pointers(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        all.extend(pointers(value).iter().map(|rest| format!("/{key}{rest}")));
    }
    all
}

/// Spells a pointer as messages do: `/steps/0/name` is `steps[0].name`.
pub(crate) fn path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if part.parse::<usize>().is_ok() {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
    }
    path
}

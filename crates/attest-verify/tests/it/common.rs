//! Receipts to judge, and keys to sign them with.

use std::path::PathBuf;

use attest_receipt::receipt::{Decision, PluginRecord, Receipt, StepResult};
use attest_receipt::time::Time;
use attest_verify::trust::{PublicKey, Trust, TrustStore};
use attest_verify::{Check, CheckName, Options, Outcome, Status, verify};
use ed25519_dalek::{Signer as _, SigningKey};

/// Returns a file of the originals' receipts.
pub(crate) fn vector(name: &str) -> Vec<u8> {
    let path = vectors().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../attest-receipt/tests/vectors")
}

/// Loads a folder of the vectors as a trust store.
pub(crate) fn vector_trust(folder: &str) -> Trust {
    let files = std::fs::read_dir(vectors().join(folder))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    Trust::Store(TrustStore::from_files(files).unwrap().into())
}

/// The signed vectors and the folders of their keys.
pub(crate) const SIGNED: [(&str, &str); 3] = [
    ("r1_pipeline_signed.yaml", "trust"),
    ("r6_wrapped.yaml", "trust"),
    ("v0.1.0/r1_pipeline_signed.yaml", "v0.1.0/trust"),
];

/// A moment shortly after everything here was made.
pub(crate) fn now() -> Time {
    time("2026-12-01T00:00:00Z")
}

pub(crate) fn time(text: &str) -> Time {
    text.parse().unwrap()
}

pub(crate) fn options() -> Options {
    Options::new(now())
}

/// The one key of these tests that is trusted.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn other_key() -> SigningKey {
    SigningKey::from_bytes(&[8; 32])
}

pub(crate) fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_raw(key.verifying_key().to_bytes()).unwrap()
}

/// A store in which `key` has an entry with these further lines.
pub(crate) fn store(key: &SigningKey, status: &str) -> Trust {
    let public = public(key);
    let id = public.key_id();
    let toml = format!("version = 1\n\n[[key]]\nid = \"{id}\"\nname = \"k\"\n{status}\n");
    Trust::Store(
        TrustStore::from_files(vec![
            ("trust.toml".to_owned(), toml.into_bytes()),
            (format!("{id}.pub"), public.to_spki_pem().into_bytes()),
        ])
        .unwrap()
        .into(),
    )
}

/// A store that trusts [`key`].
pub(crate) fn trusting() -> Trust {
    store(&key(), "status = \"trusted\"")
}

/// A small receipt without a signature.
pub(crate) fn receipt() -> Receipt {
    Receipt {
        schema_version: Some(2),
        pipeline_hash: "a".repeat(64),
        steps: vec![step("build"), step("test")],
        timestamp: time("2026-11-30T12:00:00Z"),
        total_duration_secs: 3,
        signature: None,
        signer_public_key: None,
        attest_version: "0.0.0".to_owned(),
        causal_events: Vec::new(),
        causal_chain_hash: None,
        reproducibility: None,
        provenance: None,
        timestamp_token: None,
        isolation: None,
        plugins: None,
    }
}

pub(crate) fn step(name: &str) -> StepResult {
    StepResult {
        name: name.to_owned(),
        input_hash: "b".repeat(64),
        output_hash: "c".repeat(64),
        duration_secs: 1,
        exit_code: 0,
        cache_hit: false,
        stdout: "said\n".to_owned(),
        stderr: String::new(),
        capsule_hash: None,
    }
}

/// A record without a reason or an annotation.
pub(crate) fn plugin(name: &str, decision: Decision) -> PluginRecord {
    PluginRecord {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        protocol: 1,
        digest: format!("blake3:{}", "9".repeat(64)),
        decision,
        deterministic: true,
        reason: None,
        annotation: None,
    }
}

pub(crate) fn signed_by(mut receipt: Receipt, key: &SigningKey) -> Receipt {
    let signature = key.sign(&receipt.signing_bytes());
    receipt.signature = Some(attest_receipt::encode::hex(&signature.to_bytes()));
    receipt.signer_public_key = Some(public(key).hex());
    receipt
}

pub(crate) fn signed(receipt: Receipt) -> Receipt {
    signed_by(receipt, &key())
}

/// Judges a receipt as a file that says nothing else.
pub(crate) fn judge(receipt: &Receipt, trust: &Trust, options: &Options) -> Outcome {
    let text = receipt.to_yaml().unwrap();
    verify(text.as_bytes(), trust, options, None).unwrap()
}

/// Judges with the usual options and the trusted key.
pub(crate) fn usual(receipt: &Receipt) -> Outcome {
    judge(receipt, &trusting(), &options())
}

pub(crate) fn check(outcome: &Outcome, name: CheckName) -> &Check {
    outcome.check(name).unwrap()
}

/// Expects a failed check with these words in its detail.
#[track_caller]
pub(crate) fn fails(outcome: &Outcome, name: CheckName, words: &str) {
    let check = check(outcome, name);
    assert_eq!(check.status, Status::Fail, "{outcome:#?}");
    assert!(check.detail.contains(words), "{words:?}: {check:?}");
    assert!(!outcome.passed());
}

#[track_caller]
pub(crate) fn passes(outcome: &Outcome) {
    assert!(outcome.passed(), "{:#?}", outcome.text_lines("r"));
}

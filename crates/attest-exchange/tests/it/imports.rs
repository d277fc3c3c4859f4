//! Statements that nobody should believe, each by its rule.

use std::collections::BTreeMap;

use attest_exchange::dsse::{self, pae};
use attest_exchange::import::{
    self, Delivered, FileHashes, ImportOptions, Imported, parse_requirements,
};
use attest_exchange::statement::{self, Carried};
use attest_receipt::receipt::{self, Artifact, Decision, PluginRecord, Receipt};
use attest_receipt::time::Time;
use attest_verify::trust::Trust;
use attest_verify::{Execution, Status};
use serde_json::{Value, json};

use crate::support::{Key, trust, vector};

const TRUSTED: &str = "status = \"trusted\"";

fn receipt_of(name: &str) -> Receipt {
    receipt::read(&vector(name)).unwrap()
}

/// A statement of a receipt that the key signed.
fn payload(key: &Key) -> Value {
    payload_of(receipt_of("passed_signed.yaml"), key)
}

fn payload_of(mut receipt: Receipt, key: &Key) -> Value {
    let bytes = key.sign_receipt(&mut receipt);
    let sha256 = [("out/one.bin".to_owned(), "5".repeat(64))].into();
    let made = statement::make(&Carried {
        bytes: &bytes,
        receipt: &receipt,
        version: "1",
        trust: &BTreeMap::new(),
        sha256: &sha256,
    });
    serde_json::from_slice(&made.unwrap()).unwrap()
}

fn sealed(key: &Key, payload: &Value) -> Vec<u8> {
    let payload = serde_json::to_vec(payload).unwrap();
    let signature = key.sign(&pae(dsse::PAYLOAD_TYPE, &payload));
    dsse::write(&payload, Some((key.id(), signature)))
}

fn judge(bytes: &[u8], trust: &Trust) -> Imported {
    judge_with(bytes, trust, false, &[], None)
}

fn judge_with(
    bytes: &[u8],
    trust: &Trust,
    trust_statement_time: bool,
    require: &[&str],
    delivered: Option<&dyn Delivered>,
) -> Imported {
    let options = ImportOptions {
        trust,
        trust_statement_time,
        require: &parse_requirements(require).unwrap(),
        delivered,
        now: "2026-12-01T00:00:00Z".parse().unwrap(),
    };
    import::judge(bytes, &options).unwrap()
}

#[track_caller]
fn fails(imported: &Imported, check: &str, words: &str) {
    assert!(!imported.passed());
    let line = imported.lines.iter().find(|line| line.name == check);
    let line = line.unwrap_or_else(|| panic!("no {check} in {imported:?}"));
    assert_eq!(line.status, Status::Fail, "{line:?}");
    assert!(line.detail.contains(words), "{line:?}");
}

#[test]
fn a_statement_of_ours_is_accepted_and_tells_both_signers() {
    let key = Key::new(1);
    let imported = judge(&sealed(&key, &payload(&key)), &key.trusted_as(TRUSTED));
    assert!(imported.passed(), "{imported:?}");
    let names: Vec<&str> = imported.lines.iter().map(|line| line.name).collect();
    assert_eq!(
        names,
        [
            "schema",
            "consistency",
            "dsse-signature",
            "original-evidence",
            "timestamp",
            "identity",
            "artifacts",
            "signature"
        ]
    );
    let record: Value = serde_json::from_slice(&imported.to_json("s")).unwrap();
    assert_eq!(
        record["interop"]["original_signer"],
        json!(key.public().hex())
    );
    assert_eq!(record["interop"]["original_verdict"]["verdict"], "pass");
    assert_eq!(record["signed_by"], json!(key.public().hex()));
    assert_eq!(imported.execution, Execution::Success);
}

#[test]
fn an_envelope_has_exactly_one_signature_that_holds() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    let good = sealed(&key, &payload(&key));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut envelope: Value = serde_json::from_slice(&good).unwrap();
        change(&mut envelope);
        judge(&serde_json::to_vec(&envelope).unwrap(), &trust)
    };
    assert!(changed(&|_| {}).passed());
    fails(
        &changed(&|one| one["signatures"] = json!([])),
        "dsse-signature",
        "unsigned",
    );
    let twice = changed(&|one| {
        let again = one["signatures"][0].clone();
        one["signatures"].as_array_mut().unwrap().push(again);
    });
    fails(&twice, "dsse-signature", "several signatures");
    let short = changed(&|one| one["signatures"][0]["sig"] = json!("AAAA"));
    fails(&short, "dsse-signature", "3 bytes are no Ed25519 signature");
    let other = changed(&|one| one["signatures"][0]["keyid"] = json!(Key::new(2).id()));
    fails(&other, "dsse-signature", "is not in the trust store");
    let no_id = changed(&|one| one["signatures"][0]["keyid"] = json!("../x"));
    fails(&no_id, "dsse-signature", "is not the id of a key");
    for imported in [twice, short, other, no_id] {
        fails(&imported, "signature", "");
    }
}

#[test]
fn the_payload_type_is_under_the_signature() {
    let key = Key::new(1);
    let payload = serde_json::to_vec(&payload(&key)).unwrap();
    let signature = key.sign(&pae("application/json", &payload));
    let bytes = dsse::write(&payload, Some((key.id(), signature)));
    let imported = judge(&bytes, &key.trusted_as(TRUSTED));
    fails(&imported, "dsse-signature", "does not verify");
    // The bare payload, as no DSSE signer signs it.
    let bytes = dsse::write(&payload, Some((key.id(), key.sign(&payload))));
    fails(
        &judge(&bytes, &key.trusted_as(TRUSTED)),
        "dsse-signature",
        "does not verify",
    );
}

#[test]
fn another_type_or_form_is_a_failure_of_the_schema() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    for (bytes, words) in [
        (b"[]".as_slice(), "not a DSSE envelope"),
        (b"{}", "not a DSSE envelope"),
        (b"{\"payload\":\"e30\",\"payloadType\":\"x\",\"signatures\":[]}", "is not base64"),
        (b"{\"payload\":\"e30=\",\"payloadType\":\"x\",\"signatures\":[]}", "unsupported payloadType 'x'"),
        (
            b"{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.in-toto+json\",\"signatures\":[]}",
            "not an in-toto statement",
        ),
    ] {
        fails(&judge(bytes, &trust), "schema", words);
    }
    for (field, words) in [
        ("_type", "statement _type"),
        ("predicateType", "predicateType"),
    ] {
        let mut other = payload(&key);
        other[field] = json!("https://example.com/other");
        fails(&judge(&sealed(&key, &other), &trust), "schema", words);
    }
    let options = ImportOptions {
        trust: &trust,
        trust_statement_time: false,
        require: &[],
        delivered: None,
        now: Time::hermetic(),
    };
    for unreadable in [b"".as_slice(), b"{", b"\xff", b"{\"a\":1,\"a\":2}"] {
        assert!(import::judge(unreadable, &options).is_err());
    }
    let mut long = sealed(&key, &payload(&key));
    long.resize(dsse::MAX_BYTES, b' ');
    assert!(import::judge(&long, &options).is_ok());
    long.push(b' ');
    assert!(import::judge(&long, &options).is_err());
}

#[test]
fn fields_that_others_define_are_passed_over_and_the_evidence_is_strict() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    let mut more = payload(&key);
    more["more"] = json!(1);
    more["subject"][0]["more"] = json!(1);
    more["subject"][0]["digest"]["sha512"] = json!("x");
    more["predicate"]["more"] = json!({});
    more["predicate"]["buildDefinition"]["internalParameters"] = json!({});
    more["predicate"]["runDetails"]["byproducts"] = json!([]);
    let imported = judge(&sealed(&key, &more), &trust);
    assert!(imported.passed(), "{imported:?}");
    for path in ["", "/producer", "/receipt"] {
        let mut more = payload(&key);
        let place = format!("/predicate/attest_evidence{path}");
        more.pointer_mut(&place).unwrap()["more"] = json!(1);
        fails(&judge(&sealed(&key, &more), &trust), "schema", "more");
    }
    let mut more = payload(&key);
    more["predicate"]["buildDefinition"]["externalParameters"]["more"] = json!(1);
    fails(&judge(&sealed(&key, &more), &trust), "schema", "more");
}

#[test]
fn a_statement_that_differs_from_its_receipt_is_refused() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    let digest = "0".repeat(64);
    for (place, value) in [
        ("/subject/0/digest/blake3", json!(digest)),
        ("/subject/0/name", json!("out/two.bin")),
        ("/subject", json!([])),
        (
            "/predicate/buildDefinition/externalParameters/pipelineHash",
            json!(digest),
        ),
        (
            "/predicate/buildDefinition/resolvedDependencies",
            json!([{"uri": "x"}]),
        ),
        (
            "/predicate/runDetails/builder/id",
            json!("https://example.com/builder"),
        ),
        ("/predicate/runDetails/metadata/invocationId", json!(digest)),
        (
            "/predicate/runDetails/metadata/startedOn",
            json!("2000-01-01T00:00:00Z"),
        ),
        (
            "/predicate/runDetails/metadata/finishedOn",
            json!("2000-01-01T00:00:00Z"),
        ),
        (
            "/predicate/attest_evidence/format",
            json!("attest-original-evidence/v2"),
        ),
        (
            "/predicate/attest_evidence/artifactBinding",
            json!("unavailable"),
        ),
        ("/predicate/attest_evidence/originalSigner", json!(null)),
        (
            "/predicate/attest_evidence/semantics/0",
            json!("trust this"),
        ),
        ("/predicate/attest_evidence/producer/name", json!("")),
        (
            "/predicate/attest_evidence/receipt/mediaType",
            json!("text/plain"),
        ),
        ("/predicate/attest_evidence/receipt/sha256", json!(digest)),
        ("/predicate/attest_evidence/receipt/content", json!("e30=")),
        (
            "/predicate/attest_evidence/workflow",
            json!({"workflow": "urn:attest:builder:unverified"}),
        ),
    ] {
        let mut other = payload(&key);
        *other.pointer_mut(place).unwrap() = value;
        let imported = judge(&sealed(&key, &other), &trust);
        fails(&imported, "original-evidence", "");
        fails(&imported, "signature", "");
    }
    let mut none = payload(&key);
    none["predicate"]
        .as_object_mut()
        .unwrap()
        .remove("attest_evidence");
    fails(
        &judge(&sealed(&key, &none), &trust),
        "original-evidence",
        "carries no receipt",
    );
    none["predicate"]["buildDefinition"]["buildType"] = json!(statement::EARLY_BUILD_TYPE);
    fails(
        &judge(&sealed(&key, &none), &trust),
        "consistency",
        "first releases",
    );
}

#[test]
fn a_receipt_that_is_not_trusted_by_itself_is_refused() {
    // The envelope's key is trusted; the receipt was signed by another, which travels along.
    let (key, stranger) = (Key::new(1), Key::new(2));
    let imported = judge(&sealed(&key, &payload(&stranger)), &key.trusted_as(TRUSTED));
    fails(&imported, "original-evidence", "untrusted key");
    assert_eq!(imported.lines[2].status, Status::Pass);
    // And the other way round.
    let imported = judge(&sealed(&stranger, &payload(&key)), &key.trusted_as(TRUSTED));
    fails(&imported, "dsse-signature", "is not in the trust store");
    fails(&imported, "signature", "");
    // Keys that travel with a statement are nobody's authority.
    let nobody = Trust::Absent {
        looked_in: "x".to_owned(),
    };
    fails(
        &judge(&vector("passed_signed.intoto.json"), &nobody),
        "dsse-signature",
        "no trust store",
    );
}

#[test]
fn a_revoked_key_does_not_count_unless_the_statement_is_believed() {
    let key = Key::new(1);
    let bytes = sealed(&key, &payload(&key));
    let revoked = |since: &str| key.trusted_as(&format!("status = \"revoked\"{since}"));
    let later = revoked("\nrevoked_at = \"2026-12-01T00:00:00Z\"");
    let earlier = revoked("\nrevoked_at = \"2020-01-01T00:00:00Z\"");
    fails(
        &judge(&bytes, &later),
        "dsse-signature",
        "--trust-statement-time",
    );
    let believed = |trust: &Trust| judge_with(&bytes, trust, true, &[], None);
    let imported = believed(&later);
    assert_eq!(imported.lines[2].status, Status::Pass, "{imported:?}");
    assert!(imported.warnings[0].contains("revoked later"));
    // The receipt in it is judged by itself, and nothing but its signer says when it was signed.
    fails(&imported, "original-evidence", "revoked key");
    fails(
        &believed(&earlier),
        "dsse-signature",
        "after its revocation",
    );
    fails(&believed(&revoked("")), "dsse-signature", "without a date");
}

struct Files<'a>(&'a str, &'a str);

impl Delivered for Files<'_> {
    fn hashes(&self, artifact: &Artifact) -> Result<FileHashes, String> {
        if self.0 == "missing" {
            return Err("there is none".to_owned());
        }
        let blake3 = if self.0 == "same" {
            &artifact.digest
        } else {
            self.0
        };
        Ok(FileHashes {
            blake3: blake3.to_owned(),
            sha256: self.1.to_owned(),
        })
    }
}

#[test]
fn delivered_files_are_compared_by_both_hashes() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    let bytes = sealed(&key, &payload(&key));
    let sha256 = "5".repeat(64);
    let judged = |files: &Files<'_>| judge_with(&bytes, &trust, false, &["artifacts"], Some(files));
    let imported = judged(&Files("same", &sha256));
    assert!(imported.passed(), "{imported:?}");
    fails(
        &judged(&Files("other", &sha256)),
        "artifacts",
        "differs from the receipt's",
    );
    fails(
        &judged(&Files("same", "other")),
        "artifacts",
        "another SHA-256",
    );
    fails(&judged(&Files("missing", "")), "artifacts", "there is none");
}

#[test]
fn requirements_are_met_only_by_what_ran() {
    let key = Key::new(1);
    let trust = key.trusted_as(TRUSTED);
    let bytes = sealed(&key, &payload(&key));
    let unmet = |require: &[&str]| -> Vec<String> {
        let imported = judge_with(&bytes, &trust, false, require, None);
        assert_eq!(imported.passed(), imported.unmet.is_empty());
        imported
            .unmet
            .iter()
            .map(|one| one.requirement.to_string())
            .collect()
    };
    assert!(unmet(&["signature,success"]).is_empty());
    for name in ["artifacts", "timestamp", "trust", "plugins", "plugin:p"] {
        assert_eq!(unmet(&[name]), [name]);
    }
    for (name, told) in [
        ("recompute", "'recompute' is checked by `attest verify`"),
        (
            "linkage",
            "'linkage' is checked by `attest verify --archive`",
        ),
        (
            "nonsense",
            "expected one of signature, timestamp, artifacts,",
        ),
        ("sbom", "'sbom' has no check in this program"),
    ] {
        let error = parse_requirements(&[name]).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let failed = judge_with(
        &vector("failed_signed.intoto.json"),
        &self::trust(),
        false,
        &["success"],
        None,
    );
    assert!(!failed.passed());
    assert_eq!(failed.execution, Execution::Failure(1));
    for name in ["identity", "sbom", "nonsense", ""] {
        assert!(parse_requirements(&[name]).is_err(), "{name}");
    }
}

#[test]
fn plugins_of_the_receipt_are_told_before_what_is_required_of_them() {
    let key = Key::new(1);
    let mut receipt = receipt_of("passed_signed.yaml");
    receipt.schema_version = Some(3);
    receipt.plugins = Some(vec![PluginRecord {
        name: "policy".to_owned(),
        version: "1.4".to_owned(),
        protocol: 1,
        digest: format!("blake3:{}", "1".repeat(64)),
        decision: Decision::Deny,
        deterministic: true,
        reason: None,
        annotation: None,
    }]);
    let bytes = sealed(&key, &payload_of(receipt, &key));
    let require = ["plugin:policy"];
    let imported = judge_with(&bytes, &key.trusted_as(TRUSTED), false, &require, None);
    let lines = imported.text_lines("s");
    let at = |told: &str| {
        let found = lines.iter().position(|line| line.starts_with(told));
        found.unwrap_or_else(|| panic!("no {told} in {lines:?}"))
    };
    assert!(at("  plugin: policy 1.4 deny") < at("  required: plugin:policy"));
    assert!(lines[at("  REFUSED: ")].contains("denied"), "{lines:?}");
    // As `verify` tells them, for programs: inside of the receipt's own record.
    let json: Value = serde_json::from_slice(&imported.to_json("s")).unwrap();
    let told = &json["interop"]["original_verdict"]["plugins"][0];
    assert_eq!(
        (&told["name"], &told["decision"]),
        (&"policy".into(), &"deny".into())
    );
}

#[test]
fn text_of_others_is_made_visible() {
    let key = Key::new(1);
    let mut odd = payload(&key);
    odd["predicate"]["buildDefinition"]["buildType"] = json!("\u{1b}[2J\u{202e}\n");
    let imported = judge(&sealed(&key, &odd), &key.trusted_as(TRUSTED));
    for line in imported.text_lines("a\u{1b}b") {
        assert!(
            !line.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
}

//! The lines for people: their form, and nothing in them that hides.

use attest_receipt::receipt::Decision;
use attest_verify::{Options, Requirement, verify};
use bounded::text::has_control_or_format;

use crate::common::{judge, key, options, plugin, public, receipt, signed, step, trusting, usual};

#[test]
fn a_receipt_that_passes() {
    let hex = public(&key()).hex();
    let signature = format!("  signature    pass     valid signature by trusted key {hex}");
    let signer = format!("  signed by: {hex}");
    assert_eq!(
        usual(&signed(receipt())).text_lines("some/r.yaml"),
        [
            "some/r.yaml: pass",
            "  schema       pass     receipt matches schema",
            "  consistency  pass     receipt is coherent",
            &signature,
            "  timestamp    skipped  receipt carries no timestamp token",
            "  recompute    skipped  enable with --recompute",
            &signer,
            "  execution: success",
            "  trust material: no bundle on record; revocations are as current as the last change of the trust store",
        ]
    );
}

#[test]
fn a_receipt_that_fails_with_everything_that_can_be_said() {
    let mut failed = receipt();
    failed.schema_version = Some(3);
    failed.steps[0].exit_code = 1;
    let mut silent = plugin("mute", Decision::Skipped);
    silent.version.clear();
    silent.reason = Some("no hook came".to_owned());
    failed.plugins = Some(vec![silent, plugin("policy", Decision::Deny)]);
    let strict = Options {
        require: Requirement::parse(&["success,plugin:policy", "recompute"]).unwrap(),
        ..options()
    };
    let lines = judge(&failed, &trusting(), &strict).text_lines("r");
    assert_eq!(
        lines,
        [
            "r: fail",
            "  schema       pass     receipt matches schema",
            "  consistency  pass     receipt is coherent",
            "  signature    FAIL     receipt is unsigned",
            "  timestamp    skipped  receipt carries no timestamp token",
            "  recompute    skipped  enable with --recompute",
            "  execution: failure (1 failed step(s))",
            "  plugin: mute - skipped",
            "  plugin: policy 1.2.3 deny",
            "  required: success, plugin:policy, recompute",
            "  REFUSED: requirement 'success' not met: the receipt records a failure with 1 failed step(s)",
            "  REFUSED: requirement 'plugin:policy' not met: plugin 'policy' denied the run",
            "  REFUSED: requirement 'recompute' not met: recompute check not performed: enable with --recompute",
            "  trust material: no bundle on record; revocations are as current as the last change of the trust store",
        ]
    );
}

#[test]
fn a_document_that_is_no_receipt() {
    let outcome = verify(b"schema_version: 99", &trusting(), &options(), None).unwrap();
    assert_eq!(
        outcome.text_lines("r")[1..6],
        [
            "  schema       FAIL     receipt schema_version 99 is newer than the latest supported version (3); upgrade attest to verify this receipt",
            "  consistency  skipped  schema check failed",
            "  signature    skipped  schema check failed",
            "  timestamp    skipped  schema check failed",
            "  recompute    skipped  schema check failed",
        ]
    );
    assert_eq!(outcome.text_lines("r")[6], "  execution: unknown");
}

/// Names and texts of a receipt are whatever its maker wrote.
const HOSTILE: &str = "a\n  signature    pass     valid\r\u{1b}[2K\u{202e}b\u{2028}c\u{200b}";

#[test]
fn untrusted_text_is_shown_visibly_and_on_its_line() {
    let mut hostile = receipt();
    hostile.schema_version = Some(3);
    hostile.steps = vec![step(HOSTILE), step(HOSTILE)];
    hostile.steps[0].input_hash = HOSTILE.to_owned();
    hostile.attest_version = HOSTILE.to_owned();
    let mut record = plugin("policy", Decision::Error);
    record.version = HOSTILE.to_owned();
    record.reason = Some(HOSTILE.to_owned());
    record.annotation = Some(strict_json::Json::Object(
        strict_json::Object::from_members(vec![(
            HOSTILE.to_owned(),
            strict_json::Json::Text(HOSTILE.to_owned()),
        )])
        .unwrap(),
    ));
    hostile.plugins = Some(vec![record]);
    let strict = Options {
        require: Requirement::parse(&["plugins"]).unwrap(),
        policy: Some(attest_verify::Policy::parse(b"version = 1\nsteps = [\"x\"]\n").unwrap()),
        ..options()
    };
    let outcome = judge(&signed(hostile), &trusting(), &strict);
    assert!(!outcome.passed());
    let lines = [outcome.text_lines(HOSTILE), outcome.warning_lines()].concat();
    let shown = lines.join("|");
    assert!(
        shown.contains(r"\u{1b}[2K\u{202e}b\u{2028}c\u{200b}"),
        "{shown}"
    );
    for line in &lines {
        assert!(!has_control_or_format(line), "{line:?}");
    }
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("  signature"))
            .count(),
        1
    );
    // What a plugin annotated is shown nowhere.
    let json = String::from_utf8(outcome.to_json("r")).unwrap();
    assert!(!json.contains("annotation"), "{json}");
}

#[test]
fn what_cannot_be_judged_is_no_verdict() {
    let long = vec![b' '; attest_receipt::receipt::MAX_BYTES + 1];
    let error = verify(&long, &trusting(), &options(), None).unwrap_err();
    assert!(error.is_resource_limit());
    assert!(
        error.message("r").starts_with("r: 16777217 bytes"),
        "{error}"
    );
    for document in [
        &b"a: 1\na: 2\n"[..],
        b"a: &b 1",
        b"\xff",
        b"---\n---\n",
        b"{\"a\":1,\"a\":2}",
    ] {
        let error = verify(document, &trusting(), &options(), None).unwrap_err();
        assert!(!error.is_resource_limit());
        let message = error.message("x\ny");
        assert!(
            message.starts_with(r"unreadable YAML in x\u{a}y: "),
            "{message}"
        );
    }
}

#[test]
fn an_error_is_a_record_too() {
    let error = verify(b"a: [", &trusting(), &options(), None).unwrap_err();
    let record = String::from_utf8(error.to_json("r")).unwrap();
    assert!(
        record.starts_with(r#"{"subject":"r","verdict":"error","error":"operational","detail":"unreadable YAML in r: "#),
        "{record}"
    );
}

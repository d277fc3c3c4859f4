//! A document with one byte changed: refused, or another tree, or the same tree if the byte was
//! layout.

use attest_receipt::yaml::{self, IntoJson as _, Limits};
use strict_json::{Json, JsonError, Layout};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 16,
};

/// The shapes that a receipt has: plain, quoted and block texts, numbers, lists, nothing.
const RECEIPT: &str = r#"{
  "schema_version": 2, "pipeline_hash": "10e2", "cached": false, "signed": true,
  "steps": [
    {"name": "build: all", "exit_code": -1, "stdout": "one\n two\n\nthree", "stderr": "", "secs": 1.5},
    {"name": "7", "exit_code": 0, "stdout": "tab\tand \u0007 bell\n", "stderr": "it's # fine  "}
  ],
  "timestamp": "2026-11-30T20:17:44Z", "signature": null, "events": [], "text": "true",
  "provenance": {"inputs": ["a b", "- c", "é"], "source": null, "empty": {}}
}"#;

/// Every byte that one flipped bit makes, and those that mean something.
fn changed(byte: u8) -> impl Iterator<Item = u8> {
    (0..8)
        .map(move |bit| byte ^ (1 << bit))
        .chain(*b" \t\n\r#:'\"-+~0!&*|>[]{},?%\\")
        .filter(move |other| *other != byte)
}

fn read(document: &[u8]) -> Option<Json> {
    yaml::parse(document, &LIMITS).ok()?.into_json().ok()
}

/// Changes each byte of a document and returns the changes that left the tree as it was.
fn harmless(document: &str, tree: &Json) -> Vec<(usize, u8, u8)> {
    let mut harmless = Vec::new();
    for (position, byte) in document.bytes().enumerate() {
        for other in changed(byte) {
            let mut copy = document.as_bytes().to_vec();
            copy.splice(position..=position, [other]);
            if read(&copy).as_ref() == Some(tree) {
                harmless.push((position, byte, other));
            }
        }
    }
    harmless
}

fn receipt() -> Result<Json, JsonError> {
    let limits = strict_json::Limits {
        bytes: LIMITS.bytes,
        depth: LIMITS.depth,
    };
    strict_json::parse_value(RECEIPT.as_bytes(), &limits, Layout::Spaced)
}

/// White space outside of every text; the head of a block text, whose folding may change nothing;
/// and YAML's second escape for a tab.
fn is_layout(byte: u8, other: u8) -> bool {
    matches!(
        (byte, other),
        (b' ' | b'\n', _) | (b'|', b'>') | (b't', b'\t')
    )
}

#[test]
fn a23_a_changed_byte_of_yaml_leaves_no_second_spelling() {
    let tree = receipt().unwrap();
    let document = yaml_serde::to_string(&tree).unwrap();
    assert_eq!(read(document.as_bytes()).as_ref(), Some(&tree));
    for (position, byte, other) in harmless(&document, &tree) {
        assert!(
            is_layout(byte, other),
            "byte {position}, {byte:?} to {other:?}: {document}"
        );
    }
}

#[test]
fn a23_a_changed_byte_of_json_leaves_no_second_spelling() {
    let tree = receipt().unwrap();
    assert_eq!(read(RECEIPT.as_bytes()).as_ref(), Some(&tree));
    for (position, byte, other) in harmless(RECEIPT, &tree) {
        assert!(
            is_layout(byte, other),
            "byte {position}, {byte:?} to {other:?}: {RECEIPT}"
        );
    }
}

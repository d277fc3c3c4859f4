//! Single documents and what is read from them.

use attest_receipt::yaml::{self, Limits};
use serde_json::{Value, json};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 16,
};

/// Reads a document and resolves it; the error is the message.
pub(crate) fn read(document: &str) -> Result<Value, String> {
    let node = yaml::parse(document.as_bytes(), &LIMITS).map_err(|error| error.to_string())?;
    let tree = node.into_json().map_err(|error| error.to_string())?;
    serde_json::to_value(&tree).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(document: &str, message: &str) {
    // What is accepted has no message at all.
    let error = read(document).err().unwrap_or_default();
    assert!(error.contains(message), "{document:?}: {error:?}");
}

#[test]
fn plain_scalars_resolve_as_json_spells_them() {
    let document = "a: 1\nb: -7\nc: 1.5\nd: true\ne: false\nf: null\ng: 2e3\nh: text\ni: '1'\n";
    let expected = json!({
        "a": 1, "b": -7, "c": 1.5, "d": true, "e": false, "f": null, "g": 2000.0, "h": "text",
        "i": "1",
    });
    assert_eq!(read(document), Ok(expected));
}

#[test]
fn a03_one_document_without_markers_behind_it() {
    assert_eq!(read("---\na: 1\n"), Ok(json!({"a": 1})));
    assert_eq!(read("--- {a: 1}\n"), Ok(json!({"a": 1})));
    refused("a: 1\n---\nb: 2\n", "line 2: a second document");
    refused("a: 1\n...\n", "line 2: `...` is not allowed");
    refused("a: 1\n---\n", "line 2: a second document");
    refused("--- 1\n--- 2\n", "line 2: a second document");
    refused("%YAML 1.1\n---\na: 1\n", "line 1: directives");
    refused("%TAG !e! tag:e,2000:\n---\na: 1\n", "line 1: ");
    refused("{\"a\": 1} x", "line 1: data after the end");
}

#[test]
fn an_empty_document_is_null() {
    for document in ["", "\n\n", "# only a comment\n", "---\n", "---"] {
        assert_eq!(read(document), Ok(Value::Null), "{document:?}");
    }
}

#[test]
fn a10_anchors_aliases_tags_and_merge_keys() {
    refused("a: &x 1\nb: *x\n", "line 1: anchors");
    refused("a: 1\nb: *x\n", "line 2: aliases");
    refused("a: 1\nb: !x 1\n", "line 2: tags");
    refused("[!a,b]", "line 1: tags");
    refused("a: 1\n<<: {b: 2}\n", "line 2: merge keys");
}

#[test]
fn a_document_may_end_without_a_line_break() {
    assert_eq!(read("a: |\n  x"), Ok(json!({"a": "x"})));
    assert_eq!(read("a: |+\n  x"), Ok(json!({"a": "x"})));
    assert_eq!(read("a: |\n  x\n"), Ok(json!({"a": "x\n"})));
    assert_eq!(read("a: x\\"), Ok(json!({"a": "x\\"})));
    refused("a: \"x\\", "unexpected end of stream");
}

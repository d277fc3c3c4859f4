//! Single documents and what is read from them.

use attest_receipt::yaml::{self, IntoJson as _, Limits};
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
fn a03_a_mark_crlf_a_second_document_bytes_behind_it_and_nul_are_refused() {
    refused("\u{feff}a: 1\n", "line 1: a byte order mark");
    refused("\u{feff}{\"a\": 1}", "line 1: a byte order mark");
    refused("a: 1\r\nb: 2\r\n", "line 1: a carriage return");
    refused("a: 1\nb: 2\r", "line 2: a carriage return");
    refused("a: 1\n---\nb: 2\n", "line 2: a second document");
    refused("a: 1\n...\nb: 2\n", "line 2: `...` is not allowed");
    refused("{\"a\": 1}\n{\"b\": 2}\n", "line 2: data after the end");
    for (document, line) in [
        ("a: 1\0", 1),
        ("\0a: 1\n", 1),
        ("a: 1\n\0", 2),
        ("a: \"x\0\"\n", 1),
    ] {
        refused(document, &format!("line {line}: the character U+0000"));
    }
    refused("{\"a\": 1}\0", "line 1: data after the end");
    // Other encodings than UTF-8 are told by their mark, which is as little wanted.
    for bytes in [&b"\xff\xfea\0:\0 \x001\0"[..], b"\xfe\xff\0a\0:\0 \x001"] {
        assert!(
            yaml::parse(bytes, &LIMITS).is_err(),
            "{}",
            bytes.escape_ascii()
        );
    }
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

#[test]
fn a01_a_key_twice_by_any_spelling_at_any_depth() {
    let twice = "duplicate entry with key \"k\"";
    for document in [
        "k: 1\nk: 1\n",
        "k: 1\n'k': 2\n",
        "k: 1\n\"\\x6b\": 2\n",
        "k: 1\n? |-\n  k\n: 2\n",
        "{k: 1, \"k\": 2}",
        "a:\n- b:\n    k: 1\n    c: 2\n    k: 3\n",
        "{\"a\": [{\"k\": 1, \"\\u006b\": 2}]}",
        "{\"k\": \"\\ud83e\\udd80\", \"k\": 2}",
    ] {
        refused(document, twice);
    }
    assert_eq!(
        read("k: {k: {k: 1}, K: 2}\n"),
        Ok(json!({"k": {"k": {"k": 1}, "K": 2}}))
    );
}

#[test]
fn a01_a_key_in_a_message_is_short_and_printable() {
    let key = "\\e".repeat(1000);
    let document = format!("? \"{key}\"\n: 1\n? \"{key}\"\n: 2\n");
    let message = read(&document).unwrap_err();
    assert!(message.len() < 500 && !message.contains(char::is_control));
    assert!(message.ends_with("…\""), "{message}");
}

#[test]
fn a04_bytes_that_are_no_utf8_and_halves_of_pairs() {
    for bytes in [
        &b"a: \xff"[..],
        b"a: \xc0\xaf",
        b"a: \xed\xa0\x80",
        b"{\"a\": \"\xed\xa0\x80\"}",
        b"a: \xe2\x82",
    ] {
        let error = yaml::parse(bytes, &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "line 1: invalid UTF-8");
    }
    refused("a: \"\\ud800\"", "invalid Unicode character escape code");
    refused("{\"a\": \"\\ud800\"}", "unpaired surrogate");
}

#[test]
fn a05_other_spellings_of_numbers_and_literals() {
    for value in [
        "True", "TRUE", "False", "FALSE", "Null", "NULL", "~", "0x1f", "-0x1f", "0o17", "0b1",
        "+1", "+1.5", ".5", "5.", ".inf", "+.inf", "-.INF", ".nan", ".NaN", "+1e3", "",
    ] {
        refused(&format!("a: {value}\n"), "line 1: ");
        refused(&format!("{{\"a\": {value}, b: 1}}"), "line 1: ");
        // Quoted, it is a text like any other.
        assert_eq!(
            read(&format!("a: '{value}'\n")),
            Ok(json!({ "a": value })),
            "{value}"
        );
    }
    // What JSON spells, it keeps: an integer stays exact, a fraction stays a fraction.
    let document = "[9007199254740993, 18446744073709551615, 1.0, 1e0, -0]\n";
    let expected = "[9007199254740993,18446744073709551615,1.0,1.0,-0.0]";
    assert_eq!(
        read(document).map(|value| value.to_string()),
        Ok(expected.to_owned())
    );
}

#[test]
fn a_scalar_keeps_its_spelling_until_it_is_resolved() {
    for document in [
        "v: [1.10, 0x1f, ~, 'x', true]\n",
        "{\"v\": [1.10, 31, null, \"x\", true]}",
    ] {
        let node = yaml::parse(document.as_bytes(), &LIMITS).unwrap();
        let yaml::Value::Mapping(members) = node.value else {
            unreachable!("{document}")
        };
        let yaml::Value::Sequence(items) = &members[0].1.value else {
            unreachable!("{document}")
        };
        let plain =
            |item: &yaml::Node| matches!(item.value, yaml::Value::Scalar { plain: true, .. });
        let first = yaml::Value::Scalar {
            text: "1.10".to_owned(),
            plain: true,
        };
        assert_eq!(items[0].value, first);
        assert_eq!(
            items.iter().map(plain).collect::<Vec<_>>(),
            [true, true, true, false, true]
        );
    }
}

#[test]
fn every_value_has_its_line() {
    let documents = [
        "a: 1\n\nb:\n- 2\n- c: 3\n",
        "{\"a\": 1,\n\n\"b\": [\n2,\n{\"c\": 3}]}",
    ];
    for document in documents {
        let node = yaml::parse(document.as_bytes(), &LIMITS).unwrap();
        let mut lines = Vec::new();
        scalar_lines(&node, &mut lines);
        assert_eq!(lines, [1, 4, 5], "{document}");
    }
}

fn scalar_lines(node: &yaml::Node, lines: &mut Vec<usize>) {
    match &node.value {
        yaml::Value::Scalar { .. } => lines.push(node.line),
        yaml::Value::Sequence(items) => items.iter().for_each(|item| scalar_lines(item, lines)),
        yaml::Value::Mapping(members) => members
            .iter()
            .for_each(|(_, value)| scalar_lines(value, lines)),
    }
}

//! The records of plugins: their own rules are part of the format.

use attest_receipt::receipt::{self, Receipt};
use serde_json::{Value, json};

use crate::sample::{self, HASH, full, refusal, with};

fn record(name: &str) -> Value {
    json!({"name": name, "version": "1", "protocol": 1, "digest": format!("blake3:{HASH}"),
           "decision": "allow", "deterministic": true})
}

fn records(records: &[Value]) -> Result<Receipt, String> {
    with("/plugins", json!(records)).map_err(|error| error.to_string())
}

#[test]
fn records_are_sorted_and_each_name_stands_once() {
    assert!(records(&[record("a"), record("a-b"), record("b")]).is_ok());
    let unsorted = records(&[record("b"), record("a")]).unwrap_err();
    assert!(unsorted.contains("sorted by name"), "{unsorted}");
    let twice = records(&[record("a"), record("a")]).unwrap_err();
    assert!(twice.contains("names a twice"), "{twice}");
}

#[test]
fn an_empty_list_of_plugins_is_refused_since_absent_says_it() {
    let error = records(&[]).unwrap_err();
    assert!(error.contains("must be absent"), "{error}");
}

#[test]
fn names_are_short_and_of_few_characters() {
    for name in ["a", "0", "-", "policy-2", &"x".repeat(32)] {
        assert!(records(&[record(name)]).is_ok(), "{name}");
    }
    for name in ["", "A", "a_b", "a.b", "a b", "é", "a\n", &"x".repeat(33)] {
        assert!(records(&[record(name)]).is_err(), "{name:?}");
    }
}

#[test]
fn a24_a_plugins_digest_has_its_prefix_and_64_lowercase_digits() {
    for digest in [
        HASH.to_owned(),
        format!("blake3:{}", &HASH[1..]),
        format!("blake3:{HASH}0"),
        format!("blake3:{}", HASH.to_uppercase()),
        format!("BLAKE3:{HASH}"),
        format!("sha256:{HASH}"),
        format!("blake3: {HASH}"),
        "blake3:".to_owned(),
        String::new(),
    ] {
        let error = refusal("/plugins/0/digest", json!(digest));
        assert!(error.contains("`digest` must be blake3:"), "{error}");
    }
}

#[test]
fn a_reason_stands_with_error_and_skipped_and_with_nothing_else() {
    let reasons = [None, Some(json!(null)), Some(json!("")), Some(json!("why"))];
    for decision in [
        "allow", "warn", "deny", "error", "skipped", "other", "Allow",
    ] {
        for reason in &reasons {
            let mut record = record("a");
            record["decision"] = json!(decision);
            if let Some(reason) = reason {
                record["reason"] = reason.clone();
            }
            let why = reason.as_ref() == Some(&json!("why"));
            let none = reason.as_ref().is_none_or(Value::is_null);
            let right = match decision {
                "allow" | "warn" | "deny" => none,
                "error" | "skipped" => why,
                _ => false,
            };
            assert_eq!(records(&[record]).is_ok(), right, "{decision} {reason:?}");
        }
    }
}

#[test]
fn an_annotation_is_an_object_of_bounded_depth_and_length() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    let listed = |levels: usize| {
        let inner = (2..levels).fold(json!([]), |inner, _| json!([inner]));
        json!({"a": inner})
    };
    for right in [
        json!({}),
        nested(64),
        listed(64),
        json!({"a": "x".repeat(65_528)}),
    ] {
        assert!(with("/plugins/1/annotation", right).is_ok());
    }
    for wrong in [
        json!([]),
        json!("x"),
        nested(65),
        listed(65),
        json!({"a": "x".repeat(65_529)}),
    ] {
        refusal("/plugins/1/annotation", wrong);
    }
}

#[test]
fn a06_the_order_of_keys_in_an_annotation_changes_nothing() {
    let yaml = sample::read(&full()).unwrap().to_yaml().unwrap();
    let sorted = "  annotation:\n    level: 2\n    nested:\n      a: x\n      b:\n      - null\n      - true\n    ratio: 0.5\n";
    let other = "  annotation: {ratio: 0.5, nested: {b: [null, true], a: x}, level: 2}\n";
    assert!(yaml.contains(sorted), "{yaml}");
    let one = receipt::read(yaml.as_bytes()).unwrap();
    let other = receipt::read(yaml.replace(sorted, other).as_bytes()).unwrap();
    assert_eq!(other, one);
    assert_eq!(other.signing_bytes(), one.signing_bytes());
}

#[test]
fn a01_a_key_that_stands_twice_in_an_annotation_is_refused() {
    let text = full().to_string();
    let twice = text.replace("\"ratio\":0.5", "\"ratio\":0.5,\"\\u0072atio\":0.5");
    assert_ne!(twice, text);
    assert!(receipt::read(text.as_bytes()).is_ok());
    assert!(receipt::read(twice.as_bytes()).is_err());
}

#[test]
fn a05_numbers_of_an_annotation_keep_their_shortest_form() {
    for (given, signed) in [
        ("1", "1"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.0", "1.0"),
        ("1.50", "1.5"),
        ("1e2", "100.0"),
        ("0.1", "0.1"),
        ("5e-324", "5e-324"),
        ("-0", "-0.0"),
        ("18446744073709551616", "1.8446744073709552e+19"),
    ] {
        let text = full()
            .to_string()
            .replace("\"ratio\":0.5", &format!("\"ratio\":{given}"));
        let receipt = receipt::read(text.as_bytes()).unwrap();
        let signing = String::from_utf8(receipt.signing_bytes()).unwrap();
        assert!(
            signing.contains(&format!("\"ratio\":{signed}}}")),
            "{signing}"
        );
        let yaml = receipt.to_yaml().unwrap();
        let again = receipt::read(yaml.as_bytes()).unwrap();
        assert_eq!(again.signing_bytes(), receipt.signing_bytes(), "{given}");
    }
    let text = full()
        .to_string()
        .replace("\"ratio\":0.5", "\"ratio\":1e400");
    assert!(receipt::read(text.as_bytes()).is_err());
}

#[test]
fn an_annotation_with_a_merge_key_is_stored_as_json() {
    let receipt = with("/plugins/1/annotation", json!({"a": [{"<<": {"b": 1}}]})).unwrap();
    let stored = receipt.to_yaml().unwrap();
    assert!(
        stored.starts_with('{') && stored.ends_with("}\n"),
        "{stored}"
    );
    assert_eq!(receipt::read(stored.as_bytes()).unwrap(), receipt);
    let other = with("/plugins/1/annotation", json!({"a": "<<"})).unwrap();
    assert!(other.to_yaml().unwrap().starts_with("schema_version: 3\n"));
}

#[test]
fn the_signing_bytes_sort_plugins_by_name() {
    let mut receipt = sample::read(&full()).unwrap();
    let signing = receipt.signing_bytes();
    receipt.plugins.as_mut().unwrap().reverse();
    assert_eq!(receipt.signing_bytes(), signing);
    let text = String::from_utf8(signing).unwrap();
    assert!(text.find("\"audit\"").unwrap() < text.find("\"policy\"").unwrap());
}

#[test]
fn plugins_are_the_last_field_and_absent_without_any() {
    let mut receipt = sample::read(&full()).unwrap();
    let with = String::from_utf8(receipt.signing_bytes()).unwrap();
    receipt.plugins = None;
    let without = String::from_utf8(receipt.signing_bytes()).unwrap();
    let (head, tail) = with.split_once(",\"plugins\":[").unwrap();
    assert_eq!(without, format!("{head}}}"));
    assert!(tail.ends_with("]}"));
    assert!(!receipt.to_yaml().unwrap().contains("plugins"));
}

#[test]
fn a_receipt_with_plugins_has_the_signing_bytes_that_another_program_derived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let yaml = std::fs::read_to_string(format!("{folder}/plugins.yaml")).unwrap();
    let expected = std::fs::read_to_string(format!("{folder}/plugins.yaml.signing.json")).unwrap();
    let receipt = receipt::read(yaml.as_bytes()).unwrap();
    assert_eq!(
        String::from_utf8(receipt.signing_bytes()).unwrap(),
        expected
    );
    assert_eq!(receipt.problems(), Vec::<String>::new());
    // The file's annotation is not in the canonical order; what is written is.
    assert_ne!(receipt.to_yaml().unwrap(), yaml);
}

#[test]
fn a05_the_form_of_a_number_is_signed_and_never_changes() {
    for (number, form) in [
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (0.000_01, "0.00001"),
        (0.000_001, "1e-6"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
    ] {
        let receipt = with("/plugins/1/annotation", json!({"a": number})).unwrap();
        let signing = String::from_utf8(receipt.signing_bytes()).unwrap();
        let annotation = format!("\"annotation\":{{\"a\":{form}}}");
        assert!(signing.contains(&annotation), "{form}: {signing}");
    }
}

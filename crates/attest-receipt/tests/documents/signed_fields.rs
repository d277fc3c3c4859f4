//! Every field is under the signature but three, and each of them shows there.

use attest_receipt::receipt::{ReadError, Receipt};
use serde_json::{Value, json};

use crate::sample::{self, full, pointers};

/// What no signature covers: itself, its key, and the token over it.
const UNSIGNED: &[&str] = &["/signature", "/signer_public_key", "/timestamp_token"];

/// Other values of the same type that a field may have.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!(0)],
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => match number.as_i64() {
            Some(value) => vec![json!(value + 1), json!(value - 1)],
            None => vec![json!(number.as_f64().unwrap() * 2.0)],
        },
        Value::String(text) => {
            let mut all: Vec<Value> = [
                "github",
                "symlink",
                "none",
                "enforced",
                "native",
                "deny",
                "skipped",
                "2026-11-30T12:00:00.124Z",
            ]
            .into_iter()
            .filter(|word| word != text)
            .map(|word| json!(word))
            .collect();
            all.push(json!(format!("{text}x")));
            all.push(json!(text.replacen('0', "1", 1)));
            all.retain(|other| other != value);
            all
        }
        Value::Array(items) => {
            let mut longer = items.clone();
            longer.extend(items.first().cloned().or(Some(json!("x"))));
            let shorter = items.iter().skip(1).cloned().collect();
            let reversed = items.iter().rev().cloned().collect();
            let mut all = vec![
                Value::Array(longer),
                Value::Array(shorter),
                Value::Array(reversed),
            ];
            all.retain(|other| other != value);
            all
        }
        Value::Object(members) => members
            .keys()
            .map(|key| {
                let mut fewer = members.clone();
                fewer.remove(key);
                Value::Object(fewer)
            })
            .collect(),
    }
}

/// Steps and events are sorted before they are signed, so their order alone does not show.
fn is_order_only(pointer: &str, other: &Value) -> bool {
    let full = full();
    let (Some(one), Some(other)) = (full.pointer(pointer).unwrap().as_array(), other.as_array())
    else {
        return false;
    };
    matches!(pointer, "/steps" | "/causal_events")
        && one.iter().eq(other.iter().rev())
        && one.len() == other.len()
}

fn is_unsigned(before: &Receipt, after: &Receipt) -> bool {
    let bare = |receipt: &Receipt| Receipt {
        signature: None,
        signer_public_key: None,
        timestamp_token: None,
        ..receipt.clone()
    };
    bare(before) == bare(after)
}

#[test]
fn a23_each_field_that_changes_changes_the_signing_bytes() {
    let before = sample::read(&full()).unwrap();
    let signing = before.signing_bytes();
    let (mut changed, mut untouched) = (Vec::new(), Vec::new());
    for pointer in pointers(&full()) {
        for other in others(full().pointer(&pointer).unwrap()) {
            let mut receipt = full();
            *receipt.pointer_mut(&pointer).unwrap() = other.clone();
            let after = match sample::read(&receipt) {
                Err(ReadError::Schema(_)) => continue,
                Err(error) => panic!("{pointer}: {error}"),
                Ok(after) => after,
            };
            assert_ne!(after, before, "{pointer} = {other}");
            let same = after.signing_bytes() == signing;
            if is_unsigned(&before, &after) || is_order_only(&pointer, &other) {
                assert!(same, "{pointer} = {other}");
                untouched.push(pointer.clone());
            } else {
                assert!(!same, "{pointer} = {other}");
                changed.push(pointer.clone());
            }
        }
    }
    for pointer in UNSIGNED {
        assert!(untouched.iter().any(|it| it == pointer), "{pointer}");
    }
    // Each leaf could be changed to something that is still a receipt.
    for pointer in pointers(&full()) {
        let full = full();
        let value = full.pointer(&pointer).unwrap();
        let is_leaf = !value.is_object() && !value.is_array();
        let must_change = is_leaf && !UNSIGNED.contains(&pointer.as_str());
        let alone = ["/provenance/execution/mode", "/plugins/1/decision"];
        if must_change && !alone.contains(&pointer.as_str()) {
            assert!(changed.contains(&pointer), "{pointer} was never changed");
        }
    }
}

#[test]
fn a23_a_field_that_moved_elsewhere_is_unknown_there() {
    for (from, to, name) in [
        ("", "/provenance", "timestamp"),
        ("", "/provenance", "signature"),
        ("/steps/0", "", "stdout"),
        ("/provenance", "", "artifacts"),
        ("/isolation", "/provenance", "controls"),
        ("/plugins/1", "", "annotation"),
    ] {
        let mut receipt = full();
        let object = receipt.pointer_mut(from).unwrap().as_object_mut();
        let moved = object.unwrap().remove(name).unwrap();
        let object = receipt.pointer_mut(to).unwrap().as_object_mut();
        object.unwrap().insert(name.to_owned(), moved);
        assert!(sample::read(&receipt).is_err(), "{from} -> {to}: {name}");
    }
}

#[test]
fn a22_a34_edits_that_keep_the_text_the_same_still_show() {
    let signing = |value: &Value| sample::read(value).unwrap().signing_bytes();
    let one = full();
    for (pointer, left, right) in [
        (
            "/provenance/execution/command",
            json!(["a b"]),
            json!(["a", "b"]),
        ),
        (
            "/provenance/steps/0/inputs",
            json!(["a", "b"]),
            json!(["a,b"]),
        ),
        ("/causal_events", json!([]), json!([""])),
    ] {
        let (mut first, mut second) = (one.clone(), one.clone());
        *first.pointer_mut(pointer).unwrap() = left;
        *second.pointer_mut(pointer).unwrap() = right;
        assert_ne!(signing(&first), signing(&second), "{pointer}");
    }
    let (mut first, mut second) = (one.clone(), one);
    first["steps"][0]["stdout"] = json!("a\",\"stderr\":\"b");
    second["steps"][0]["stdout"] = json!("a");
    second["steps"][0]["stderr"] = json!("b");
    assert_ne!(signing(&first), signing(&second));
}

//! Every field and every byte of a signed receipt, changed one at a time: what still passes is the
//! same receipt.

use attest_receipt::receipt::{self, PluginRecord, Receipt};
use attest_verify::trust::Trust;
use attest_verify::{CheckName, Outcome, verify};
use serde_json::{Map, Value, json};

use crate::common::{
    SIGNED, fails, options, passes, plugin, receipt, signed, trusting, vector, vector_trust,
};

/// What makes two receipts the same: everything but the order of steps and events.
fn sorted(mut receipt: Receipt) -> Receipt {
    receipt.steps.sort_by(|a, b| a.name.cmp(&b.name));
    receipt.causal_events.sort();
    receipt
}

/// Judges changed bytes; they pass if and only if they are the same receipt.
fn judge(bytes: &[u8], whole: &Receipt, trust: &Trust, what: &dyn Fn() -> String) -> bool {
    let Ok(outcome) = verify(bytes, trust, &options(), None) else {
        return false;
    };
    let passed = outcome.passed();
    let same = outcome.receipt.is_some_and(|read| sorted(read) == *whole);
    assert_eq!(passed, same, "{}", what());
    passed
}

/// The signed vectors, and one of ours with everything that they lack.
fn signed_receipts() -> Vec<(Vec<u8>, Trust)> {
    let mut receipts: Vec<_> = SIGNED
        .iter()
        .map(|(file, folder)| (vector(file), vector_trust(folder)))
        .collect();
    receipts.push((full().to_yaml().unwrap().into_bytes(), trusting()));
    receipts
}

fn full() -> Receipt {
    let mut full = receipt();
    full.schema_version = Some(3);
    full.steps[0].capsule_hash = Some("d".repeat(64));
    full.causal_events = vec!["e".repeat(64), "f".repeat(64)];
    full.causal_chain_hash = Some("1".repeat(64));
    full.reproducibility = Some(receipt::Reproducibility {
        verified: true,
        runs: 2,
        method: "double-build/v1".to_owned(),
    });
    full.plugins = Some(vec![
        PluginRecord {
            reason: Some("it fell over".to_owned()),
            ..plugin("audit", receipt::Decision::Error)
        },
        plugin("policy", receipt::Decision::Allow),
    ]);
    signed(full)
}

#[test]
fn what_is_changed_here_passes_unchanged() {
    for (bytes, trust) in signed_receipts() {
        passes(&verify(&bytes, &trust, &options(), None).unwrap());
    }
}

/// Bit 0 makes another digit of most; in turn come another case, white space, line ends, marks that
/// mean something in YAML, bytes that are no text, and nothing at all.
fn every_byte(which: usize) {
    let (bytes, trust) = signed_receipts().swap_remove(which);
    let whole = sorted(receipt::read(&bytes).unwrap());
    for at in 0..bytes.len() {
        let old = bytes[at];
        let marks = [
            old ^ 0x20,
            old ^ 0x80,
            b' ',
            b'\n',
            b'\'',
            b'#',
            b'0',
            b'\r',
        ];
        let mut shorter = bytes.clone();
        shorter.remove(at);
        let mut all = vec![("removed".to_owned(), shorter)];
        for new in [old ^ 1, marks[at % marks.len()]] {
            let mut changed = bytes.clone();
            changed[at] = new;
            all.push((format!("{old:#04x} to {new:#04x}"), changed));
        }
        // Two of the three, in turn.
        all.remove((at / 8) % 3);
        for (what, changed) in all {
            judge(&changed, &whole, &trust, &|| format!("byte {at}: {what}"));
        }
    }
}

#[test]
fn every_byte_of_a_pipelines_receipt_counts() {
    every_byte(0);
}

#[test]
fn every_byte_of_a_wrapped_commands_receipt_counts() {
    every_byte(1);
}

#[test]
fn every_byte_of_an_early_releases_receipt_counts() {
    every_byte(2);
}

#[test]
fn every_byte_of_a_receipt_with_plugins_counts() {
    every_byte(3);
}

#[test]
fn every_cut_of_a_signed_receipt_is_refused() {
    for (bytes, trust) in signed_receipts() {
        let whole = sorted(receipt::read(&bytes).unwrap());
        for end in (0..bytes.len()).filter(|end| end % 5 == 0 || bytes.len() - end < 20) {
            let passed = judge(&bytes[..end], &whole, &trust, &|| format!("cut at {end}"));
            // A line feed at the end is all that can be missing.
            assert!(!passed || end + 1 == bytes.len(), "cut at {end}");
        }
    }
}

/// Every way in which a value is replaced, taken away, repeated or moved.
fn variants(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!("x"), json!(0), json!(true), json!([]), json!({})],
        Value::Bool(value) => vec![json!(!value), Value::Null, json!("true")],
        Value::Number(number) => {
            let number = number.as_i64().unwrap();
            let others = [number + 1, number - 1, -number - 1, 7, 0];
            let numbers = others.into_iter().filter(|other| *other != number);
            numbers
                .map(|number| json!(number))
                .chain([json!(number.to_string()), Value::Null])
                .collect()
        }
        Value::String(text) => strings(text),
        Value::Array(items) => lists(items),
        Value::Object(members) => objects(members),
    }
}

fn strings(text: &str) -> Vec<Value> {
    let mut all = vec![
        json!(""),
        json!(format!("{text} ")),
        json!(format!(" {text}")),
        json!(format!("{text}\u{0}")),
        json!(format!("{text}x")),
        json!(text.to_uppercase()),
        json!("a".repeat(text.len())),
        json!([text]),
        json!(0),
        Value::Null,
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for at in (0..chars.len()).step_by(9) {
        let old = chars[at];
        chars[at] = if old == '0' { '1' } else { '0' };
        all.push(json!(chars.iter().collect::<String>()));
        chars[at] = old;
    }
    all
}

fn lists(items: &[Value]) -> Vec<Value> {
    let mut all = vec![json!([]), json!({}), Value::Null];
    for at in 0..items.len() {
        let mut fewer = items.to_vec();
        fewer.remove(at);
        all.push(Value::Array(fewer));
        let mut twice = items.to_vec();
        twice.insert(at, items[at].clone());
        all.push(Value::Array(twice));
        for other in at + 1..items.len() {
            let mut swapped = items.to_vec();
            swapped.swap(at, other);
            all.push(Value::Array(swapped));
        }
        // The boundary between two arguments or names.
        if let (Some(first), Some(second)) = (
            items[at].as_str(),
            items.get(at + 1).and_then(Value::as_str),
        ) {
            let mut joined = items.to_vec();
            joined[at] = json!(format!("{first} {second}"));
            joined.remove(at + 1);
            all.push(Value::Array(joined));
        }
    }
    let mut more = items.to_vec();
    more.push(json!("x"));
    all.push(Value::Array(more));
    all
}

fn objects(members: &Map<String, Value>) -> Vec<Value> {
    let mut all = vec![json!({}), json!([]), Value::Null];
    for key in members.keys() {
        let mut fewer = members.clone();
        let value = fewer.remove(key).unwrap();
        all.push(Value::Object(fewer.clone()));
        fewer.insert(format!("{key}_"), value);
        all.push(Value::Object(fewer));
    }
    let mut more = members.clone();
    more.insert("x".to_owned(), json!(1));
    all.push(Value::Object(more));
    all
}

/// The pointers to every value of a document.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                pointers(member, &format!("{at}/{key}"), out);
            }
        }
        _ => {}
    }
}

/// A24, A28, A30, A32, A34, A35, A36 among them: hashes, times, declarations, arguments, verdicts
/// and claims are all signed.
#[test]
fn a24_a28_a30_a32_a34_a35_a36_every_signed_field_counts() {
    for (bytes, trust) in signed_receipts() {
        let whole = sorted(receipt::read(&bytes).unwrap());
        let tree = serde_json::to_value(&whole).unwrap();
        let mut places = Vec::new();
        pointers(&tree, "", &mut places);
        for place in places {
            for variant in variants(tree.pointer(&place).unwrap()) {
                let mut changed = tree.clone();
                *changed.pointer_mut(&place).unwrap() = variant;
                let text = serde_json::to_vec(&changed).unwrap();
                judge(&text, &whole, &trust, &|| {
                    format!("{place}: {}", String::from_utf8_lossy(&text))
                });
            }
        }
    }
}

fn judge_changed(change: impl FnOnce(&mut Receipt)) -> Outcome {
    let mut changed = full();
    change(&mut changed);
    crate::common::judge(&changed, &trusting(), &options())
}

#[test]
fn a35_an_edited_reproducibility_verdict_does_not_verify() {
    let outcome = judge_changed(|receipt| {
        receipt.reproducibility.as_mut().unwrap().runs = 3;
    });
    fails(&outcome, CheckName::Signature, "does not verify");
}

#[test]
fn a33_every_version_up_to_the_newest_keeps_its_own_signature() {
    for version in [None, Some(0), Some(1), Some(2), Some(3)] {
        let mut receipt = receipt();
        receipt.schema_version = version;
        let whole = signed(receipt);
        passes(&crate::common::usual(&whole));
        for other in [None, Some(0), Some(1), Some(2), Some(3)] {
            let mut changed = whole.clone();
            changed.schema_version = other;
            let outcome = crate::common::usual(&changed);
            assert_eq!(outcome.passed(), other == version, "{version:?} {other:?}");
        }
    }
    let newer = json!({"schema_version": 99, "anything": ["else"]});
    let outcome = verify(newer.to_string().as_bytes(), &trusting(), &options(), None).unwrap();
    fails(
        &outcome,
        CheckName::Schema,
        "receipt schema_version 99 is newer than the latest supported version (3); upgrade attest to verify this receipt",
    );
    for check in &outcome.checks[1..] {
        assert_eq!(check.detail, "schema check failed");
    }
}

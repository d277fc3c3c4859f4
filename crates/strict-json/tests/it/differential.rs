//! The hand-written reader against serde_json, on random values and on damaged documents.

use proptest::prelude::*;
use strict_json::{Json, JsonError, Layout, Limits, parse_value, to_forge_frame, to_line};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 100,
};

fn read(bytes: &[u8]) -> Result<Json, JsonError> {
    parse_value(bytes, &LIMITS, Layout::Spaced)
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        proptest::num::f64::NORMAL.prop_map(Into::into),
        any::<String>().prop_map(Into::into),
        "[<>&\u{2028}\u{2029}\"\\\\a]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Compares; serde_json may miss a double by its last bit.
fn same(ours: &Json, theirs: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(left), Value::Bool(right)) => left == right,
        (Json::Text(left), Value::String(right)) => left == right,
        (Json::Integer(left), Value::Number(right)) => right.as_i64() == Some(*left),
        (Json::Unsigned(left), Value::Number(right)) => right.as_u64() == Some(*left),
        // As it is built here serde_json reads a long number a few units in the last place off,
        // the more so the further its exponent is from 0; ours is the nearest one.
        (Json::Number(left), Value::Number(right)) => right
            .as_f64()
            .is_some_and(|right| (left - right).abs() <= left.abs() * 8.0 * f64::EPSILON),
        (Json::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Json::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn valid_documents_read_alike(value in any_value()) {
        for text in [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap()] {
            let ours = read(&text).unwrap();
            prop_assert!(same(&ours, &value), "{ours:?} {value:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let ours = read(&serde_json::to_vec(&value).unwrap()).unwrap();
        for written in [to_line(&ours), to_forge_frame(&ours)] {
            let again = parse_value(&written, &LIMITS, Layout::Compact);
            prop_assert_eq!(again.as_ref(), Ok(&ours));
        }
    }

    #[test]
    fn damaged_documents_are_judged_alike(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        change in prop_oneof![
            any::<u8>().prop_map(Some),
            prop::sample::select(b"{}[]:,\"\\ \n0123eE+-.utfn/".to_vec()).prop_map(Some),
            Just(None)
        ],
    ) {
        let mut bytes = serde_json::to_vec(&value).unwrap();
        let at = at.index(bytes.len());
        match change {
            Some(byte) => bytes[at] = byte,
            None => { bytes.remove(at); }
        }
        match (read(&bytes), serde_json::from_slice::<serde_json::Value>(&bytes)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same(&ours, &theirs), "{ours:?} {theirs:?}"),
            // The tree of serde_json keeps the last of several equal keys.
            (Err(JsonError::DuplicateKey { .. }), Ok(_)) | (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} {theirs:?}"),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        strict_json::fuzz_entry::read(&bytes);
    }
}

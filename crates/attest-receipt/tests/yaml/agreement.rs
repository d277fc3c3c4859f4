//! What this reader accepts, the writers' own reader accepts too and takes for the same tree.

use attest_receipt::fuzz_entry;
use attest_receipt::yaml::{self, IntoJson as _, Limits};
use proptest::prelude::*;
use strict_json::{Json, Object};
use yaml_serde::Value;

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 32,
};

/// Pieces of documents, ordinary and hostile.
const PIECES: &[&str] = &[
    "a: ",
    "b: ",
    "- ",
    "-",
    "? ",
    ": ",
    ":",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ",",
    "\n",
    "\n  ",
    "\n    ",
    "\n\n",
    " ",
    "  ",
    "\t",
    "'",
    "''",
    "\"",
    "\\",
    "\\n",
    "\\x41",
    "\\u263a",
    "\\\n",
    "|\n  ",
    "|-\n ",
    "|+\n  ",
    "|2\n   ",
    ">\n  ",
    ">-\n  ",
    "|",
    ">",
    "#",
    " # c\n",
    "---",
    "--- ",
    "\n---\n",
    "...",
    "\n...\n",
    "%YAML 1.1\n",
    "%",
    "&a ",
    "*a",
    "!",
    "!t ",
    "!!str ",
    "!<x>",
    "!a,",
    "<<: ",
    "null",
    "~",
    "true",
    "True",
    "1",
    "-1",
    "0x1",
    "1.5",
    "1e3",
    ".inf",
    "x",
    "y z",
    "é",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{fdd0}",
    "\u{1f980}",
    "a",
    "b",
    "c: d\n",
    "\"k\": ",
    "'k': ",
    "k: v\n",
    "@",
    "`",
    "=",
];

/// What is refused here alone.
const MEANT: &[&str] = &[
    "no plain value",
    "`...` is not allowed",
    "byte order mark",
    "a key is missing",
    "a key must be a text",
    "a value is missing",
    "a text ends in spaces without a line break",
    "anchors",
    "aliases",
    "tags",
    "directives",
    "merge keys",
    "U+FEFF",
    "data after the end of the value",
    "a second document",
];

fn document() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14)
        .prop_map(|parts| parts.concat())
}

fn read(document: &str) -> Result<Json, String> {
    yaml::parse(document.as_bytes(), &LIMITS)
        .and_then(yaml::Node::into_json)
        .map_err(|error| error.to_string())
}

/// Makes the other reader's tree comparable; `None` for keys that are no texts.
fn converted(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), _, _) => Json::Integer(value),
            (_, Some(value), _) => Json::Unsigned(value),
            (_, _, value) => Json::Number(value?),
        },
        Value::String(text) => Json::Text(text.clone()),
        Value::Sequence(items) => Json::Array(items.iter().map(converted).collect::<Option<_>>()?),
        Value::Mapping(members) => {
            let members = members
                .iter()
                .map(|(key, value)| Some((key.as_str()?.to_owned(), converted(value)?)))
                .collect::<Option<Vec<_>>>()?;
            Json::Object(Object::from_members(members).ok()?)
        }
        Value::Tagged(_) => return None,
    })
}

/// Compares trees; the other reader has no negative zero and loses the kind of large numbers.
fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Integer(right)) => *left == 0.0 && *right == 0,
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|((lk, lv), (rk, rv))| lk == rk && same(lv, rv))
        }
        _ => left == right,
    }
}

#[track_caller]
fn agrees(document: &str) {
    fuzz_entry::document(document.as_bytes());
    let ours = match read(document) {
        Ok(ours) => ours,
        Err(reason) => {
            let meant = MEANT.iter().any(|meant| reason.contains(meant));
            let theirs = yaml_serde::from_str::<Value>(document);
            assert!(meant || theirs.is_err(), "{document:?}: {reason}");
            return;
        }
    };
    match yaml_serde::from_str::<Value>(document) {
        Ok(theirs) => {
            if let Some(theirs) = converted(&theirs) {
                assert!(same(&ours, &theirs), "{document:?}: {ours:?} {theirs:?}");
            }
        }
        // JSON escapes surrogates in pairs, which is no YAML.
        Err(error) => assert!(
            document.trim_start().starts_with('{'),
            "{document:?} is read here alone: {ours:?}, {error}"
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_documents(document in document()) {
        agrees(&document);
    }

    #[test]
    fn random_scalars(text in "[-+.0-9eExXobnNaAiIfFtTrRuU_~:]{1,8}") {
        agrees(&text);
    }
}

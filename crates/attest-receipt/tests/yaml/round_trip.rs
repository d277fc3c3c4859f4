//! What the writer of receipts writes, this reader reads back to the same tree.

use attest_receipt::yaml::{self, IntoJson as _, Limits};
use proptest::prelude::*;
use strict_json::{Json, Object};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 32,
};

/// Texts that a writer must quote, and some that it need not.
const LOOKALIKES: &[&str] = &[
    "",
    "~",
    "null",
    "Null",
    "NULL",
    "true",
    "True",
    "TRUE",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
    "0",
    "-0",
    "00",
    "007",
    "-01",
    "+1",
    "1.0",
    ".5",
    "5.",
    "1e3",
    "1E+3",
    "1e999",
    "0x1f",
    "-0x1f",
    "0o17",
    "0b11",
    "1_000",
    "12:30:45",
    "190:20:30",
    "2026-11-30",
    ".inf",
    "-.inf",
    "+.inf",
    ".nan",
    "inf",
    "nan",
    "2026-11-30T20:17:44Z",
    "0xdeadbeefdeadbeefdeadbeefdeadbeefdead",
    "123456789012345678901234567890",
    "340282366920938463463374607431768211456",
    "-",
    "--",
    "---",
    "...",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "!!str",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "'",
    "\"",
    "'a'",
    "\"a\"",
    "[a",
    "]",
    "{a",
    "}",
    ",",
    "a,b",
    "<<",
    "=",
    " a",
    "a ",
    "  ",
    "\t",
    "a\tb",
    "\ta",
    "a\t",
    "\n",
    "\n\n",
    "a\n",
    "a\n\n",
    "\na",
    "\n a",
    " a\n",
    "  a\nb\n",
    "a\n  b\n",
    "a\n\tb\n",
    "\ta\nb",
    "a\r\nb",
    "a\rb",
    "\r",
    "a\n---\nb",
    "---\n",
    "...\n",
    "# c\n",
    "a\u{85}b",
    "a\u{2028}b",
    "\u{2028}",
    "a\n\u{2028}b\n",
    "a\u{2029}\n b",
    "\u{feff}a",
    "a\u{feff}b",
    "\u{0}",
    "\u{1}",
    "\u{7f}",
    "\u{9f}",
    "\u{a0}",
    "\u{fdd0}",
    "\u{fdd0}!",
    "!\n\u{fdd0}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{10ffff}",
    "\u{1f980}",
    "é",
    "e\u{301}",
    "\\",
    "a\\",
    "\\n",
    "a\n \nb",
    "a \nb",
    "a\n ",
    "a\n  ",
    " ",
    "\n ",
    "!",
    "\n!",
    "!\n",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::sample::select(LOOKALIKES).prop_map(str::to_owned),
        1 => proptest::collection::vec(proptest::sample::select(LOOKALIKES), 1..6)
            .prop_map(|parts| parts.concat()),
        1 => any::<String>(),
        1 => "[ -~]{0,200}",
        1 => "([ -~]{0,100}\n){1,4}",
        1 => "[0-9a-fe+.x_:-]{1,64}",
        1 => proptest::collection::vec(any::<char>(), 0..40)
            .prop_map(|chars| chars.into_iter().collect()),
        1 => proptest::collection::vec(
            proptest::sample::select(vec!['\n', ' ', '\t', 'a', '\u{2028}', '\u{85}', '#', ':', '-', '!']),
            0..12,
        )
        .prop_map(|chars| chars.into_iter().collect()),
    ]
}

/// Any text but the one that the writer leaves plain as a key: this reader refuses it there.
fn key() -> impl Strategy<Value = String> {
    text().prop_filter("a merge key", |text| text != "<<")
}

fn tree() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::Integer),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Json::Unsigned),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(Json::Number),
        text().prop_map(Json::Text),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            proptest::collection::btree_map(key(), inner, 0..6).prop_map(|members| {
                Json::Object(
                    Object::from_members(members.into_iter().collect()).unwrap_or_default(),
                )
            }),
        ]
    })
}

fn read(document: &str) -> Result<Json, yaml::YamlError> {
    yaml::parse(document.as_bytes(), &LIMITS)?.into_json()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_reads_back(tree in tree()) {
        let document = yaml_serde::to_string(&tree).unwrap();
        prop_assert_eq!(read(&document), Ok(tree), "{}", document);
    }

    #[test]
    fn the_last_line_break_does_not_matter_unless_it_is_text(tree in tree()) {
        let document = yaml_serde::to_string(&tree).unwrap();
        let theirs: Result<yaml_serde::Value, _> = yaml_serde::from_str(document.trim_end_matches('\n'));
        let ours = read(document.trim_end_matches('\n'));
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            prop_assert_eq!(yaml_serde::to_string(&theirs).unwrap(), yaml_serde::to_string(&ours).unwrap());
        }
    }
}

#[test]
fn every_lookalike_reads_back() {
    let mut wrong = Vec::new();
    for text in LOOKALIKES {
        let tree = Json::Array(vec![Json::Text((*text).to_owned())]);
        let document = yaml_serde::to_string(&tree).unwrap();
        let theirs = yaml_serde::from_str::<Vec<String>>(&document).map_err(|e| e.to_string());
        if read(&document).as_ref() != Ok(&tree) {
            wrong.push((text, document.clone(), read(&document), theirs));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

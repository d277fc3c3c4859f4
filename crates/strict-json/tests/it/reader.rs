//! Limits, positions and layouts of the reader.

use strict_json::{Json, JsonError, Layout, Limits, MAX_DEPTH, parse_object, parse_value};

const LIMITS: Limits = Limits {
    bytes: 4096,
    depth: 8,
};

fn compact(text: &str) -> Result<Json, JsonError> {
    parse_value(text.as_bytes(), &LIMITS, Layout::Compact)
}

#[test]
fn exactly_the_byte_limit_passes_and_one_more_fails() {
    let limits = Limits { bytes: 9, depth: 1 };
    let parse = |text: &str| parse_object(text.as_bytes(), &limits, Layout::Compact);
    assert!(parse(r#"{"a":"b"}"#).is_ok());
    assert_eq!(
        parse(r#"{"a":"bc"}"#),
        Err(JsonError::TooLong {
            limit: 9,
            actual: 10
        })
    );
}

#[test]
fn exactly_the_depth_limit_passes_and_one_more_fails() {
    assert!(compact(&nested(8)).is_ok());
    assert_eq!(
        compact(&nested(9)),
        Err(JsonError::TooDeep {
            limit: 8,
            offset: 8
        })
    );
    let scalars_only = Limits { bytes: 9, depth: 0 };
    assert!(parse_value(b"1", &scalars_only, Layout::Compact).is_ok());
    assert!(parse_value(b"{}", &scalars_only, Layout::Compact).is_err());
}

#[test]
fn no_limit_lets_the_reader_recurse_without_bound() {
    let limits = Limits {
        bytes: usize::MAX,
        depth: usize::MAX,
    };
    let parse = |text: &str| parse_value(text.as_bytes(), &limits, Layout::Compact);
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(matches!(
        parse(&nested(MAX_DEPTH + 1)),
        Err(JsonError::TooDeep { .. })
    ));
    assert!(matches!(
        parse(&"[".repeat(1 << 20)),
        Err(JsonError::TooDeep { .. })
    ));
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn white_space_passes_only_in_spaced_layout() {
    let spaced = " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n";
    let read = parse_value(spaced.as_bytes(), &LIMITS, Layout::Spaced);
    assert_eq!(read, compact(r#"{"a":[1,2],"b":{}}"#));
    assert_eq!(compact(spaced), Err(JsonError::NotCompact { offset: 0 }));
    for other in ["{}\u{b}", "{}\u{c}", "{}\u{a0}", "{}\u{feff}", "{}\u{85}"] {
        let read = parse_value(other.as_bytes(), &LIMITS, Layout::Spaced);
        assert_eq!(
            read,
            Err(JsonError::TrailingData { offset: 2 }),
            "{other:?}"
        );
    }
}

#[test]
fn refusals_know_their_byte() {
    let cases = [
        (r#"{"a": 1}"#, JsonError::NotCompact { offset: 5 }),
        (r#"{"a":1}x"#, JsonError::TrailingData { offset: 7 }),
        (
            r#"{"a":01}"#,
            JsonError::Syntax {
                offset: 6,
                expected: "`,` or `}`",
            },
        ),
        (
            r#"{"a":1"#,
            JsonError::Syntax {
                offset: 6,
                expected: "`,` or `}`",
            },
        ),
        (r#"{"a":"\ud800"}"#, JsonError::LoneSurrogate { offset: 6 }),
        (
            "{\"a\":\"b\u{1}\"}",
            JsonError::ControlCharacter { offset: 7 },
        ),
        (r#"{"a":1e999}"#, JsonError::NumberOutOfRange { offset: 5 }),
        (
            r#"{"a":1,"\u0061":2}"#,
            JsonError::DuplicateKey {
                key: "a".to_owned(),
            },
        ),
        ("\u{feff}{}", JsonError::ByteOrderMark),
        ("", JsonError::Empty),
    ];
    for (text, error) in cases {
        assert_eq!(compact(text), Err(error), "{text}");
    }
    let bad = parse_value(b"{\"a\":\"\xc3\"}", &LIMITS, Layout::Compact);
    assert_eq!(bad, Err(JsonError::InvalidUtf8 { offset: 6 }));
    assert_eq!(
        parse_object(b"[]", &LIMITS, Layout::Compact),
        Err(JsonError::NotAnObject { found: "an array" })
    );
}

#[test]
fn integers_stay_exact_and_everything_else_is_a_double() {
    let cases = [
        ("0", Json::Integer(0)),
        ("-9223372036854775808", Json::Integer(i64::MIN)),
        ("9223372036854775807", Json::Integer(i64::MAX)),
        (
            "9223372036854775808",
            Json::Unsigned(9_223_372_036_854_775_808),
        ),
        ("18446744073709551615", Json::Unsigned(u64::MAX)),
        (
            "18446744073709551616",
            Json::Number(18_446_744_073_709_551_616.0),
        ),
        (
            "-9223372036854775809",
            Json::Number(-9_223_372_036_854_775_809.0),
        ),
        ("1.0", Json::Number(1.0)),
        ("1e0", Json::Number(1.0)),
        ("1048576.0", Json::Number(1_048_576.0)),
        ("1e-400", Json::Number(0.0)),
    ];
    for (text, value) in cases {
        assert_eq!(compact(text), Ok(value), "{text}");
    }
    assert!(matches!(compact("-0"), Ok(Json::Number(zero)) if zero.is_sign_negative()));
}

#[test]
fn messages_show_foreign_keys_escaped_and_cut() {
    let error = compact("{\"a\u{202e}\\n\":1,\"a\u{202e}\\n\":2}").unwrap_err();
    assert_eq!(error.to_string(), r"duplicate key `a\u{202e}\n`");
    let long = "k".repeat(1000);
    let error = compact(&format!(r#"{{"{long}":1,"{long}":2}}"#)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("duplicate key `{}…`", "k".repeat(64))
    );
}

#[test]
fn an_object_with_very_many_keys_costs_no_quadratic_time() {
    let members: Vec<String> = (0..100_000)
        .map(|index| format!(r#""{index}":0"#))
        .collect();
    let text = format!("{{{}}}", members.join(","));
    let limits = Limits {
        bytes: text.len(),
        depth: 1,
    };
    let object = parse_object(text.as_bytes(), &limits, Layout::Compact).unwrap();
    assert_eq!(object.len(), 100_000);
    assert_eq!(object.iter().next(), Some(("0", &Json::Integer(0))));
}

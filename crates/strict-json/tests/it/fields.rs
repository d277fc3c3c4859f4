//! Taking fields: what is absent, null, of another type, or left over.

use strict_json::{FieldError, Fields, Json, Layout, Limits, parse_object};

fn fields(text: &str, path: &str) -> Fields {
    let limits = Limits {
        bytes: 4096,
        depth: 8,
    };
    parse_object(text.as_bytes(), &limits, Layout::Spaced)
        .unwrap()
        .fields(path)
}

#[test]
fn every_type_is_taken_by_name() {
    let mut all = fields(
        r#"{"s":"x","u":18446744073709551615,"i":-1,"b":true,"o":{"k":1},"a":["p","q"],"v":1.5,"n":null}"#,
        "",
    );
    assert!(all.contains("s") && !all.contains("x"));
    assert_eq!(all.text("s").unwrap(), "x");
    assert_eq!(all.u64("u").unwrap(), u64::MAX);
    assert_eq!(all.i64("i").unwrap(), -1);
    assert!(all.bool("b").unwrap());
    let mut object = all.object("o").unwrap();
    assert_eq!(object.path(), "o");
    assert_eq!(object.u64("k").unwrap(), 1);
    object.end().unwrap();
    let items = all.array("a").unwrap();
    assert_eq!(items[1].path(), "a[1]");
    assert_eq!(items[1].clone().text().unwrap(), "q");
    assert_eq!(all.value("v").unwrap(), Json::Number(1.5));
    assert!(all.null_or_array("n").unwrap().is_none());
    assert!(!all.contains("s"), "what was taken is gone");
    all.end().unwrap();
}

#[test]
fn optional_fields_may_be_absent_but_not_null() {
    let mut empty = fields("{}", "");
    assert_eq!(empty.opt_text("s").unwrap(), None);
    assert_eq!(empty.opt_u64("s").unwrap(), None);
    assert_eq!(empty.opt_i64("s").unwrap(), None);
    assert_eq!(empty.opt_bool("s").unwrap(), None);
    assert_eq!(empty.opt_value("s").unwrap(), None);
    assert_eq!(empty.opt_parse::<u8>("s").unwrap(), None);
    assert!(empty.opt_object("s").unwrap().is_none());
    assert!(empty.opt_array("s").unwrap().is_none());
    let null = || fields(r#"{"s":null}"#, "");
    let refused = FieldError::Null {
        path: "s".to_owned(),
    };
    assert_eq!(null().opt_text("s").unwrap_err(), refused);
    assert_eq!(null().opt_u64("s").unwrap_err(), refused);
    assert_eq!(null().opt_i64("s").unwrap_err(), refused);
    assert_eq!(null().opt_bool("s").unwrap_err(), refused);
    assert_eq!(null().opt_value("s").unwrap_err(), refused);
    assert_eq!(null().opt_parse::<u8>("s").unwrap_err(), refused);
    assert_eq!(null().opt_object("s").unwrap_err(), refused);
    assert_eq!(null().opt_array("s").unwrap_err(), refused);
    assert_eq!(null().text("s").unwrap_err(), refused);
}

#[test]
fn absent_null_and_wrong_type_are_three_refusals() {
    let mut worker = fields(r#"{"id":7,"pool":null}"#, "workers[2]");
    let messages = [
        worker.text("id").unwrap_err().to_string(),
        worker.text("pool").unwrap_err().to_string(),
        worker.text("token").unwrap_err().to_string(),
    ];
    assert_eq!(
        messages,
        [
            "field `workers[2].id` must be a string, not an integer",
            "field `workers[2].pool` must not be null; omit it or give it a value",
            "field `workers[2].token` is missing",
        ]
    );
}

#[test]
fn integers_are_plain_decimal_only() {
    for bad in [
        "1.0",
        "1e0",
        "-0",
        "1048576.0",
        "\"1\"",
        "true",
        "-1",
        "18446744073709551616",
        "[]",
    ] {
        assert!(
            fields(&format!(r#"{{"n":{bad}}}"#), "").u64("n").is_err(),
            "{bad}"
        );
    }
    for bad in [
        "1.0",
        "1e0",
        "-0",
        "\"1\"",
        "9223372036854775808",
        "-9223372036854775809",
    ] {
        assert!(
            fields(&format!(r#"{{"n":{bad}}}"#), "").i64("n").is_err(),
            "{bad}"
        );
    }
}

#[test]
fn parsing_keeps_the_path_and_the_reason() {
    let error = fields(r#"{"n":"x"}"#, "limits")
        .parse::<u8>("n")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "field `limits.n`: invalid digit found in string"
    );
    assert_eq!(error.path(), "limits.n");
    assert_eq!(fields(r#"{"n":"8"}"#, "").parse::<u8>("n").unwrap(), 8);
    assert_eq!(
        fields(r#"{"n":"8"}"#, "").opt_parse::<u8>("n").unwrap(),
        Some(8)
    );
}

#[test]
fn an_unread_field_is_refused_unless_the_protocol_says_otherwise() {
    let unread = || {
        let mut some = fields("{\"a\":1,\"b\\u0000\":2}", "x");
        some.u64("a").unwrap();
        some
    };
    assert_eq!(
        unread().end().unwrap_err().to_string(),
        r"unknown field `x.b\0`"
    );
    unread().end_ignoring_unknown();
}

#[test]
fn null_stands_for_an_array_only_where_asked_for() {
    assert!(fields("{}", "").null_or_array("tests").is_err());
    assert!(
        fields(r#"{"tests":"x"}"#, "")
            .null_or_array("tests")
            .is_err()
    );
    assert_eq!(
        fields(r#"{"tests":[]}"#, "")
            .null_or_array("tests")
            .unwrap(),
        Some(Vec::new())
    );
}

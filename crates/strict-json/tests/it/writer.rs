//! The two writers.

use serde::Serialize;
use strict_json::{Layout, Limits, parse_value, to_forge_frame, to_line};

#[derive(Serialize)]
struct Sample {
    z: &'static str,
    a: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<u8>,
}

#[test]
fn fields_keep_their_order_and_nothing_is_spaced() {
    let sample = Sample {
        z: "x",
        a: u64::MAX,
        gone: None,
    };
    assert_eq!(to_line(&sample), br#"{"z":"x","a":18446744073709551615}"#);
    assert_eq!(to_forge_frame(&sample), to_line(&sample));
}

#[test]
fn forge_frames_escape_markup_and_separators() {
    let text = "a<b>&c\u{2028}d\u{2029}<\u{8}\u{c}\n\r\t\"\\/\u{1f}\u{7f}é😀";
    let forge = String::from_utf8(to_forge_frame(text)).unwrap();
    let expected = concat!(
        r#""a\u003cb\u003e\u0026c\u2028d\u2029\u003c"#,
        r#"\b\f\n\r\t\"\\/\u001f"#,
        "\u{7f}é😀\""
    );
    assert_eq!(forge, expected);
    let line = String::from_utf8(to_line(text)).unwrap();
    assert!(line.contains("<b>&c\u{2028}d\u{2029}<"), "{line}");
}

#[test]
fn values_write_back_what_was_read() {
    let text = r#"{"b":[null,true,-1,18446744073709551615,1.5,"x"],"a":{}}"#;
    let limits = Limits {
        bytes: 4096,
        depth: 8,
    };
    let value = parse_value(text.as_bytes(), &limits, Layout::Compact).unwrap();
    assert_eq!(to_line(&value), text.as_bytes());
}

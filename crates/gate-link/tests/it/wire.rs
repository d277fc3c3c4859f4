//! The recorded messages come out byte for byte as they went in.

use gate_link::{LinkError, MAX_MESSAGE_BYTES, WorkerMessage};
use strict_json::JsonError;

use crate::samples::{frames, is_from_worker, rewrite};

#[test]
fn every_recorded_message_is_written_as_it_was_read() {
    let frames = frames();
    assert_eq!(frames.len(), 11 + 11);
    for frame in frames {
        let written = rewrite(frame.as_bytes(), is_from_worker(&frame)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), frame);
    }
}

#[test]
fn a_message_has_no_place_in_the_other_direction() {
    for frame in frames() {
        let from_worker = is_from_worker(&frame);
        let error = rewrite(frame.as_bytes(), !from_worker).unwrap_err();
        assert!(matches!(error, LinkError::UnknownType(_)), "{error}");
    }
}

#[test]
fn special_characters_are_escaped_and_read_back() {
    let text = "<a>&\u{2028}\u{2029}\"\\\u{7f}é";
    let frame = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","result":"<a>&{}{}\"\\{}é"}}"#,
        "a".repeat(32),
        "b".repeat(32),
        '\u{2028}',
        '\u{2029}',
        '\u{7f}',
    );
    let WorkerMessage::Result(result) = WorkerMessage::decode(frame.as_bytes()).unwrap() else {
        panic!("not a result");
    };
    assert_eq!(
        result.completion,
        forge_domain::Completion::Text {
            result: text.to_owned()
        }
    );
    let written = String::from_utf8(WorkerMessage::Result(result).encode().unwrap()).unwrap();
    assert!(
        written.contains(r"\u003ca\u003e\u0026\u2028\u2029"),
        "{written}"
    );
    assert!(written.ends_with("}\n"), "{written}");
}

#[test]
fn one_mebibyte_passes_and_one_byte_more_does_not() {
    let head = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","result":""#,
        "a".repeat(32),
        "b".repeat(32),
    );
    let tail = "\"}\n";
    let fill = MAX_MESSAGE_BYTES - head.len() - tail.len();
    let largest = format!("{head}{}{tail}", "x".repeat(fill));
    assert_eq!(largest.len(), MAX_MESSAGE_BYTES);
    assert_eq!(
        rewrite(largest.as_bytes(), true).unwrap(),
        largest.as_bytes()
    );

    let larger = format!("{head}{}{tail}", "x".repeat(fill + 1));
    let error = rewrite(larger.as_bytes(), true).unwrap_err();
    assert!(
        matches!(error, LinkError::Json(JsonError::TooLong { .. })),
        "{error}"
    );
}

#[test]
fn what_grows_too_large_by_escaping_is_not_sent() {
    let frame = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","result":"{}"}}"#,
        "a".repeat(32),
        "b".repeat(32),
        "<".repeat(MAX_MESSAGE_BYTES / 4),
    );
    let error = rewrite(frame.as_bytes(), true).unwrap_err();
    assert!(matches!(error, LinkError::TooLarge { .. }), "{error}");
}

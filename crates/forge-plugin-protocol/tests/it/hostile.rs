//! What a hostile or careless plugin may write, one test a kind.

use bounded::BoundError;
use forge_plugin_protocol::{
    Capability, Conclusion, FRAME_BYTES, FrameReader, HostEvent, Outcome, Violation,
};
use strict_json::{FieldError, JsonError};

use crate::support::{ALL, Driver, frame, initialized, progress};

/// Writes something where `initialized` is due.
fn first(bytes: impl AsRef<[u8]>) -> Violation {
    let mut driver = Driver::text();
    driver.write(bytes);
    assert!(driver.kills());
    driver.violation()
}

/// Writes something where a terminal frame is due, in a `text` operation with everything selected.
fn later(bytes: impl AsRef<[u8]>) -> Violation {
    let mut driver = Driver::text().executing(ALL);
    driver.write(bytes);
    driver.violation()
}

/// Writes a result in a `workspace_edit` operation with everything selected.
fn workspace_result(body: &str) -> Violation {
    let mut driver = Driver::workspace().executing(ALL);
    driver.write(frame("result", body));
    driver.violation()
}

fn json(error: JsonError) -> Violation {
    Violation::Json(error)
}

fn output(text: &str) -> Conclusion {
    Conclusion::Completed(Outcome::Text(text.parse().unwrap()))
}

#[test]
fn p01_h1_banner_before_initialized() {
    let mut driver = Driver::text();
    driver.write(
        "Loading the model \u{1b}[32mok\u{1b}[0m, this takes a moment; and more, and more\n",
    );
    driver.write(initialized(&[Capability::Text]));
    let error = driver.broken();
    assert_eq!(
        error.violation(),
        &json(JsonError::Syntax {
            offset: 0,
            expected: "a value"
        })
    );
    let shown = error.offending().unwrap();
    assert!(
        shown.starts_with(r"Loading the model \u{1b}[32mok"),
        "{shown}"
    );
    assert!(shown.ends_with('…'), "{shown}");
    assert!(error.to_string().contains(shown));
}

#[test]
fn p02_byte_order_mark() {
    let frame = format!("\u{feff}{}", initialized(&[Capability::Text]));
    assert_eq!(first(frame), json(JsonError::ByteOrderMark));
}

#[test]
fn p03_h7_crlf() {
    let frame = initialized(&[Capability::Text]).replace('\n', "\r\n");
    assert_eq!(first(frame), Violation::CarriageReturn);
}

#[test]
fn p04_h7_carriage_return_ends_no_line() {
    let one = initialized(&[Capability::Text]);
    let text = one.trim_end();
    let mut driver = Driver::text();
    driver.write(format!("{text}\r"));
    assert!(!driver.session.is_finished(), "the line is still open");
    driver.write(format!("{text}\n"));
    assert_eq!(
        driver.violation(),
        json(JsonError::NotCompact { offset: text.len() })
    );
}

#[test]
fn p05_blank_line() {
    assert_eq!(first("\n"), Violation::BlankLine);
    assert_eq!(later("\n"), Violation::BlankLine);
    assert_eq!(first("\r\n"), Violation::CarriageReturn);
    assert_eq!(first(" \n"), json(JsonError::NotCompact { offset: 0 }));
}

#[test]
fn p06_two_objects_on_a_line() {
    let one = initialized(&[Capability::Text]);
    let text = one.trim_end();
    let line = format!("{text}{text}\n");
    assert_eq!(
        first(line),
        json(JsonError::TrailingData { offset: text.len() })
    );
}

#[test]
fn p07_pretty_printed() {
    let pretty = initialized(&[Capability::Text]).replace(',', ",\n  ");
    assert!(matches!(
        first(pretty),
        Violation::Json(JsonError::Syntax { .. })
    ));
    let spaced = initialized(&[Capability::Text]).replace(':', ": ");
    assert_eq!(first(spaced), json(JsonError::NotCompact { offset: 11 }));
}

#[test]
fn p08_trailing_space_or_tab() {
    for space in [" ", "\t"] {
        let line = initialized(&[Capability::Text]).replace('\n', &format!("{space}\n"));
        assert_eq!(
            first(&line),
            json(JsonError::NotCompact {
                offset: line.len() - 2
            })
        );
    }
}

#[test]
fn p09_nul_byte() {
    let good = initialized(&[Capability::Text]);
    assert!(matches!(
        first(format!("\0{good}")),
        Violation::Json(JsonError::Syntax { .. })
    ));
    let trailing = good.replace('\n', "\0\n");
    assert!(matches!(
        first(trailing),
        Violation::Json(JsonError::TrailingData { .. })
    ));
    let inside = frame("result", ",\"output\":\"a\0b\"");
    assert!(matches!(
        later(inside),
        Violation::Json(JsonError::ControlCharacter { .. })
    ));
}

#[test]
fn p10_invalid_utf8_overlong_and_surrogate_escapes() {
    for bad in [
        &b"\xff"[..],
        b"\xc3",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
    ] {
        let mut line = frame("result", ",\"output\":\"").into_bytes();
        line.truncate(line.len() - 2);
        let offset = line.len();
        line.extend_from_slice(bad);
        line.extend_from_slice(b"\"}\n");
        assert_eq!(
            later(line),
            json(JsonError::InvalidUtf8 { offset }),
            "{}",
            bad.escape_ascii()
        );
    }
    for bad in [
        r"\ud800",
        r"\udc00",
        r"\udc00\ud800",
        r"\ud83dx",
        r"\ud83d\u0041",
    ] {
        let line = frame("result", &format!(r#","output":"{bad}""#));
        assert!(
            matches!(
                later(line),
                Violation::Json(JsonError::LoneSurrogate { .. })
            ),
            "{bad}"
        );
        let line = frame("result", &format!(r#","summary":"{bad}","changes":["c"]"#));
        let mut driver = Driver::workspace().executing(ALL);
        driver.write(line);
        assert!(matches!(
            driver.violation(),
            Violation::Json(JsonError::LoneSurrogate { .. })
        ));
    }
}

#[test]
fn p11_frame_of_one_mebibyte_passes_and_one_more_byte_fails() {
    for length in [FRAME_BYTES - 1, FRAME_BYTES] {
        let mut reader = FrameReader::new();
        reader.push(&vec![b'x'; length]);
        assert_eq!(reader.next_frame(), Ok(None));
        reader.push(b"\n");
        assert_eq!(
            reader.next_frame().unwrap().map(|frame| frame.len()),
            Some(length)
        );
    }
    let mut reader = FrameReader::new();
    reader.push(&vec![b'x'; FRAME_BYTES + 1]);
    let error = reader.next_frame().unwrap_err();
    assert_eq!(
        error.violation(),
        &Violation::FrameTooLong,
        "without waiting for the line feed"
    );
    assert_eq!(
        error.offending(),
        Some(format!("{}…", "x".repeat(64)).as_str())
    );
    // In a session the frame that fits is judged by its content, the longer one unseen.
    let empty = frame("result", r#","output":"""#).len() - 1;
    let sized = |bytes: usize| {
        frame(
            "result",
            &format!(r#","output":"{}""#, "x".repeat(bytes - empty)),
        )
    };
    assert!(matches!(
        later(sized(FRAME_BYTES)),
        Violation::Field { kind: "result", .. }
    ));
    assert_eq!(later(sized(FRAME_BYTES + 1)), Violation::FrameTooLong);
}

#[test]
fn p12_no_line_feed_at_the_end() {
    let mut driver = Driver::text();
    driver.write(initialized(&[Capability::Text]).trim_end());
    driver.close();
    let error = driver.broken();
    assert_eq!(error.violation(), &Violation::Unterminated);
    assert!(error.offending().unwrap().starts_with(r#"{"version":"v1""#));

    let mut driver = Driver::text().executing(ALL);
    driver.write(frame("result", r#","output":"x""#).trim_end());
    driver.close();
    assert_eq!(driver.violation(), Violation::Unterminated);
}

#[test]
fn p13_h3_one_byte_at_a_time_with_a_split_character() {
    let mut driver = Driver::text();
    let all = initialized(&[Capability::Text]) + &frame("result", ",\"output\":\"é€😀\"");
    for byte in all.as_bytes() {
        driver.write([*byte]);
    }
    assert_eq!(driver.end(), output("é€😀"));
}

#[test]
fn p14_ten_frames_in_one_write() {
    let mut driver = Driver::text().executing(ALL);
    let mut frames: String = (1..=9).map(progress).collect();
    frames += &frame("result", r#","output":"done""#);
    driver.write(frames);
    let progress = driver
        .events
        .iter()
        .filter(|event| matches!(event, HostEvent::Progress(_)));
    assert_eq!(progress.count(), 9);
    assert_eq!(driver.end(), output("done"));
}

#[test]
fn p15_frame_after_the_terminal_at_any_time() {
    for delay in [0, 1, 240, 260] {
        let mut driver = Driver::text().executing(ALL);
        driver.write(frame("result", r#","output":"x""#));
        driver.at(delay);
        driver.write(frame("result", r#","output":"x""#));
        assert!(driver.kills());
        let error = driver.broken();
        if delay < 250 {
            let expected = Violation::TrailingBytes("the terminal frame");
            assert_eq!(error.violation(), &expected, "{delay}");
            assert!(error.offending().unwrap().starts_with(r#"{"version""#));
        } else {
            assert!(
                matches!(error.violation(), Violation::CloseTimeout { .. }),
                "{delay}"
            );
        }
    }
}

#[test]
fn p16_result_before_execute() {
    let result = frame("result", r#","output":"x""#);
    let found = "result".to_owned();
    let expected = "`initialized`";
    assert_eq!(
        first(&result),
        Violation::UnexpectedType {
            expected,
            found: found.clone()
        }
    );
    // Both frames at once: the answer is there before the question could be sent.
    let mut driver = Driver::text();
    driver.write_unpumped(initialized(&[Capability::Text]) + &result);
    let expected = "nothing before `execute`";
    assert_eq!(
        driver.violation(),
        Violation::UnexpectedType { expected, found }
    );
}

#[test]
fn p17_second_result() {
    let result = frame("result", r#","output":"x""#);
    let expected = Violation::TrailingBytes("the terminal frame");
    assert_eq!(later(result.repeat(2)), expected);
    assert_eq!(later(result + "\n"), expected);
}

#[test]
fn p18_progress_after_the_result() {
    let frames = frame("result", r#","output":"x""#) + &progress(1);
    assert_eq!(
        later(frames),
        Violation::TrailingBytes("the terminal frame")
    );
}

#[test]
fn p19_progress_numbers_are_one_two_three_up_to_128() {
    assert_eq!(later(progress(0)), Violation::Sequence { expected: 1 });
    assert_eq!(later(progress(2)), Violation::Sequence { expected: 1 });
    assert_eq!(
        later(progress(1) + &progress(3)),
        Violation::Sequence { expected: 2 }
    );
    assert_eq!(
        later(progress(1) + &progress(1)),
        Violation::Sequence { expected: 2 }
    );
    let most: String = (1..=128).map(progress).collect();
    let mut driver = Driver::text().executing(ALL);
    driver.write(most.clone() + &frame("result", r#","output":"x""#));
    assert_eq!(driver.end(), output("x"));
    assert_eq!(
        later(most + &progress(129)),
        Violation::TooManyProgressFrames
    );
}

#[test]
fn p20_progress_not_negotiated() {
    let mut driver = Driver::text().executing(&[Capability::Text, Capability::Cancel]);
    driver.write(progress(1));
    let capability = Capability::Progress;
    assert_eq!(
        driver.violation(),
        Violation::NotNegotiated {
            what: "progress",
            capability
        }
    );
}

#[test]
fn p21_progress_text_is_counted_in_bytes() {
    let sized = |text: &str| {
        frame(
            "progress",
            &format!(r#","sequence":1,"stage":"started","text":"{text}""#),
        )
    };
    let exact = "😀".repeat(256);
    let mut driver = Driver::text().executing(ALL);
    driver.write(sized(&exact));
    let Some(HostEvent::Progress(progress)) = driver.events.last() else {
        panic!("no progress")
    };
    assert_eq!(progress.text.as_str(), exact);
    let reason = BoundError::Length {
        min: 0,
        max: 1024,
        actual: 1025,
    };
    let error = FieldError::invalid("text", reason.to_string());
    let expected = Violation::Field {
        kind: "progress",
        error,
    };
    assert_eq!(later(sized(&format!("{exact}x"))), expected);
}

#[test]
fn p22_duplicate_key_in_any_spelling() {
    for (key, body) in [
        ("type", r#","output":"x","type":"result""#),
        ("output", r#","output":"x","output":"x""#),
        (
            "id",
            r#","output":"x","\u0069d":"0123456789abcdef0123456789abcdef""#,
        ),
        ("version", r#","output":"x","\u0076ersion":"v1""#),
    ] {
        let expected = json(JsonError::DuplicateKey {
            key: key.to_owned(),
        });
        assert_eq!(later(frame("result", body)), expected, "{body}");
    }
    let nested = frame("result", r#","output":{"a":1,"\u0061":1}"#);
    assert_eq!(
        later(nested),
        json(JsonError::DuplicateKey {
            key: "a".to_owned()
        })
    );
}

#[test]
fn p23_unknown_keys_nulls_and_wrong_types() {
    for body in [
        r#","output":"x","unknown":true"#,
        r#","output":null"#,
        r#","output":1"#,
        r#","output":["x"]"#,
        r#","Output":"x""#,
        "",
        r#","output":"x","commit_subject":"s""#,
    ] {
        let violation = later(frame("result", body));
        assert!(
            matches!(violation, Violation::Field { kind: "result", .. }),
            "{body}: {violation}"
        );
    }
    for body in [
        r#","commit_subject":null"#,
        r#","commit_subject":1"#,
        r#","output":"x""#,
    ] {
        let violation = workspace_result(body);
        assert!(
            matches!(violation, Violation::Field { kind: "result", .. }),
            "{body}: {violation}"
        );
    }
    for number in [
        "\"1\"",
        "1e0",
        "1.0",
        "-0",
        "-1",
        "null",
        "true",
        "18446744073709551617",
        "1e400",
    ] {
        let violation = later(progress(number));
        let refused = matches!(
            violation,
            Violation::Field {
                kind: "progress",
                ..
            } | Violation::Json(JsonError::NumberOutOfRange { .. })
        );
        assert!(refused, "{number}: {violation}");
    }
    assert_eq!(
        later(progress(u64::MAX)),
        Violation::Sequence { expected: 1 }
    );
    let array = "[\"v1\",\"0123456789abcdef0123456789abcdef\",\"result\",\"x\"]\n";
    assert_eq!(
        later(array),
        json(JsonError::NotAnObject { found: "an array" })
    );
}

#[test]
fn p24_id_in_upper_case_or_of_another_session() {
    let good = frame("result", r#","output":"x""#);
    let other = good.replace("0123456789abcdef0", "1123456789abcdef0");
    assert_eq!(later(other), Violation::OtherId);
    for id in [
        "0123456789ABCDEF0123456789ABCDEF",
        "0123",
        "",
        "0123456789abcdef0123456789abcdeg",
    ] {
        let bad = good.replace("0123456789abcdef0123456789abcdef", id);
        let violation = later(bad);
        let Violation::Envelope(error) = violation else {
            panic!("{violation}")
        };
        assert_eq!(error.path(), "id");
    }
    let violation = later(good.replace(r#""id":"0123456789abcdef0123456789abcdef","#, ""));
    assert_eq!(
        violation,
        Violation::Envelope(FieldError::Missing {
            path: "id".to_owned()
        })
    );
}

#[test]
fn version_and_type_are_exact() {
    let good = frame("result", r#","output":"x""#);
    for version in ["v2", "V1", "1", "v1 ", ""] {
        let bad = good.replace("\"v1\"", &format!("\"{version}\""));
        assert_eq!(later(bad), Violation::Version, "{version}");
    }
    assert!(matches!(
        later(good.replace("\"v1\"", "1")),
        Violation::Envelope(_)
    ));
    assert!(matches!(
        later(good.replace("\"v1\"", "null")),
        Violation::Envelope(_)
    ));
    for kind in [
        "Result",
        "cancel",
        "execute",
        "initialized",
        "initialize",
        "done",
        "\u{202e}",
    ] {
        let violation = later(frame(kind, r#","output":"x""#));
        assert!(
            matches!(violation, Violation::UnexpectedType { .. }),
            "{kind}: {violation}"
        );
        assert!(!violation.to_string().contains('\u{202e}'));
    }
}

#[test]
fn nothing_is_read_after_a_violation() {
    let mut driver = Driver::text();
    driver.write("x\n");
    let events = driver.events.len();
    driver.write(initialized(&[Capability::Text]));
    driver.close();
    assert_eq!(driver.events.len(), events);
    assert_eq!(driver.sent.len(), 1, "only `initialize` went out");
}

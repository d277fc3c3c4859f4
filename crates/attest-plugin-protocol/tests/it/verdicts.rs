//! Verdicts: what they may say, and where their limits are.

use attest_plugin_protocol::{
    ANNOTATION_BYTES, ANNOTATION_DEPTH, Annotation, Decision, FINDING_MESSAGE_BYTES, FINDINGS,
    Finding, InvalidAnnotation, MESSAGE_BYTES, RESOURCE_BYTES, RULE_BYTES, Severity, Verdict,
};
use strict_json::{Json, Object};

use crate::support::{Driver, verdict};

/// Answers with a body such as `,"decision":"allow"`.
fn read(body: &str) -> Result<Verdict, String> {
    let mut driver = Driver::asked();
    driver.write(verdict(2, body));
    if driver.session.is_idle() {
        Ok(driver.verdict())
    } else {
        Err(driver.broken())
    }
}

fn annotated(annotation: &str) -> Result<String, String> {
    let verdict = read(&format!(r#","decision":"allow","annotation":{annotation}"#))?;
    let annotation = verdict.annotation.unwrap();
    Ok(String::from_utf8(strict_json::to_line(annotation.json())).unwrap())
}

fn finding(rule: &str, message: &str, resource: &str) -> String {
    format!(r#"{{"rule":"{rule}","severity":"low","message":"{message}","resource":"{resource}"}}"#)
}

fn found(finding: &str) -> Result<Verdict, String> {
    read(&format!(r#","decision":"allow","findings":[{finding}]"#))
}

#[test]
fn the_verdict_of_the_document_is_read_whole() {
    let mut driver = Driver::asked();
    driver.write(concat!(
        r#"{"v":1,"id":2,"kind":"verdict","decision":"deny","findings":[{"rule":"hosted","#,
        r#""severity":"high","message":"Must run hosted","resource":"step:build"},{"rule":"","#,
        r#""severity":"info","message":""}],"annotation":{"b":2,"a":{"d":4,"c":[]}}}"#,
        "\n"
    ));
    let verdict = driver.verdict();
    assert_eq!(verdict.decision, Decision::Deny);
    let resource = Some("step:build".to_owned());
    let one = Finding::new("hosted", Severity::High, "Must run hosted", resource);
    let two = Finding::new("", Severity::Info, "", None);
    assert_eq!(verdict.findings, [one.unwrap(), two.unwrap()]);
    assert_eq!(
        strict_json::to_line(verdict.annotation.unwrap().json()),
        br#"{"a":{"c":[],"d":4},"b":2}"#
    );
}

#[test]
fn findings_and_annotation_may_be_absent() {
    assert_eq!(read(r#","decision":"allow""#), Ok(Verdict::allow()));
    assert_eq!(
        read(r#","decision":"warn","findings":[]"#),
        Ok(Verdict::warn(Vec::new()))
    );
}

#[test]
fn the_worst_decision_is_the_greatest() {
    assert!(Decision::Allow < Decision::Warn && Decision::Warn < Decision::Deny);
    assert!(Severity::ALL.is_sorted() && Severity::Info < Severity::Critical);
}

#[test]
fn what_is_no_verdict_is_a_violation() {
    for body in [
        "",
        r#","decision":"maybe""#,
        r#","decision":"Allow""#,
        r#","decision":null"#,
        r#","decision":["allow"]"#,
        r#","decision":"allow","findings":null"#,
        r#","decision":"allow","findings":{}"#,
        r#","decision":"allow","findings":[null]"#,
        r#","decision":"allow","findings":["bad"]"#,
        r#","decision":"allow","findings":[{"rule":"r","severity":"fatal","message":"m"}]"#,
        r#","decision":"allow","findings":[{"rule":"r","severity":"low"}]"#,
        r#","decision":"allow","findings":[{"severity":"low","message":"m"}]"#,
        r#","decision":"allow","findings":[{"rule":"r","message":"m"}]"#,
        r#","decision":"allow","findings":[{"rule":1,"severity":"low","message":"m"}]"#,
        r#","decision":"allow","findings":[{"rule":"r","severity":"low","message":"m","resource":null}]"#,
        r#","decision":"allow","annotation":null"#,
        r#","decision":"allow","annotation":[]"#,
        r#","decision":"allow","annotation":"{}""#,
        r#","decision":"allow","decision":"deny""#,
        r#","decision":"allow","id":2"#,
        r#","decision":"allow","x":{"y":1,"y":1}"#,
        r#","decision":"allow","annotation":{"a":1,"a":1}"#,
        r#","decision":"allow","annotation":{"a":[{"b":1,"\u0062":2}]}"#,
    ] {
        let reason = read(body).unwrap_err();
        assert!(
            reason.starts_with("protocol violation: "),
            "{body}: {reason}"
        );
        assert!(reason.len() < 300, "{reason}");
    }
    for kind in [
        "hello_ok", "verdict2", "Verdict", "step.pre", "shutdown", "",
    ] {
        let mut driver = Driver::asked();
        let line = verdict(2, r#","decision":"allow""#).replace("verdict", kind);
        driver.write(line);
        let reason = driver.broken();
        assert!(
            reason.contains("expected verdict, got a message of kind"),
            "{reason}"
        );
    }
}

#[test]
fn unknown_fields_are_ignored_at_every_level() {
    let body = concat!(
        r#","decision":"allow","exit_code":0,"output_hash":"00","payload":{"step":{}},"#,
        r#""receipt":null,"findings":[{"rule":"r","severity":"low","message":"m","file":"/x"}]"#
    );
    let finding = Finding::new("r", Severity::Low, "m", None).unwrap();
    let mut expected = Verdict::allow();
    expected.findings = vec![finding];
    assert_eq!(read(body), Ok(expected));
}

#[test]
fn an_unknown_field_may_be_deeper_than_an_annotation() {
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(&format!(r#","decision":"allow","x":{}"#, deep(500))).is_ok());
    let reason = read(&format!(r#","decision":"allow","x":{}"#, deep(600))).unwrap_err();
    assert!(reason.contains("512"), "{reason}");
}

#[test]
fn as_many_findings_as_allowed_pass_and_one_more_fails() {
    let findings = |count| vec![finding("r", "m", "s"); count].join(",");
    assert_eq!(found(&findings(FINDINGS)).unwrap().findings.len(), FINDINGS);
    assert_eq!(
        found(&findings(FINDINGS + 1)).unwrap_err(),
        "protocol violation: a verdict has more than 256 findings"
    );
}

#[test]
fn texts_as_long_as_allowed_pass_and_one_byte_more_fails() {
    for (field, limit) in [
        ("rule", RULE_BYTES),
        ("message", FINDING_MESSAGE_BYTES),
        ("resource", RESOURCE_BYTES),
    ] {
        let of = |text: &str| match field {
            "rule" => finding(text, "", ""),
            "message" => finding("", text, ""),
            _ => finding("", "", text),
        };
        // Bytes count, not characters, and not the escapes of the wire.
        let wide = "é".repeat(limit / 2);
        assert!(found(&of(&wide)).is_ok(), "{field}");
        assert!(found(&of(&r"\u0041".repeat(limit))).is_ok(), "{field}");
        for long in [format!("{wide}x"), "x".repeat(limit + 1)] {
            let reason = found(&of(&long)).unwrap_err();
            let expected = format!("field `findings[0]`: `{field}` has at most {limit} bytes");
            assert!(reason.ends_with(&expected), "{reason}");
        }
    }
}

#[test]
fn an_annotation_is_counted_compact_and_sorted() {
    let text = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
    let room = ANNOTATION_BYTES - text(0).len();
    assert_eq!(annotated(&text(room)).unwrap().len(), ANNOTATION_BYTES);
    assert_eq!(
        annotated(&text(room + 1)).unwrap_err(),
        "protocol violation: an annotation has at most 65536 bytes when it is compact and its keys \
         are sorted"
    );
    // Spaces and long escapes of the wire do not count; what must be escaped does.
    let spaced = format!(
        r#"{{ "a" : {} "{}" }}"#,
        " ".repeat(ANNOTATION_BYTES),
        r"\u0041".repeat(room)
    );
    assert_eq!(annotated(&spaced).unwrap().len(), ANNOTATION_BYTES);
    assert!(annotated(&text(room / 2).replace('x', r#"\""#)).is_ok());
    assert!(annotated(&text(room / 2 + 1).replace('x', r#"\""#)).is_err());
}

#[test]
fn an_annotation_is_as_deep_as_allowed_and_no_deeper() {
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"a":{open}1{close}}}"#)
    };
    assert!(annotated(&deep(ANNOTATION_DEPTH)).is_ok());
    let reason = annotated(&deep(ANNOTATION_DEPTH + 1)).unwrap_err();
    assert!(reason.contains("at most 64 levels"), "{reason}");
    let objects = |levels: usize| {
        format!(
            "{}{{}}{}",
            "{\"a\":".repeat(levels - 1),
            "}".repeat(levels - 1)
        )
    };
    assert!(annotated(&objects(ANNOTATION_DEPTH)).is_ok());
    assert!(annotated(&objects(ANNOTATION_DEPTH + 1)).is_err());
    // An array at the last level needs a level of its own, also an empty one.
    assert!(annotated(&deep(ANNOTATION_DEPTH).replace('1', "[]")).is_err());
}

#[test]
fn numbers_of_an_annotation_are_whole_or_doubles_in_their_shortest_form() {
    let numbers = concat!(
        "{\"n\":[0,-1,9223372036854775807,-9223372036854775808,18446744073709551615,",
        "18446744073709551616,1.0,1.50,1e2,-0,0.1000000000000000055511151231257827]}"
    );
    assert_eq!(
        annotated(numbers).unwrap(),
        "{\"n\":[0,-1,9223372036854775807,-9223372036854775808,18446744073709551615,\
         1.8446744073709552e+19,1.0,1.5,100.0,-0.0,0.1]}"
    );
    for number in ["1e400", "-1e400", "NaN", "Infinity", "01", "+1", ".5", "1."] {
        assert!(
            annotated(&format!("{{\"n\":{number}}}")).is_err(),
            "{number}"
        );
    }
    let infinite = vec![(
        "n".to_owned(),
        Json::Array(vec![Json::Number(f64::INFINITY)]),
    )];
    assert_eq!(
        Annotation::new(Object::from_members(infinite).unwrap()),
        Err(InvalidAnnotation::Number)
    );
}

#[test]
fn keys_are_sorted_by_their_bytes() {
    assert_eq!(
        annotated(
            r#"{"b":{"z":null,"y":true},"a":[{"d":1,"c":2}],"B":"","é":1,"\uffff":2,"😀":3}"#
        ),
        Ok(
            "{\"B\":\"\",\"a\":[{\"c\":2,\"d\":1}],\"b\":{\"y\":true,\"z\":null},\"é\":1,\
             \"\u{ffff}\":2,\"😀\":3}"
                .to_owned()
        )
    );
    assert_eq!(annotated("{}"), Ok("{}".to_owned()));
}

#[test]
fn a_message_of_one_mebibyte_passes_and_one_byte_more_fails() {
    let of = |length: usize| {
        let line = verdict(2, r#","decision":"allow","x":"""#);
        let fill = "x".repeat(length - (line.len() - 1));
        verdict(2, &format!(r#","decision":"allow","x":"{fill}""#))
    };
    let mut driver = Driver::asked();
    driver.write(of(MESSAGE_BYTES));
    assert_eq!(driver.verdict(), Verdict::allow());

    let mut driver = Driver::asked();
    driver.write(of(MESSAGE_BYTES + 1));
    assert_eq!(
        driver.broken(),
        "protocol violation: a message is longer than 1048576 bytes"
    );
    // It fails as soon as it is too long, without its line feed.
    let mut driver = Driver::asked();
    driver.write(vec![b' '; MESSAGE_BYTES]);
    assert!(!driver.session.is_over());
    driver.write(b" ");
    driver.broken();
}

#[test]
fn lines_that_are_not_one_object_are_violations() {
    for line in [
        &b"\n"[..],
        b"\r\n",
        b" \t \n",
        b"evaluating rules...\n",
        b"null\n",
        b"[]\n",
        b"1\n",
        b"{}{}\n",
        b"{\"v\":1,\n",
        b"\xef\xbb\xbf{}\n",
        b"{\"a\":\"\xff\"}\n",
        b"{\"a\":\"\\ud800\"}\n",
        b"{\"a\":\"\t\"}\n",
        b"{\"a\":1,}\n",
        b"{'a':1}\n",
        b"\0\n",
    ] {
        let mut driver = Driver::asked();
        driver.write(line);
        let reason = driver.broken();
        let shown = line.escape_ascii();
        assert!(
            reason.starts_with("protocol violation: a line is not one JSON object"),
            "{shown}: {reason}"
        );
    }
}

#[test]
fn reasons_repeat_foreign_text_only_escaped_and_cut() {
    let hostile = "\u{202e}\u{1b}[31m".repeat(40);
    let json = hostile.replace('\u{1b}', r"\u001b");
    for line in [
        verdict(2, &format!(r#","decision":"{json}""#)),
        verdict(2, r#","decision":"allow""#).replace("verdict", &json),
        verdict(2, &format!(r#","decision":"allow","{json}":1,"{json}":1"#)),
        format!("{hostile}\n"),
    ] {
        let mut driver = Driver::asked();
        driver.write(line);
        for note in driver.notes() {
            assert!(!bounded::text::has_control_or_format(&note), "{note}");
            assert!(note.len() <= 512, "{note}");
        }
        let reason = driver.broken();
        assert!(!bounded::text::has_control_or_format(&reason), "{reason}");
        assert!(reason.len() <= 1_024, "{}", reason.len());
    }
}

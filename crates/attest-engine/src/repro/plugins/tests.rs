//! What is compared of two builds, and how it is told.

use super::*;
use crate::hooks::StopKind;

fn record(name: &str, decision: Decision, annotation: &str) -> PluginRecord {
    let reason = matches!(decision, Decision::Error | Decision::Skipped);
    PluginRecord {
        name: name.into(),
        version: "1".into(),
        protocol: 1,
        digest: format!("blake3:{}", "0".repeat(64)),
        decision,
        deterministic: true,
        reason: reason.then(|| "why".into()),
        annotation: (!annotation.is_empty()).then(|| json(annotation)),
    }
}

fn json(text: &str) -> Json {
    let limits = strict_json::Limits {
        bytes: 1 << 20,
        depth: 64,
    };
    strict_json::parse_value(text.as_bytes(), &limits, strict_json::Layout::Spaced).unwrap()
}

fn told(a: &PluginRecord, b: &PluginRecord) -> Vec<String> {
    let differs = differences(a, b, &Secrets::new([("TOKEN", b"hunter2".as_slice())]));
    differs.iter().map(ToString::to_string).collect()
}

fn annotations(a: &str, b: &str) -> Vec<String> {
    told(
        &record("p", Decision::Allow, a),
        &record("p", Decision::Allow, b),
    )
}

#[test]
fn g5_decisions_and_annotations_are_compared() {
    let allow = record("p", Decision::Allow, "");
    for (decision, words) in [
        (Decision::Deny, "decision allow vs deny"),
        (Decision::Warn, "decision allow vs warn"),
        (Decision::Error, "decision allow vs error"),
        (Decision::Skipped, "decision allow vs skipped"),
    ] {
        assert_eq!(told(&allow, &record("p", decision, "")), [words]);
    }
    assert_eq!(told(&allow, &allow), Vec::<String>::new());
    // Why it failed may name times and numbers of processes.
    let mut other = record("p", Decision::Error, "");
    other.reason = Some("another".into());
    assert_eq!(
        told(&record("p", Decision::Error, ""), &other),
        Vec::<String>::new()
    );
}

#[test]
fn g5_the_places_of_an_annotation_that_differ_are_named() {
    for (a, b, places) in [
        (r#"{"a":1}"#, r#"{"a":1}"#, vec![]),
        (r#"{"a":1}"#, r#"{"a":2}"#, vec!["/a"]),
        (r#"{"a":1}"#, r#"{"b":1}"#, vec!["/a", "/b"]),
        (
            r#"{"a":{"b":[1,2,{"c":true}]}}"#,
            r#"{"a":{"b":[1,3,{"c":false}]}}"#,
            vec!["/a/b/1", "/a/b/2/c"],
        ),
        (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, vec!["/a/1"]),
        (r#"{"a":[]}"#, r#"{"a":{}}"#, vec!["/a"]),
        (r#"{"~/":1}"#, r#"{"~/":2}"#, vec!["/~0~1"]),
        (r#"{"a":0}"#, r#"{"a":0.0}"#, vec!["/a"]),
        (r#"{"a":0.0}"#, r#"{"a":-0.0}"#, vec!["/a"]),
        (r#"{"hunter2":1}"#, r"{}", vec!["/[redacted TOKEN]"]),
    ] {
        let expected: Vec<_> = places
            .iter()
            .map(|place| format!("annotation differs at {place}"))
            .collect();
        assert_eq!(annotations(a, b), expected, "{a} {b}");
    }
    assert_eq!(
        annotations("", r#"{"a":1}"#),
        ["annotation in one build only"]
    );
}

#[test]
fn g5_what_is_told_of_an_annotation_is_bounded() {
    let list = |value: u8| {
        let items: Vec<_> = (0..50).map(|_| value.to_string()).collect();
        format!(r#"{{"list":[{}]}}"#, items.join(","))
    };
    let told = annotations(&list(0), &list(1));
    assert_eq!(told.len(), NAMED + 1);
    assert_eq!(
        told.get(NAMED).map(String::as_str),
        Some("annotation differs in more places")
    );
    let key = "é".repeat(500);
    let told = annotations(&format!(r#"{{"{key}":1}}"#), r"{}");
    assert_eq!(
        told,
        [format!("annotation differs at /{}…", "é".repeat(127))]
    );
}

/// Compares the records of two builds and returns the lines.
fn lines(
    first: &[PluginRecord],
    second: Option<&[PluginRecord]>,
    stopped: Option<&str>,
    both: &[PluginRecord],
) -> Vec<String> {
    let stopped = stopped.map(|plugin| Stop {
        plugin: plugin.into(),
        reason: "no".into(),
        kind: StopKind::Denied,
    });
    let judged = Judged {
        first,
        second,
        stopped: stopped.as_ref(),
        both,
    };
    let mut lines = Vec::new();
    for report in judged.compare(&Secrets::default()) {
        assert_eq!(report.compared, report.reason.is_none());
        lines.extend(report.lines());
    }
    lines
}

#[test]
fn g5_who_is_left_out_is_named_with_the_reason() {
    let allow = |name: &str| record(name, Decision::Allow, "");
    let chance = |decision| PluginRecord {
        deterministic: false,
        ..record("chance", decision, "")
    };
    let (a, b) = (
        [allow("a"), chance(Decision::Allow)],
        [allow("a"), chance(Decision::Warn)],
    );
    assert_eq!(
        lines(&a, Some(&b), None, &b),
        ["reproducibility: plugin chance excluded: declared non-deterministic"]
    );
    assert_eq!(
        lines(&a, None, None, &a),
        [
            "reproducibility: plugin a not compared: there was no second build",
            "reproducibility: plugin chance excluded: declared non-deterministic",
        ]
    );
    let skipped = [record("a", Decision::Skipped, "")];
    assert_eq!(
        lines(&skipped, Some(&skipped), None, &skipped),
        ["reproducibility: plugin a not compared: it was never asked"]
    );
    let failed = [record("a", Decision::Error, "")];
    assert_eq!(
        lines(&skipped, Some(&skipped), None, &failed),
        ["reproducibility: plugin a not compared: it failed before it was asked: why"]
    );
}

#[test]
fn g5_a_failure_in_either_build_is_a_difference() {
    let (allow, error) = (
        [record("a", Decision::Allow, "")],
        [record("a", Decision::Error, "")],
    );
    // Who failed in the first build was not asked about the second.
    let skipped = [record("a", Decision::Skipped, "")];
    assert_eq!(
        lines(&error, Some(&skipped), None, &error),
        ["reproducibility: plugin a differs: decision error vs skipped"]
    );
    assert_eq!(
        lines(&allow, Some(&error), None, &error),
        ["reproducibility: plugin a differs: decision allow vs error"]
    );
}

#[test]
fn g5_a_stopped_build_is_compared_for_the_one_who_stopped_it() {
    let builds = [
        [
            record("a", Decision::Allow, r#"{"n":1}"#),
            record("b", Decision::Allow, ""),
        ],
        [
            record("a", Decision::Allow, ""),
            record("b", Decision::Deny, ""),
        ],
    ];
    assert_eq!(
        lines(&builds[0], Some(&builds[1]), Some("b"), &builds[1]),
        [
            "reproducibility: plugin a not compared: the second build was stopped by plugin b",
            "reproducibility: plugin b differs: decision allow vs deny",
        ]
    );
}

//! Records: G4, decisions 38 and 39, and those of one build.

use attest_plugin_host::{Answer, OnFailure};
use attest_receipt::receipt::{Decision, PluginRecord};

use crate::support::{Bench, GOOD, ask, record};

/// Answers one question after another with these verdicts, then waits.
fn verdicts(all: &[&str]) -> String {
    let answers: Vec<String> = all.iter().map(|v| format!("get\nverdict {v}\n")).collect();
    format!("hello\n{}get\n", answers.concat())
}

fn annotation(record: &PluginRecord) -> Option<String> {
    let annotation = record.annotation.as_ref()?;
    String::from_utf8(strict_json::to_line(annotation)).ok()
}

#[tokio::test]
async fn g4_every_declared_plugin_has_a_record_sorted_by_name() {
    let mut bench = Bench::new();
    bench.add("z", GOOD);
    bench.add("m", "exit 1").on_failure = OnFailure::FailOpen;
    bench.add("a", &verdicts(&["warn"]));
    let skipped = bench.add("k", GOOD);
    skipped.hooks = vec![attest_plugin_protocol::Hook::ReceiptFinalize];
    let mut host = bench.host().await;
    assert_eq!(ask(&mut host).await, Answer::Go);
    host.shutdown().await;
    let shown: Vec<_> = host
        .records()
        .into_iter()
        .map(|r| (r.name, r.version, r.decision, r.reason.is_some()))
        .collect();
    let expected = [
        ("a", "1.2.3", Decision::Warn, false),
        ("k", "1.2.3", Decision::Skipped, true),
        ("m", "", Decision::Error, true),
        ("z", "1.2.3", Decision::Allow, false),
    ];
    let expected = expected.map(|(n, v, d, r)| (n.to_owned(), v.to_owned(), d, r));
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn g4_the_worst_decision_and_the_last_annotation_are_recorded() {
    let script = verdicts(&[
        r#"allow ',"annotation":{"b":1,"a":{"d":1,"c":2}}'"#,
        r#"warn ',"annotation":{"b":2,"a":{"d":3,"c":4}}'"#,
        "allow",
    ]);
    let bench = Bench::of(&script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    for _ in 0..3 {
        assert_eq!(ask(&mut host).await, Answer::Go);
    }
    let record = record(&host);
    let expected = r#"{"a":{"c":4,"d":3},"b":2}"#;
    assert_eq!(annotation(&record).unwrap(), expected);
    assert_eq!((record.decision, record.reason), (Decision::Warn, None));
}

#[tokio::test]
async fn g4_a_failure_replaces_the_decision_and_keeps_the_last_annotation() {
    let script = verdicts(&[r#"warn ',"annotation":{"n":1}'"#, "maybe"]);
    let bench = Bench::of(&script, OnFailure::FailOpen);
    let mut host = bench.host().await;
    for _ in 0..3 {
        assert_eq!(ask(&mut host).await, Answer::Go);
    }
    let record = record(&host);
    assert_eq!(record.decision, Decision::Error);
    assert_eq!(record.version, "1.2.3");
    assert_eq!(annotation(&record).unwrap(), r#"{"n":1}"#);
}

#[tokio::test]
async fn each_build_has_records_of_its_own() {
    let mut bench = Bench::new();
    let script = verdicts(&[r#"warn ',"annotation":{"n":1}'"#, "allow", "allow"]);
    bench.add("p", &format!("echo started >> starts\n{script}"));
    let fails = verdicts(&["allow", "maybe"]);
    bench.add("q", &fails).on_failure = OnFailure::FailOpen;
    let mut host = bench.host().await;
    ask(&mut host).await;
    ask(&mut host).await;
    let decisions = |records: &[PluginRecord]| {
        let decisions: Vec<_> = records.iter().map(|r| r.decision).collect();
        decisions
    };
    let first = host.end_build();
    assert_eq!(decisions(&first), [Decision::Warn, Decision::Error]);
    assert_eq!(annotation(&first[0]).unwrap(), r#"{"n":1}"#);
    ask(&mut host).await;
    let second = host.end_build();
    assert_eq!(decisions(&second), [Decision::Allow, Decision::Skipped]);
    assert_eq!(second[0].annotation, None);
    // Of both together: the worst, and the last annotation of all.
    let both = host.records();
    assert_eq!(decisions(&both), [Decision::Warn, Decision::Error]);
    assert_eq!(annotation(&both[0]).unwrap(), r#"{"n":1}"#);
    host.shutdown().await;
    assert_eq!(host.records(), both);
    // Decision 36: one process for all of it.
    let starts = std::fs::read_to_string(bench.path("starts")).unwrap();
    assert_eq!(starts, "started\n");
}

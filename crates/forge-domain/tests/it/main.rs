//! The samples of the wire, read and written back.

#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

use forge_domain::{AgentReport, CodingTask, EvidenceBatch, ResolvedPolicy, Stage};
use strict_json::{Fields, Layout, Limits, parse_object};

const SAMPLES: &str = include_str!("../data/wire.ndjson");

fn messages() -> impl Iterator<Item = (&'static str, Fields)> {
    let limits = Limits {
        bytes: 1 << 20,
        depth: 16,
    };
    SAMPLES.lines().map(move |line| {
        (
            line,
            parse_object(line.as_bytes(), &limits, Layout::Compact)
                .unwrap()
                .fields(""),
        )
    })
}

#[test]
fn policies_are_written_as_they_were_read() {
    let mut seen = 0;
    for (line, mut fields) in messages() {
        if let Some(policy) = fields.opt_object("policy").unwrap() {
            let policy = ResolvedPolicy::from_fields(policy).unwrap();
            assert!(
                line.contains(&format!("\"policy\":{}", policy.canonical())),
                "{line}"
            );
            assert_eq!(
                ResolvedPolicy::from_canonical(&policy.canonical()).unwrap(),
                policy
            );
            seen += 1;
        }
        fields.end_ignoring_unknown();
    }
    assert_eq!(seen, 3);
}

#[test]
fn tasks_are_written_as_they_were_read() {
    let mut seen = 0;
    for (line, mut fields) in messages() {
        if let Some(task) = fields.opt_object("task").unwrap() {
            let task = CodingTask::from_fields(task).unwrap();
            assert!(
                line.contains(&format!("\"task\":{}", task.canonical())),
                "{line}"
            );
            seen += 1;
        }
        fields.end_ignoring_unknown();
    }
    assert_eq!(seen, 2);
}

#[test]
fn evidence_is_written_as_it_was_read() {
    let mut seen = 0;
    for (line, mut fields) in messages() {
        if let Some(evidence) = fields.opt_array("evidence").unwrap() {
            let batch = EvidenceBatch::from_elements("evidence", evidence).unwrap();
            for record in batch.records() {
                assert!(line.contains(&record.canonical()), "{line}");
                seen += 1;
            }
        }
        fields.end_ignoring_unknown();
    }
    assert_eq!(seen, 1);
}

#[test]
fn reports_and_stages_of_the_samples_are_known() {
    let (mut reports, mut stages) = (0, 0);
    for (_, mut fields) in messages() {
        if fields.contains("candidate_sha") {
            let text = fields.text("result").unwrap();
            assert_eq!(AgentReport::parse(&text).unwrap().canonical(), text);
            reports += 1;
        }
        if let Some(mut activity) = fields.opt_object("activity").unwrap() {
            assert_eq!(activity.parse::<Stage>("stage").unwrap(), Stage::Analyzing);
            activity.end_ignoring_unknown();
            stages += 1;
        }
        fields.end_ignoring_unknown();
    }
    assert_eq!((reports, stages), (1, 1));
}

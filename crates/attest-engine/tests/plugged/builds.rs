//! Two builds: one process, and answers that are compared.

use attest_engine::repro::ReproOutcome;
use attest_receipt::receipt::Decision;

use crate::plugin::{Plugin, check, record};
use crate::support::World;

const STEPS: &str = "  a: {run: echo one > out, outputs: [out]}\n";
/// The same, with a duration.
const SLOW: &str = "  a: {run: echo one > out; sleep 1.1, outputs: [out]}\n";

/// Counts what it is asked.
const COUNTS: &str = r#"n=$((n + 1)); verdict allow ',"annotation":{"asked":{"n":'$n'}}'"#;
fn built(plugin: Plugin) -> (World, ReproOutcome) {
    built_of(STEPS, plugin)
}

fn built_of(steps: &str, plugin: Plugin) -> (World, ReproOutcome) {
    let world = World::new();
    world.declare(&[plugin]);
    let outcome = check(&world, &world.options(steps)).unwrap();
    let found = outcome.receipt.reproducibility.as_ref();
    assert_eq!(
        found.map(|found| found.verified),
        Some(outcome.report.verified)
    );
    (world, outcome)
}

#[test]
fn g5_a_function_of_the_payload_gives_the_same_for_both_builds() {
    // Ids go on, so the line gets longer only with their digits.
    let pure = r#"verdict allow ',"annotation":{"length":'$((${#line} - ${#id}))'}'"#;
    let (world, outcome) = built_of(SLOW, Plugin::new("policy", pure));
    assert_eq!((outcome.report.verified, outcome.exit_code()), (true, 0));
    assert_eq!(outcome.report.plugin_lines(), Vec::<String>::new());
    let build = [
        "pipeline.validate",
        "step.pre a",
        "step.post a",
        "receipt.finalize",
    ];
    let expected = [&["hello"][..], &build, &build, &["shutdown"]].concat();
    assert_eq!(world.kinds("policy"), expected);
    for kind in [
        "pipeline.validate",
        "step.pre",
        "step.post",
        "receipt.finalize",
    ] {
        let payloads = world.payloads("policy", kind);
        assert_eq!(payloads[0], payloads[1], "{kind}");
    }
    let told = &world.payloads("policy", "step.post")[0]["step"];
    assert_eq!(told["duration_secs"], 0);
    assert!(outcome.receipt.steps[0].duration_secs > 0);
    let shown = &world.payloads("policy", "receipt.finalize")[0]["receipt"];
    assert_eq!(shown["timestamp"], "2024-01-01T00:00:00Z");
    assert_eq!(shown["total_duration_secs"], 0);
    assert_eq!(shown["steps"][0]["duration_secs"], 0);
    let json = serde_json::to_value(&outcome.report).unwrap();
    assert_eq!(
        json["plugins"],
        serde_json::json!([{"name": "policy", "compared": true, "differs": []}])
    );
}

#[test]
fn g5_declared_determinism_that_is_none_fails_the_check_by_name() {
    let (_, outcome) = built(Plugin::new("policy", COUNTS));
    assert_eq!((outcome.report.verified, outcome.exit_code()), (false, 1));
    assert!(outcome.report.steps.iter().all(|step| step.same));
    assert_eq!(
        outcome.report.plugin_lines(),
        ["reproducibility: plugin policy annotation differs at /asked/n"]
    );
    // The record has the last annotation of all.
    let annotation = record(&outcome.receipt, "policy").annotation.as_ref();
    assert_eq!(
        strict_json::to_line(annotation.unwrap()),
        br#"{"asked":{"n":8}}"#
    );
}

#[test]
fn g5_what_is_declared_non_deterministic_is_recorded_and_left_out() {
    let (_, outcome) = built(Plugin {
        deterministic: false,
        ..Plugin::new("policy", COUNTS)
    });
    assert_eq!((outcome.report.verified, outcome.exit_code()), (true, 0));
    assert_eq!(
        outcome.report.plugin_lines(),
        ["reproducibility: plugin policy excluded: declared non-deterministic"]
    );
    let record = record(&outcome.receipt, "policy");
    assert!(!record.deterministic && record.annotation.is_some());
    let json = serde_json::to_value(&outcome.report).unwrap();
    assert_eq!(json["plugins"][0]["reason"], "declared non-deterministic");
}

#[test]
fn g5_a_failure_that_does_not_count_is_a_difference_of_the_build_it_came_in() {
    for (answer, line) in [
        (
            "exit 3",
            "reproducibility: plugin policy differs: decision error vs skipped",
        ),
        (
            "n=$((n + 1)); test $n -lt 6 || exit 3; verdict allow",
            "reproducibility: plugin policy differs: decision allow vs error",
        ),
    ] {
        let (_, outcome) = built(Plugin::new("policy", answer).fail_open());
        assert_eq!((outcome.report.verified, outcome.exit_code()), (false, 1));
        assert_eq!(outcome.report.plugin_lines(), [line]);
        let record = record(&outcome.receipt, "policy");
        assert_eq!(record.decision, Decision::Error);
    }
}

#[test]
fn g5_who_never_started_has_no_part_in_the_comparison() {
    let (_, outcome) = built(Plugin {
        command: Some("no-such-plugin-anywhere"),
        ..Plugin::new("policy", "").fail_open()
    });
    assert_eq!((outcome.report.verified, outcome.exit_code()), (true, 0));
    assert_eq!(
        outcome.report.plugin_lines(),
        [
            "reproducibility: plugin policy not compared: it failed before it was asked: command not found"
        ]
    );
    let record = record(&outcome.receipt, "policy");
    assert_eq!(record.decision, Decision::Error);
}

#[test]
fn a_no_in_either_build_is_in_the_one_receipt() {
    for (answer, runs, line) in [
        (
            "test $kind = step.post && verdict deny || verdict allow",
            1,
            "reproducibility: plugin policy not compared: there was no second build",
        ),
        (
            "n=$((n + 1)); test $n -ge 5 && verdict deny || verdict allow",
            1,
            "reproducibility: plugin policy differs: decision allow vs deny",
        ),
        (
            "n=$((n + 1)); test $n -ge 8 && verdict deny || verdict allow",
            2,
            "reproducibility: plugin policy differs: decision allow vs deny",
        ),
    ] {
        let world = World::new();
        world.declare(&[Plugin::new("policy", answer)]);
        let outcome = check(&world, &world.options(STEPS)).unwrap();
        assert_eq!(outcome.exit_code(), 1);
        assert_eq!(
            (outcome.report.verified, outcome.report.runs),
            (false, runs)
        );
        assert_eq!(outcome.report.plugin_lines(), [line]);
        assert_eq!(record(&outcome.receipt, "policy").decision, Decision::Deny);
        assert_eq!(outcome.receipt.reproducibility.is_some(), runs == 2);
        assert_eq!(world.receipts().len(), 1);
    }
}

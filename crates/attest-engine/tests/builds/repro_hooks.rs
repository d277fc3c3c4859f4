//! Where two builds are asked about, and what comes of the answers.

use attest_engine::hooks::StopKind;
use attest_engine::repro::{ReproError, ReproOutcome, check};
use attest_engine::run::RunOptions;
use attest_receipt::receipt::{Decision, PluginRecord};
use serde_json::json;

use crate::asked::{Asked, record};
use crate::repro::Place;
use crate::support::{FakeKey, Seen, World, runtime};

const STEPS: &str = "  a: {run: echo one > out, outputs: [out]}\n  b: {run: 'true', needs: [a]}\n";

fn checked(options: &RunOptions<'_>, hooks: &mut Asked) -> Result<ReproOutcome, ReproError> {
    runtime().block_on(check(options, &Seen::default(), hooks))
}

fn one_build() -> Vec<&'static str> {
    vec![
        "validate attest.yaml a,b",
        "pre a",
        "post a ",
        "pre b",
        "post b ",
        "finalize",
    ]
}

#[test]
fn g5_both_builds_are_told_the_same_and_all_ends_once_before_the_key() {
    let (world, place) = (World::new(), Place::new());
    let steps = STEPS.replace("> out", "> out; sleep 1.1");
    let mut options = place.options(&world, &steps);
    let mut hooks = Asked::default();
    let notes = std::rc::Rc::clone(&hooks.notes);
    let key = FakeKey::new(move || notes.borrow().last().cloned().unwrap());
    options.signing = Some(&key);
    let outcome = checked(&options, &mut hooks).unwrap();
    let expected = [one_build(), one_build(), vec!["finish"]].concat();
    assert_eq!(hooks.notes(), expected);
    assert_eq!(*key.loaded.borrow(), ["finish"]);
    // Durations and times are those of no build; so a function of them gives the same twice.
    let (a, b) = hooks.told.split_at(hooks.told.len() / 2);
    assert_eq!(a, b);
    let seen = &hooks.receipts[0];
    assert_eq!(seen, &hooks.receipts[1]);
    assert_eq!(seen.total_duration_secs, 0);
    assert!(seen.steps.iter().all(|step| step.duration_secs == 0));
    assert_eq!(seen.timestamp.to_string(), "2024-01-01T00:00:00Z");
    assert_eq!(seen.reproducibility, None);
    // The receipt says how long the steps of the first build took.
    assert!(outcome.receipt.steps[0].duration_secs >= 1);
    assert_eq!(outcome.exit_code(), 0);
}

/// What was recorded of each build, and what came of it.
fn compared(builds: [PluginRecord; 2]) -> ReproOutcome {
    let (world, place) = (World::new(), Place::new());
    let mut hooks = Asked {
        builds: builds.into_iter().map(|record| vec![record]).collect(),
        ..Asked::default()
    };
    let options = place.options(&world, "  a: {run: 'true'}\n");
    let outcome = checked(&options, &mut hooks).unwrap();
    let found = outcome.receipt.reproducibility.as_ref().unwrap();
    assert_eq!(found.verified, outcome.report.verified);
    assert_eq!(world.receipts().len(), 1);
    outcome
}

#[test]
fn g5_a_deterministic_plugin_that_differs_is_named_and_fails_the_check() {
    let allow = record("policy", Decision::Allow);
    let same = compared([allow.clone(), allow.clone()]);
    assert_eq!((same.report.verified, same.exit_code()), (true, 0));
    // `audit` has no record of either build here, as if there had been none.
    assert_eq!(
        same.report.plugin_lines(),
        ["reproducibility: plugin audit not compared: there was no second build"]
    );
    let warn = compared([allow.clone(), record("policy", Decision::Warn)]);
    assert_eq!((warn.report.verified, warn.exit_code()), (false, 1));
    assert_eq!(
        warn.report.plugin_lines()[1],
        "reproducibility: plugin policy differs: decision allow vs warn"
    );
    assert_eq!(warn.report.lines(), Vec::<String>::new());
    let noted = |number| PluginRecord {
        annotation: Some(strict_json::Json::Object(
            strict_json::Object::from_members(vec![(
                "n".into(),
                strict_json::Json::Integer(number),
            )])
            .unwrap(),
        )),
        ..allow.clone()
    };
    let annotation = compared([noted(1), noted(2)]);
    assert_eq!(
        (annotation.report.verified, annotation.exit_code()),
        (false, 1)
    );
    assert_eq!(
        annotation.report.plugin_lines()[1],
        "reproducibility: plugin policy annotation differs at /n"
    );
    let json = serde_json::to_value(&annotation.report).unwrap();
    assert_eq!(json["verified"], false);
    assert_eq!(
        json["plugins"][1],
        json!({"name": "policy", "compared": true, "differs": ["annotation differs at /n"]})
    );
}

#[test]
fn a_denial_in_the_first_build_leaves_nothing_to_compare() {
    for (at, steps) in [("post a", 1), ("pre b", 1), ("finalize", 2)] {
        for (kind, code) in [(StopKind::Denied, 1), (StopKind::Failed, 2)] {
            let (world, place) = (World::new(), Place::new());
            let mut hooks = Asked::stopping(at, kind);
            let outcome = checked(&place.options(&world, STEPS), &mut hooks).unwrap();
            assert_eq!(outcome.exit_code(), code, "{at}");
            assert_eq!(outcome.stopped.unwrap().plugin, "policy");
            assert_eq!(outcome.receipt.steps.len(), steps);
            assert_eq!(outcome.receipt.reproducibility, None);
            assert_eq!((outcome.report.verified, outcome.report.runs), (false, 1));
            assert_eq!(
                outcome.report.plugin_lines()[1],
                "reproducibility: plugin policy not compared: there was no second build"
            );
            assert_eq!(world.receipts().len(), 1);
            let notes = hooks.notes();
            let validated = notes.iter().filter(|note| note.starts_with("validate"));
            assert_eq!(validated.count(), 1);
            assert_eq!(notes.last().unwrap(), "finish");
        }
    }
    for at in ["validate", "pre a"] {
        let (world, place) = (World::new(), Place::new());
        let mut hooks = Asked::stopping(at, StopKind::Denied);
        let error = checked(&place.options(&world, STEPS), &mut hooks).unwrap_err();
        assert!(error.is_no());
        assert_eq!(world.receipts(), Vec::<String>::new());
        assert_eq!(place.left(), 0);
    }
}

#[test]
fn a_denial_in_the_second_build_is_in_the_receipt_of_the_first() {
    for (at, runs, same) in [
        ("validate", 1, false),
        ("pre a", 1, false),
        ("post a", 2, false),
        ("finalize", 2, true),
    ] {
        let (world, place) = (World::new(), Place::new());
        let mut hooks = Asked::stopping(at, StopKind::Denied);
        hooks.stop_at = Some((at, 1, StopKind::Denied));
        hooks.builds = [Decision::Allow, Decision::Deny]
            .map(|decision| vec![record("audit", Decision::Allow), record("policy", decision)])
            .into();
        let outcome = checked(&place.options(&world, STEPS), &mut hooks).unwrap();
        assert_eq!(outcome.exit_code(), 1, "{at}");
        assert_eq!(
            (outcome.report.verified, outcome.report.runs),
            (false, runs)
        );
        assert_eq!(outcome.report.steps.iter().all(|step| step.same), same);
        assert_eq!(
            outcome.report.plugin_lines(),
            [
                "reproducibility: plugin audit not compared: the second build was stopped by plugin policy",
                "reproducibility: plugin policy differs: decision allow vs deny",
            ]
        );
        let receipt = &outcome.receipt;
        assert_eq!(receipt.steps.len(), 2);
        let record = &receipt.plugins.as_ref().unwrap()[1];
        assert_eq!(record.decision, Decision::Deny);
        assert_eq!(receipt.reproducibility.is_some(), runs == 2);
        assert_eq!(world.receipts().len(), 1);
        assert_eq!(place.left(), 0);
    }
}

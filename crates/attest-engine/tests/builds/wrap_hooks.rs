//! Where a wrapped command is asked about, and what an answer does.

use attest_engine::hooks::StopKind;
use attest_engine::output::Record;
use attest_engine::wrap::{Failure, WrapOptions, WrapOutcome, run};
use attest_receipt::receipt::Decision;
use test_case::test_case;

use crate::asked::Asked;
use crate::support::{FakeKey, Seen, World, runtime};
use crate::wrap::options;

fn done(options: &WrapOptions<'_>, hooks: &mut Asked) -> WrapOutcome {
    runtime().block_on(run(options, &Seen::default(), hooks))
}

#[test]
fn a_wrapped_command_is_asked_about_as_a_pipeline_of_one_step() {
    let world = World::new();
    let mut hooks = Asked::default();
    let outcome = done(&options(&world, &["echo", "said"]), &mut hooks);
    assert_eq!(
        hooks.notes(),
        [
            "validate - build",
            "pre build",
            "post build said",
            "finalize",
            "finish"
        ]
    );
    let receipt = outcome.receipt.unwrap();
    assert_eq!(receipt.schema_version, Some(3));
    let records = receipt.plugins.as_ref().unwrap();
    let names: Vec<_> = records.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["audit", "policy"]);
    let seen = &hooks.receipts[0];
    assert_eq!((&seen.steps, &seen.plugins), (&receipt.steps, &None));
}

#[test_case("validate", 1, false; "validate")]
#[test_case("pre", 2, false; "pre")]
#[test_case("post", 3, true; "post")]
#[test_case("finalize", 4, true; "finalize")]
fn a_denial_before_the_command_keeps_it_from_running_and_later_it_is_recorded(
    at: &'static str,
    asked: usize,
    ran: bool,
) {
    for (kind, code, decision) in [
        (StopKind::Denied, 1, Decision::Deny),
        (StopKind::Failed, 2, Decision::Error),
    ] {
        let world = World::new();
        let key = FakeKey::new(String::new);
        let mut options = options(&world, &["touch", "ran"]);
        options.signing = Some(&key);
        let mut hooks = Asked::stopping(at, kind);
        let outcome = done(&options, &mut hooks);
        assert_eq!(outcome.exit_code(), code);
        assert!(matches!(outcome.failure, Some(Failure::Stopped(_))));
        assert_eq!(world.path("ran").exists(), ran);
        assert_eq!(world.receipts().len(), usize::from(ran));
        assert_eq!(key.loaded.borrow().len(), usize::from(ran));
        let notes = hooks.notes();
        let asked_last = if ran { "finish" } else { at };
        assert!(notes.last().unwrap().starts_with(asked_last), "{notes:?}");
        assert_eq!(notes.len(), asked + usize::from(ran));
        if let Some(receipt) = outcome.receipt {
            assert!(receipt.signature.is_some());
            let record = &receipt.plugins.unwrap()[1];
            assert_eq!(
                (record.name.as_str(), record.decision),
                ("policy", decision)
            );
        }
    }
}

#[test]
fn the_code_of_a_command_that_failed_comes_before_a_denial() {
    let world = World::new();
    let mut hooks = Asked::stopping("post", StopKind::Denied);
    let outcome = done(&options(&world, &["sh", "-c", "exit 7"]), &mut hooks);
    assert_eq!(outcome.exit_code(), 7);
    assert_eq!(world.receipts().len(), 1);
    let error = outcome.report().error.unwrap();
    assert_eq!(error, "plugin policy denied: not today");
}

#[test]
fn what_a_command_wrote_is_told_also_where_no_receipt_has_it() {
    let world = World::new();
    let mut options = options(&world, &["sh", "-c", "echo out; echo err >&2"]);
    options.record = Record::None;
    let mut hooks = Asked::default();
    let outcome = done(&options, &mut hooks);
    let output = hooks.outputs[0].as_ref().unwrap();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert!(!output.stdout_truncated && !output.stderr_truncated);
    let step = &outcome.receipt.as_ref().unwrap().steps[0];
    assert_eq!((step.stdout.as_str(), step.stderr.as_str()), ("", ""));
}

#[test]
fn g2_the_key_of_a_wrapped_command_is_loaded_when_nobody_is_asked_any_more() {
    let world = World::new();
    let mut hooks = Asked::default();
    let notes = std::rc::Rc::clone(&hooks.notes);
    let key = FakeKey::new(move || notes.borrow().last().cloned().unwrap());
    let mut options = options(&world, &["true"]);
    options.signing = Some(&key);
    done(&options, &mut hooks);
    assert_eq!(*key.loaded.borrow(), ["finish"]);
}

#[test]
fn a_secret_is_shown_to_nobody() {
    let world = World::new();
    let mut options = options(
        &world,
        &["sh", "-c", "mkdir out; touch out/$TOKEN; echo hunter2"],
    );
    options.secrets = vec!["TOKEN".into()];
    let variables = &mut options.environment.0;
    variables.push(("TOKEN".into(), "hunter2".into()));
    options.outputs = vec!["out".into()];
    let mut hooks = Asked::default();
    let outcome = done(&options, &mut hooks);
    assert!(outcome.receipt.is_none());
    assert_eq!(hooks.notes(), ["validate - build", "pre build"]);
    assert!(!hooks.told.contains("hunter2"), "{}", hooks.told);
}

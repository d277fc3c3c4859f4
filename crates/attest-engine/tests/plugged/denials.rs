//! A no at each place: what ran, what is written, who is asked afterwards.

use attest_receipt::receipt::Decision;
use test_case::test_case;

use crate::plugin::{Plugin, digest, record, run, wrap};
use crate::support::{FakeKey, World, jobs, told};

const STEPS: &str = "  a: {run: touch a}\n  b: {run: touch b, needs: [a]}\n";

const POLICY: Plugin = Plugin::new(
    "policy",
    r#"case $line in *"$(cat deny)"*) verdict deny ',"findings":[{"rule":"r1","severity":"high","message":"not today"}]' ;; *) verdict allow ',"annotation":{"n":1}' ;; esac"#,
);
/// Is asked after it, and its name stands before.
const AUDIT: Plugin = Plugin::new("audit", "");

#[test_case("pipeline.validate", &[], &[], 1; "validate")]
#[test_case("step.pre", &[], &[], 2; "pre of the first step")]
#[test_case("\"a\",\"input_hash\"", &["a"], &["a"], 3; "post of the first step")]
#[test_case("touch b\",\"needs\":[\"a\"],\"inputs\":[],\"outputs\":[],\"input_hash", &["a"], &["a"], 4; "pre of the second step")]
#[test_case("receipt.finalize", &["a", "b"], &["a", "b"], 6; "finalize")]
fn a_no_is_recorded_and_nobody_is_asked_afterwards(
    at: &str,
    ran: &[&str],
    recorded: &[&str],
    asked: usize,
) {
    let world = World::new();
    world.write("deny", at);
    world.declare(&[POLICY, AUDIT]);
    let key = FakeKey::new(String::new);
    let mut options = world.options(STEPS);
    options.signing = Some(&key);
    let outcome = run(&world, &options);
    for step in ["a", "b"] {
        assert_eq!(world.path(step).exists(), ran.contains(&step), "{step}");
    }
    // `hello`, the requests, `shutdown`; who comes later is not asked the last one.
    assert_eq!(world.kinds("policy").len(), asked + 2);
    assert_eq!(world.kinds("audit").len(), asked + 1);
    assert_eq!(world.receipts().len(), usize::from(!recorded.is_empty()));
    if recorded.is_empty() {
        let error = outcome.unwrap_err();
        assert!(error.is_no());
        let told = told(&error);
        assert!(
            told.starts_with("plugin policy denied: ") && told.contains("not today"),
            "{told}"
        );
        return;
    }
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 1);
    let receipt = &outcome.receipt;
    let steps: Vec<_> = receipt.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(steps, recorded);
    assert!(receipt.signature.is_some());
    let policy = record(receipt, "policy");
    assert_eq!(policy.decision, Decision::Deny);
    assert_eq!((policy.version.as_str(), policy.protocol), ("1.2.3", 1));
    assert_eq!(policy.digest, digest(&world.read("plugins/policy")));
    assert_eq!(policy.reason, None);
    let annotation = policy.annotation.as_ref().unwrap();
    assert_eq!(strict_json::to_line(annotation), br#"{"n":1}"#);
    assert_eq!(record(receipt, "audit").decision, Decision::Allow);
}

#[test]
fn a_no_to_a_wrapped_command_leaves_what_it_leaves_to_a_pipeline() {
    for (at, ran) in [
        ("pipeline.validate", false),
        ("step.pre", false),
        ("step.post", true),
        ("receipt.finalize", true),
    ] {
        let world = World::new();
        world.write("deny", at);
        world.declare(&[POLICY]);
        let outcome = wrap(&world, &world.wrapped(&["touch", "ran"]));
        assert_eq!(outcome.exit_code(), 1, "{at}");
        assert_eq!(world.path("ran").exists(), ran, "{at}");
        assert_eq!(outcome.receipt.is_some(), ran, "{at}");
        if let Some(receipt) = &outcome.receipt {
            assert_eq!(record(receipt, "policy").decision, Decision::Deny);
        }
    }
}

#[test]
fn what_runs_beside_a_no_is_recorded_and_not_asked_about() {
    let world = World::new();
    // `a` ends only once the no is on its way.
    world.declare(&[Plugin::new(
        "policy",
        r#"case $line in *step.post*) : > denied; verdict deny ;; *) verdict allow ;; esac"#,
    )]);
    let mut options = world.options(
        "  a: {run: 'while ! test -e denied; do sleep 0.01; done; echo slow'}\n  b: {run: 'true'}\n  c: {run: 'true', needs: [a]}\n",
    );
    options.jobs = jobs(2);
    let outcome = run(&world, &options).unwrap();
    assert_eq!(outcome.exit_code(), 1);
    let steps = &outcome.receipt.steps;
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].stdout, "slow\n");
    assert_eq!(outcome.skipped[0].step, "c");
    assert_eq!(
        world.kinds("policy"),
        [
            "hello",
            "pipeline.validate",
            "step.pre a",
            "step.pre b",
            "step.post b",
            "shutdown"
        ]
    );
}

#[test]
fn a_failure_that_counts_ends_the_run_with_two() {
    let world = World::new();
    let die = Plugin::new(
        "policy",
        r#"case $line in *step.pre*'"b"'*) exit 3 ;; *) verdict allow ;; esac"#,
    );
    for (plugin, code, steps) in [(die.clone(), 2, 1), (die.fail_open(), 0, 2)] {
        fs_err::remove_file(world.path("policy.log")).ok();
        world.declare(&[plugin]);
        let mut options = world.options(STEPS);
        options.pipeline.steps.get_mut("a").unwrap().cache = false;
        let outcome = run(&world, &options).unwrap();
        assert_eq!(outcome.exit_code(), code);
        assert_eq!(outcome.receipt.steps.len(), steps);
        let policy = record(&outcome.receipt, "policy");
        assert_eq!(policy.decision, Decision::Error);
        assert!(policy.reason.as_ref().unwrap().contains('3'));
        assert_eq!(world.kinds("policy").last().unwrap(), "step.pre b");
    }
}

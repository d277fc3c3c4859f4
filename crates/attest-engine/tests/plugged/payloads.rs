//! What plugins are sent.

use attest_engine::output::Record;
use attest_receipt::receipt::Decision;
use serde_json::json;

use crate::plugin::{Plugin, record, run, wrap};
use crate::support::{World, jobs, told};

#[test]
fn each_hook_comes_with_the_facts_of_the_table() {
    let world = World::new();
    world.write("in", "one");
    world.declare(&[Plugin::new("policy", "")]);
    let mut options = world.options_of(
        "version: '2'\nname: demo\nenv: {A: pipeline, B: pipeline}\nsteps:\n  z: {run: 'true', cache: false}\n  build: {run: cat in > out, inputs: [in], outputs: [out], needs: [z], env: {B: own}, timeout_secs: 60, working_dir: .}\n",
    );
    options.pipeline_path = Some("ci/attest.yaml".into());
    let first = run(&world, &options).unwrap().receipt;
    let result = &first.steps[1];
    let declared = &first.provenance.as_ref().unwrap().steps[0];
    assert_eq!(
        world.payloads("policy", "pipeline.validate")[0],
        json!({"pipeline": {
            "path": "ci/attest.yaml", "pipeline_hash": first.pipeline_hash, "name": "demo",
            "version": "2",
            "steps": [
                {"name": "z", "run": "true", "needs": [], "inputs": [], "outputs": [],
                 "env": {"A": "pipeline", "B": "pipeline"}, "cache": false},
                {"name": "build", "run": "cat in > out", "needs": ["z"], "inputs": ["in"],
                 "outputs": ["out"], "env": {"A": "pipeline", "B": "own"}, "working_dir": ".",
                 "cache": true, "timeout_secs": 60},
            ],
        }})
    );
    let before = |hit: bool| {
        json!({"step": {
            "name": "build", "run": "cat in > out", "needs": ["z"], "inputs": ["in"],
            "outputs": ["out"], "input_hash": result.input_hash,
            "command_hash": declared.command_hash, "cache_hit": hit,
        }})
    };
    let after = |hit: bool| {
        json!({"step": {
            "name": "build", "input_hash": result.input_hash, "output_hash": result.output_hash,
            "duration_secs": result.duration_secs, "exit_code": 0, "cache_hit": hit,
        }})
    };
    run(&world, &options).unwrap();
    let of_build = |kind: &str| {
        let mut payloads = world.payloads("policy", kind);
        payloads.retain(|payload| payload["step"]["name"] == "build");
        payloads
    };
    assert_eq!(of_build("step.pre"), [before(false), before(true)]);
    assert_eq!(of_build("step.post"), [after(false), after(true)]);
    let mut shown = serde_json::to_value(&first).unwrap();
    shown.as_object_mut().unwrap().remove("plugins");
    assert_eq!(
        world.payloads("policy", "receipt.finalize")[0]["receipt"],
        shown
    );
}

#[test]
fn a_wrapped_command_has_no_path_and_one_step() {
    let world = World::new();
    world.declare(&[Plugin::new("policy", "")]);
    let receipt = wrap(&world, &world.wrapped(&["echo", "a b"]))
        .receipt
        .unwrap();
    let pipeline = &world.payloads("policy", "pipeline.validate")[0]["pipeline"];
    assert_eq!(pipeline.get("path"), None);
    assert_eq!(pipeline["pipeline_hash"], receipt.pipeline_hash);
    assert_eq!(pipeline["steps"].as_array().unwrap().len(), 1);
    assert_eq!(
        world.kinds("policy"),
        [
            "hello",
            "pipeline.validate",
            "step.pre build",
            "step.post build",
            "receipt.finalize",
            "shutdown"
        ]
    );
    assert_eq!(
        world.payloads("policy", "step.pre")[0]["step"]["cache_hit"],
        false
    );
    assert_eq!(record(&receipt, "policy").decision, Decision::Allow);
}

#[test]
fn outputs_go_to_those_who_declared_that_they_want_them() {
    let world = World::new();
    let wants = Plugin {
        more: "wants_output = true\n",
        ..Plugin::new("wants", "")
    };
    world.declare(&[Plugin::new("plain", ""), wants]);
    let mut options = world.options("  a: {run: 'echo out; echo err >&2'}\n");
    options.record = Record::None;
    run(&world, &options).unwrap();
    let plain = &world.payloads("plain", "step.post")[0]["step"];
    assert_eq!(plain.get("stdout"), None);
    assert_eq!(plain.get("stdout_truncated"), None);
    let told = &world.payloads("wants", "step.post")[0]["step"];
    assert_eq!(
        (&told["stdout"], &told["stderr"]),
        (&json!("out\n"), &json!("err\n"))
    );
    assert_eq!(told["stdout_truncated"], false);
    options.record = Record::Tail;
    run(&world, &options).unwrap();
    for (plugin, said) in [("plain", ""), ("wants", "out\n")] {
        let shown = &world.payloads(plugin, "receipt.finalize")[1]["receipt"];
        assert_eq!(shown["steps"][0]["stdout"], said);
    }
}

#[test]
fn with_jobs_steps_are_asked_about_in_order_and_told_of_as_they_end() {
    let world = World::new();
    // `a` ends only once the others were told of.
    world.declare(&[Plugin::new(
        "policy",
        "test $kind != step.post || { n=$((n + 1)); test $n -lt 2 || : > go; }; verdict allow",
    )]);
    let mut options = world.options(
        "  a: {run: 'while ! test -e go; do sleep 0.01; done'}\n  b: {run: 'true'}\n  c: {run: 'true'}\n",
    );
    options.jobs = jobs(3);
    run(&world, &options).unwrap();
    let kinds = world.kinds("policy");
    let of = |hook: &str| -> Vec<String> {
        let kinds = kinds.iter().filter(|kind| kind.starts_with(hook));
        kinds.cloned().collect()
    };
    assert_eq!(of("step.pre"), ["step.pre a", "step.pre b", "step.pre c"]);
    let after = of("step.post");
    assert_eq!((after.len(), after[2].as_str()), (3, "step.post a"));
    let ids: Vec<_> = world
        .sent("policy")
        .iter()
        .map(|m| m["id"].as_u64())
        .collect();
    let expected: Vec<_> = (1..=ids.len() as u64).map(Some).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_request_that_is_too_large_is_not_sent() {
    let world = World::new();
    // No command may be that long, but all of them together.
    let long = "x".repeat(100_000);
    let step = |number| format!("  s{number}: {{run: ': {long}'}}\n");
    let steps: String = (0..12).map(step).collect();
    let plugin = Plugin::new("policy", "");
    world.declare(std::slice::from_ref(&plugin));
    let error = run(&world, &world.options(&steps)).unwrap_err();
    assert!(!error.is_no());
    let words = told(&error);
    assert!(
        words.starts_with("plugin policy failed: request too large"),
        "{words}"
    );
    assert_eq!(world.receipts(), Vec::<String>::new());
    fs_err::remove_file(world.path("policy.log")).unwrap();
    world.declare(&[plugin.fail_open()]);
    let outcome = run(&world, &world.options(&steps)).unwrap();
    assert_eq!(outcome.exit_code(), 0);
    let record = record(&outcome.receipt, "policy");
    assert_eq!(record.decision, Decision::Error);
    assert_eq!(record.reason.as_deref(), Some("request too large"));
    let kinds = world.kinds("policy");
    assert!(!kinds.contains(&"pipeline.validate".into()), "{kinds:?}");
}

#[test]
fn a_file_that_declares_nobody_is_as_none() {
    let world = World::new();
    world.declare(&[]);
    let receipt = run(&world, &world.options("  a: {run: 'true'}\n"))
        .unwrap()
        .receipt;
    assert_eq!((receipt.schema_version, receipt.plugins), (Some(2), None));
}

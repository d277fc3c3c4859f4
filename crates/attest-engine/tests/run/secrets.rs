//! Secrets in what cannot be replaced: names, paths, places.

use attest_engine::hooks::NoHooks;
use attest_engine::run::{Environment, Place, RunError, RunOptions};
use test_case::test_case;

use crate::support::{Seen, World, run, told};

const CANARY: &str = "canary-41d0ee";

fn options(world: &World, rest: &str) -> RunOptions<'static> {
    let yaml = format!("version: '1'\nsecrets: [TOKEN]\n{rest}").replace("CANARY", CANARY);
    let mut options = world.options_of(&yaml);
    let mut environment = options.environment.0.clone();
    environment.push(("TOKEN".into(), CANARY.into()));
    options.environment = Environment(environment);
    options
}

/// Requires that the run is refused because of the secret, and that nothing knows its value.
#[track_caller]
fn refused(world: &World, options: &RunOptions<'_>, place: &str) -> Seen {
    let (outcome, seen) = run(options, &mut NoHooks);
    let error = outcome.unwrap_err();
    assert!(matches!(error, RunError::Secret { .. }), "{error:?}");
    assert!(!error.is_no());
    let words = told(&error);
    assert!(
        words.contains("`TOKEN`") && words.contains(place),
        "{words}"
    );
    for text in [words, format!("{error:?}"), seen.all(), seen.out()] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert!(world.receipts().is_empty());
    assert!(world.files(".attest/causal_ledger/events").is_empty());
    seen
}

#[test_case("name: x-CANARY\nsteps: {a: {run: touch ran}}\n", "receipt.provenance.pipeline_name (`x-[redacted TOKEN]`)"; "pipeline")]
#[test_case("steps: {CANARY: {run: touch ran}}\n", "receipt.provenance.steps[0].name"; "step")]
#[test_case("steps: {a: {run: touch ran, inputs: [in/CANARY]}}\n", "receipt.provenance.steps[0].inputs[0]"; "input")]
#[test_case("steps: {a: {run: touch ran, outputs: [b, o/CANARY-x]}}\n", "receipt.provenance.steps[0].outputs[1] (`o/[redacted TOKEN]-x`)"; "output")]
fn a_declared_name_that_holds_a_secret_is_refused_before_anything_runs(yaml: &str, place: &str) {
    let world = World::new();
    refused(&world, &options(&world, yaml), place);
    assert!(!world.path("ran").exists());
}

#[test]
fn a_receipt_at_a_path_with_a_secret_is_refused_before_anything_runs() {
    let world = World::new();
    let mut options = options(&world, "steps: {a: {run: touch ran}}\n");
    options.place = Place::File(world.path(&format!("{CANARY}.yaml")));
    refused(&world, &options, "the path of the receipt");
    assert!(!world.path("ran").exists());
    assert!(!world.path(&format!("{CANARY}.yaml")).exists());
}

#[test]
fn a_made_file_whose_name_is_a_secret_leaves_no_receipt() {
    let world = World::new();
    let yaml = "steps: {a: {run: 'mkdir o; touch o/b o/$TOKEN', outputs: [o]}}\n";
    let mut options = options(&world, yaml);
    options.pipeline.steps.get_mut("a").unwrap().cache = false;
    refused(
        &world,
        &options,
        "receipt.provenance.artifacts[1].path (`o/[redacted TOKEN]`)",
    );
    options.place = Place::Memory;
    refused(&world, &options, "artifacts[1].path");
}

#[test]
fn a_secret_in_a_command_is_in_no_file_of_the_state() {
    let world = World::new();
    let yaml = "steps: {a: {run: 'echo CANARY; echo CANARY > out', outputs: [out]}}\n";
    let (outcome, seen) = run(&options(&world, yaml), &mut NoHooks);
    assert_eq!(outcome.unwrap().exit_code(), 0);
    assert_eq!(seen.out(), "[redacted TOKEN]\n");
    let mut seen = 0;
    for folder in ["receipts", "cache", "causal_ledger/events"] {
        for file in world.files(&format!(".attest/{folder}")) {
            let text = world.read(&format!(".attest/{folder}/{file}"));
            assert!(!text.contains(CANARY), "{file}: {text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_killed_step_leaves_no_part_of_a_secret_worth_having() {
    let world = World::new();
    let yaml = "steps: {a: {run: 'printf %s \"${TOKEN%?}\"; printf %s \"${TOKEN%?}\" >&2; sleep 60', timeout_secs: 1}}\n";
    let (outcome, seen) = run(&options(&world, yaml), &mut NoHooks);
    let receipt = outcome.unwrap().receipt;
    assert_eq!(receipt.steps[0].exit_code, 124);
    assert_eq!(receipt.steps[0].stdout, "[redacted TOKEN]");
    assert_eq!(
        receipt.steps[0].stderr,
        "[redacted TOKEN]\ncommand timed out after 1s and was killed\n"
    );
    assert_eq!(seen.out(), "[redacted TOKEN]");
}

#[test]
fn warnings_say_no_secret() {
    let world = World::new();
    let mut options = options(&world, "steps: {a: {run: 'true'}}\n");
    options.state = attest_engine::layout::State::new(world.path(""), world.path("state"));
    fs_err::create_dir_all(world.path("state/cache")).unwrap();
    // The same step under another key: its entry is passed over with a warning.
    run(&options, &mut NoHooks).0.unwrap();
    let entry = world.files("state/cache")[0].clone();
    world.write(
        &format!("state/cache/{entry}"),
        &format!("{CANARY}: [{CANARY}\n"),
    );
    let (outcome, seen) = run(&options, &mut NoHooks);
    outcome.unwrap();
    assert!(seen.all().contains("is passed over"), "{}", seen.all());
    assert!(!seen.all().contains(CANARY), "{}", seen.all());
}

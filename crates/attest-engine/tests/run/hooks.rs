//! The places where a run asks, their order, and what an answer does.

use std::rc::Rc;

use attest_engine::hooks::StopKind;
use attest_engine::output::Record;
use attest_engine::run::Place;
use attest_receipt::receipt::{Decision, Receipt};

use crate::asked::{Asked, Meanwhile};
use crate::support::{FakeKey, World, exists, jobs, run, told};

const STEPS: &str = "  a: {run: echo one}\n  b: {run: echo two, needs: [a]}\n";

#[test]
fn each_place_is_asked_once_in_its_order_also_about_cached_results() {
    let world = World::new();
    for hit in ["", " hit"] {
        let mut hooks = Asked::default();
        let (outcome, _) = run(&world.options(STEPS), &mut hooks);
        let receipt = outcome.unwrap().receipt;
        assert_eq!(
            hooks.notes(),
            [
                "validate attest.yaml a,b".to_owned(),
                format!("pre a{hit}"),
                format!("post a{hit} one"),
                format!("pre b{hit}"),
                format!("post b{hit} two"),
                "finalize".into(),
                "finish".into(),
            ]
        );
        assert_eq!(receipt.schema_version, Some(3));
        let names: Vec<_> = receipt.plugins.iter().flatten().map(|r| &r.name).collect();
        assert_eq!(names, ["audit", "policy"]);
        let seen = &hooks.receipts[0];
        assert_eq!(seen.plugins, None);
        assert_eq!(seen.steps, receipt.steps);
    }
}

#[test]
fn a_denial_before_any_step_leaves_nothing() {
    let world = World::new();
    for (at, asked) in [("validate", 1), ("pre a", 2)] {
        for (kind, no) in [(StopKind::Denied, true), (StopKind::Failed, false)] {
            let mut hooks = Asked::stopping(at, kind);
            let (outcome, seen) = run(&world.options(STEPS), &mut hooks);
            let error = outcome.unwrap_err();
            assert_eq!(error.is_no(), no);
            let how = if no { "denied" } else { "failed" };
            assert_eq!(
                told(&error),
                format!(
                    "plugin policy {how}: not today; no step was recorded, so there is no receipt"
                )
            );
            assert_eq!(hooks.notes().len(), asked);
            assert!(!seen.all().contains("started"));
        }
    }
    assert_eq!(world.receipts(), Vec::<String>::new());
    assert!(!exists(&world.path(".attest/causal_ledger/events")));
}

#[test]
fn a_denial_after_a_step_is_in_a_signed_receipt_and_nothing_more_is_asked() {
    let world = World::new();
    for (at, asked, steps) in [
        ("post a", 3, vec!["a"]),
        ("pre b", 4, vec!["a"]),
        ("post b", 5, vec!["a", "b"]),
        ("finalize", 6, vec!["a", "b"]),
    ] {
        for (kind, code) in [(StopKind::Denied, 1), (StopKind::Failed, 2)] {
            let mut hooks = Asked::stopping(at, kind);
            let key = FakeKey::new(String::new);
            let mut options = world.options(STEPS);
            options.signing = Some(&key);
            let outcome = run(&options, &mut hooks).0.unwrap();
            assert_eq!(outcome.exit_code(), code, "{at}");
            let notes = hooks.notes();
            assert_eq!(notes.len(), asked + 1, "{at}");
            assert!(notes[asked - 1].starts_with(at), "{at}");
            assert_eq!(notes[asked], "finish", "{at}");
            let names: Vec<_> = outcome
                .receipt
                .steps
                .iter()
                .map(|s| s.name.as_str())
                .collect();
            assert_eq!(names, steps, "{at}");
            assert!(outcome.receipt.signature.is_some());
            assert_eq!(outcome.skipped.len(), 2 - steps.len(), "{at}");
            let denied = outcome.receipt.plugins.unwrap().pop().unwrap();
            let decision = match kind {
                StopKind::Denied => Decision::Deny,
                StopKind::Failed => Decision::Error,
            };
            assert_eq!(
                (denied.name.as_str(), denied.decision),
                ("policy", decision)
            );
        }
    }
}

/// Makes the file `go` once all of this was noted.
fn after(world: &World, notes: &'static [&'static str]) -> Meanwhile {
    let path = world.path("go");
    let mut left = notes.to_vec();
    Box::new(move |note| {
        left.retain(|start| !note.starts_with(start));
        if left.is_empty() {
            fs_err::write(&path, "").unwrap();
        }
    })
}

#[test]
fn what_runs_when_somebody_denies_ends_and_is_recorded_without_being_asked_about() {
    let world = World::new();
    let mut options = world.options(
        "  a: {run: 'while ! test -e go; do sleep 0.01; done; echo slow'}\n  b: {run: 'true'}\n  c: {run: 'true'}\n",
    );
    options.jobs = jobs(2);
    let mut hooks = Asked::stopping("post b", StopKind::Denied);
    hooks.meanwhile = Some(after(&world, &["post b"]));
    let outcome = run(&options, &mut hooks).0.unwrap();
    assert_eq!(
        hooks.notes(),
        [
            "validate attest.yaml a,b,c",
            "pre a",
            "pre b",
            "post b ",
            "finish"
        ]
    );
    let names: Vec<_> = outcome
        .receipt
        .steps
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(outcome.receipt.steps[0].stdout, "slow\n");
    assert_eq!(outcome.skipped[0].step, "c");
    assert_eq!(
        outcome.skipped[0].why,
        "the run was stopped by plugin policy"
    );
}

#[test]
fn steps_are_asked_about_in_topological_order_whatever_could_start() {
    let world = World::new();
    // `c` could start at once, and yet `b` is asked about before it.
    let mut options = world
        .options("  a: {run: sleep 0.1}\n  b: {run: 'true', needs: [a]}\n  c: {run: 'true'}\n");
    options.jobs = jobs(3);
    let mut hooks = Asked::default();
    run(&options, &mut hooks).0.unwrap();
    let before: Vec<_> = hooks.notes();
    let before: Vec<_> = before.iter().filter(|n| n.starts_with("pre")).collect();
    assert_eq!(before, ["pre a", "pre b", "pre c"]);
}

#[test]
fn the_key_is_loaded_after_the_last_step_and_the_last_answer() {
    let world = World::new();
    let mut hooks = Asked::default();
    let notes = Rc::clone(&hooks.notes);
    let events = world.path(".attest/causal_ledger/events");
    let key = FakeKey::new(move || {
        let last = notes.borrow().last().cloned().unwrap_or_default();
        format!("{last} {}", exists(&events))
    });
    let mut options = world.options(STEPS);
    options.signing = Some(&key);
    let receipt = run(&options, &mut hooks).0.unwrap().receipt;
    // No event was written yet either, since events are signed too.
    assert_eq!(*key.loaded.borrow(), ["finish false"]);
    assert_eq!(receipt.signer_public_key, Some("ab".repeat(32)));
}

#[test]
fn a_denied_result_of_the_cache_is_not_taken() {
    let world = World::new();
    run(&world.options(STEPS), &mut Asked::default()).0.unwrap();
    let mut hooks = Asked::stopping("pre b hit", StopKind::Denied);
    let outcome = run(&world.options(STEPS), &mut hooks).0.unwrap();
    assert_eq!(names(&outcome.receipt), ["a"]);
    assert_eq!(outcome.skipped[0].step, "b");
}

#[test]
fn steps_that_are_skipped_are_not_asked_about() {
    let world = World::new();
    for count in [1, 3] {
        let mut options = world.options(
            "  a: {run: exit 3}\n  b: {run: 'true', needs: [a]}\n  c: {run: 'true', needs: [b]}\n",
        );
        options.jobs = jobs(count);
        let mut hooks = Asked::default();
        let outcome = run(&options, &mut hooks).0.unwrap();
        assert_eq!(outcome.skipped.len(), 2);
        assert_eq!(
            hooks.notes(),
            [
                "validate attest.yaml a,b,c",
                "pre a",
                "post a ",
                "finalize",
                "finish"
            ]
        );
    }
}

#[test]
fn steps_are_told_of_as_they_end() {
    let world = World::new();
    let mut options = world.options(
        "  a: {run: 'while ! test -e go; do sleep 0.01; done'}\n  b: {run: 'true'}\n  c: {run: 'true'}\n",
    );
    options.jobs = jobs(3);
    let mut hooks = Asked {
        meanwhile: Some(after(&world, &["post b", "post c"])),
        ..Asked::default()
    };
    let outcome = run(&options, &mut hooks).0.unwrap();
    let notes = hooks.notes();
    let after: Vec<_> = notes.iter().filter(|n| n.starts_with("post")).collect();
    assert_eq!(after.len(), 3);
    assert_eq!(after[2], "post a ");
    // The receipt has its own order.
    assert_eq!(names(&outcome.receipt), ["a", "b", "c"]);
}

fn names(receipt: &Receipt) -> Vec<&str> {
    let steps = receipt.steps.iter();
    steps.map(|step| step.name.as_str()).collect()
}

const BUILD: &str = "  build: {run: cat in > out; echo built, inputs: [in], outputs: [out]}\n";

/// Writes whatever a run leaves on the disk anew, and more.
fn tamper(world: &World) -> impl FnMut(&str) + 'static {
    let root = world.path("");
    move |note| {
        let folders = ["cache", "receipts", "causal_ledger/events"];
        // Before a step is looked for in the cache, that would only keep it from being found.
        let from = usize::from(note.starts_with("validate"));
        for folder in folders.into_iter().skip(from) {
            let folder = root.join(".attest").join(folder);
            fs_err::create_dir_all(&folder).unwrap();
            for entry in fs_err::read_dir(&folder).unwrap() {
                fs_err::write(entry.unwrap().path(), "forged").unwrap();
            }
            fs_err::write(folder.join("forged.yaml"), "forged").unwrap();
        }
        if from == 0 && root.join("out").exists() {
            fs_err::write(root.join("out"), "forged").unwrap();
        }
    }
}

#[test]
fn g3_who_writes_into_state_and_outputs_while_asked_changes_no_fact() {
    let (honest, world) = (World::new(), World::new());
    for world in [&honest, &world] {
        world.write("in", "one");
    }
    for hit in [false, true] {
        let key = FakeKey::new(String::new);
        let build = |world: &World, mut hooks: Asked| {
            let mut options = world.options(BUILD);
            options.signing = Some(&key);
            if hit {
                options.now = || "2026-11-30T13:00:00Z".parse().unwrap();
                // There is a result to be taken, which changes once it was found.
                let made = run(&world.options(BUILD), &mut Asked::default());
                made.0.unwrap();
            }
            let outcome = run(&options, &mut hooks).0.unwrap();
            assert_eq!(outcome.receipt.steps[0].cache_hit, hit);
            outcome
        };
        let expected = build(&honest, Asked::default()).receipt;
        let outcome = build(
            &world,
            Asked {
                meanwhile: Some(Box::new(tamper(&world))),
                ..Asked::default()
            },
        );
        assert_eq!(world.read("out"), "forged");
        let receipt = &outcome.receipt;
        assert_eq!(receipt.steps, expected.steps);
        assert_eq!(receipt.causal_events, expected.causal_events);
        assert_eq!(receipt.timestamp, expected.timestamp);
        let artifacts = |receipt: &Receipt| receipt.provenance.clone().unwrap().artifacts;
        assert_eq!(artifacts(receipt), artifacts(&expected));
        assert!(receipt.signature.is_some());
        // What is on the disk in the end is what was in memory.
        let written = fs_err::read(outcome.path.unwrap()).unwrap();
        assert_eq!(&attest_receipt::receipt::read(&written).unwrap(), receipt);
        for event in &receipt.causal_events {
            let path = format!(".attest/causal_ledger/events/{event}.json");
            assert_eq!(world.read(&path), honest.read(&path));
        }
    }
}

#[test]
fn a_receipt_goes_to_no_file_that_its_path_was_led_to_meanwhile() {
    let world = World::new();
    world.write("trusted", "keys");
    let (receipt, trusted) = (world.path("r.yaml"), world.path("trusted"));
    let link = receipt.clone();
    let hooks = &mut Asked {
        meanwhile: Some(Box::new(move |note: &str| {
            if note == "finalize" {
                std::os::unix::fs::symlink(&trusted, &link).unwrap();
            }
        })),
        ..Asked::default()
    };
    let mut options = world.options(STEPS);
    options.place = Place::File(receipt.clone());
    let refused = told(&run(&options, hooks).0.unwrap_err());
    assert!(
        refused.ends_with("leads to another file than when the run began"),
        "{refused}"
    );
    assert_eq!(world.read("trusted"), "keys");
    // Events that no receipt names are taken back.
    let events = fs_err::read_dir(world.path(".attest/causal_ledger/events"));
    assert_eq!(events.map_or(0, Iterator::count), 0);
    // One that was there before the run leads where its owner wants it.
    let (outcome, _) = run(&options, &mut Asked::default());
    assert_eq!(outcome.unwrap().path, Some(receipt));
    assert!(world.read("trusted").contains("pipeline_hash"));
}

#[test]
fn outputs_are_told_to_their_limit_also_where_no_receipt_has_them() {
    let world = World::new();
    let steps = "  a: {run: 'head -c 70000 /dev/zero | tr \"\\\\0\" x; echo warned >&2'}\n";
    for record in [Record::None, Record::Tail, Record::Full] {
        for hit in [false, true] {
            let mut options = world.options(steps);
            options.record = record;
            let mut hooks = Asked::default();
            let receipt = run(&options, &mut hooks).0.unwrap().receipt;
            let step = &receipt.steps[0];
            assert_eq!(step.cache_hit, hit);
            let output = hooks.outputs[0].as_ref().unwrap();
            if (record, hit) == (Record::None, true) {
                // Nobody knows any more what it was.
                assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
                assert!(output.stdout_truncated && output.stderr_truncated);
            } else {
                assert_eq!(output.stdout, "x".repeat(65_536), "{record:?} {hit}");
                assert_eq!(output.stderr, "warned\n");
                assert!(output.stdout_truncated && !output.stderr_truncated);
            }
            let recorded = match record {
                Record::None => String::new(),
                Record::Tail => format!("[4464 bytes cut by attest]\n{}", "x".repeat(65_536)),
                Record::Full => "x".repeat(70_000),
            };
            assert_eq!(step.stdout, recorded);
            let files = world.files(".attest/cache");
            let kept = files.iter().any(|file| {
                let path = format!(".attest/cache/{file}");
                world.read(&path).contains("warned\n")
            });
            assert_eq!(kept, record != Record::None, "{record:?}");
        }
        for file in world.files(".attest/cache") {
            fs_err::remove_file(world.path(&format!(".attest/cache/{file}"))).unwrap();
        }
    }
    let mut hooks = Asked {
        no_output: true,
        ..Asked::default()
    };
    run(&world.options(steps), &mut hooks).0.unwrap();
    assert_eq!(hooks.outputs, [None]);
}

#[test]
fn values_of_secrets_are_not_told() {
    let world = World::new();
    let options = world.options_of(
        "version: hunter2\nsecrets: [TOKEN]\nenv: {TOKEN: hunter2, hunter2: x}\nsteps:\n  a: {run: echo $TOKEN hunter2}\n",
    );
    let mut hooks = Asked::default();
    run(&options, &mut hooks).0.unwrap();
    assert_eq!(hooks.notes().len(), 5);
    assert!(hooks.told.contains("[redacted TOKEN]"));
    assert!(!hooks.told.contains("hunter2"), "{}", hooks.told);
}

#[test]
fn a_receipt_that_nobody_may_read_is_shown_to_nobody() {
    let world = World::new();
    let options = world.options_of(
        "version: '1'\nsecrets: [TOKEN]\nenv: {TOKEN: hunter2}\nsteps:\n  a: {run: 'mkdir -p out; touch out/$TOKEN', outputs: [out]}\n",
    );
    let mut hooks = Asked::default();
    let error = run(&options, &mut hooks).0.unwrap_err();
    assert!(told(&error).contains("TOKEN"), "{}", told(&error));
    assert_eq!(
        hooks.notes(),
        ["validate attest.yaml a", "pre a", "post a "]
    );
    assert!(!hooks.told.contains("hunter2"), "{}", hooks.told);
    assert_eq!(world.receipts(), Vec::<String>::new());
}

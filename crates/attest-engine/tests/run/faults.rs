//! Runs that cannot end well: what is said, and that nothing half stays behind.

use std::os::unix::fs::symlink;

use attest_engine::hooks::NoHooks;
use attest_engine::layout::State;
use attest_engine::run::{LoadKey, Place, RunError, RunOptions, RunOutcome, SigningKey, pipeline};

use crate::read_only::ReadOnly;
use crate::support::{Seen, World, exists, run, runtime, step, told, until};

async fn alone(options: &RunOptions<'_>, seen: &Seen) -> Result<RunOutcome, RunError> {
    pipeline(options, seen, &mut NoHooks).await
}

fn refused(world: &World, steps: &str, no: bool, words: &str) -> Seen {
    let (outcome, seen) = world.run(steps);
    let error = outcome.unwrap_err();
    assert_eq!(error.is_no(), no, "{error}");
    let told = told(&error);
    assert!(told.starts_with(words), "{told}");
    nothing_stays(world);
    seen
}

fn nothing_stays(world: &World) {
    assert_eq!(world.receipts(), Vec::<String>::new());
    assert_eq!(
        world.files(".attest/causal_ledger/events"),
        Vec::<String>::new()
    );
    for name in world.files(".attest/cache") {
        assert!(!name.contains(".new"), "{name}");
    }
}

#[test]
fn a_missing_input_ends_the_run_before_its_step() {
    let world = World::new();
    let seen = refused(
        &world,
        "  a: {run: touch ran, inputs: [nowhere]}\n",
        true,
        "step 'a': declared input not found: nowhere",
    );
    assert_eq!(seen.all(), "");
    assert!(!exists(&world.path("ran")));
}

#[test]
fn a_missing_output_ends_the_run_also_after_a_failure_which_is_told() {
    let world = World::new();
    let seen = refused(
        &world,
        "  a: {run: exit 5, outputs: [out]}\n",
        true,
        "step 'a': declared output not found: out",
    );
    assert!(
        seen.all()
            .contains("warning step 'a' failed with exit code 5")
    );
}

#[test]
fn a_failed_step_records_the_outputs_that_it_made() {
    let world = World::new();
    let (outcome, _) = world.run("  a: {run: 'echo x > out; exit 5', outputs: [out]}\n");
    let receipt = outcome.unwrap().receipt;
    assert_eq!(step(&receipt, "a").exit_code, 5);
    assert_eq!(receipt.provenance.unwrap().artifacts[0].path, "out");
}

#[test]
fn a_step_that_edits_its_own_inputs_is_refused_with_both_hashes() {
    for (edit, changed) in [
        ("echo two > in", "changed: `in`"),
        ("rm in; echo two > in", "changed: `in`"),
        ("touch dir/new", "new: `dir/new`"),
        (
            "rm dir/file; touch dir/new",
            "gone: `dir/file`\n  new: `dir/new`",
        ),
    ] {
        let world = World::new();
        world.write("in", "one");
        world.write("dir/file", "x");
        let steps = format!("  a: {{run: '{edit}', inputs: [in, dir]}}\n");
        let (outcome, _) = world.run(&steps);
        let error = outcome.unwrap_err();
        assert!(!error.is_no());
        let RunError::InputsChanged { before, after, .. } = &error else {
            panic!("{error}");
        };
        assert_ne!(before, after);
        assert_eq!(
            error.to_string(),
            format!(
                "step 'a' modified its own declared inputs while running (before {before}, after {after}); the receipt could not describe what was built\n  {changed}"
            )
        );
        nothing_stays(&world);
    }
}

#[test]
fn a_step_that_removes_its_inputs_is_refused() {
    let world = World::new();
    world.write("in", "one");
    let words = "step 'a': declared input not found: in";
    refused(&world, "  a: {run: rm in, inputs: [in]}\n", true, words);
}

#[test]
fn a25_a_step_that_removes_or_replaces_its_outputs_is_refused() {
    let world = World::new();
    world.write("out", "made before");
    let steps = "  a: {run: rm out, outputs: [out]}\n";
    refused(
        &world,
        steps,
        true,
        "step 'a': declared output not found: out",
    );
    let fifo = "  a: {run: mkfifo out, outputs: [out]}\n";
    refused(
        &world,
        fifo,
        false,
        "step 'a': its files cannot be hashed: `out` is a FIFO",
    );
}

#[test]
fn a25_a_link_out_of_the_workspace_is_refused_as_input_and_output() {
    let world = World::new();
    symlink("/etc/passwd", world.path("in")).unwrap();
    let words = "step 'a': its files cannot be hashed: symlink `in` leads out of the workspace";
    let seen = refused(&world, "  a: {run: 'true', inputs: [in]}\n", false, words);
    assert!(!seen.all().contains("started"));
    let words = "step 'a': its files cannot be hashed: symlink `out` leads out of the workspace";
    let steps = "  a: {run: ln -s /etc/passwd out, outputs: [out]}\n";
    refused(&world, steps, false, words);
}

#[test]
fn a26_a_name_with_a_control_character_is_refused() {
    let world = World::new();
    let steps =
        "  a: {run: \"mkdir out; touch \\\"out/$(printf 'x\\\\ny')\\\"\", outputs: [out]}\n";
    refused(
        &world,
        steps,
        false,
        "step 'a': its files cannot be hashed: `",
    );
}

#[test]
fn a_step_may_write_into_the_state_folder_and_changes_no_fact() {
    let world = World::new();
    let (outcome, _) = world.run(
        "  a: {run: 'echo x > out; rm -rf .attest/causal_ledger .attest/cache; echo junk > .attest/receipts/r.yaml', outputs: [out]}\n",
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(world.receipts().len(), 2);
    let id = &outcome.receipt.causal_events[0];
    assert!(exists(
        &world.path(&format!(".attest/causal_ledger/events/{id}.json"))
    ));
}

#[test]
fn a_step_that_removes_the_folder_of_receipts_leaves_no_event_either() {
    let world = World::new();
    let (outcome, _) = world.run("  a: {run: rm -rf .attest/receipts}\n");
    let error = outcome.unwrap_err();
    assert!(!error.is_no());
    assert!(
        told(&error).starts_with("cannot write the receipt: "),
        "{}",
        told(&error)
    );
    nothing_stays(&world);
}

#[test]
fn a_step_that_plants_a_link_for_a_folder_gains_nothing_outside() {
    for (plant, link) in [
        (
            "rm -rf .attest/receipts; ln -s {} .attest/receipts",
            "receipts",
        ),
        (
            "rm -rf .attest/causal_ledger; ln -s {} .attest/causal_ledger",
            "causal_ledger",
        ),
        (
            "mkdir {}/receipts; rm -rf .attest; ln -s {} .attest",
            ".attest",
        ),
    ] {
        let world = World::new();
        let elsewhere = tempfile::tempdir().unwrap();
        let plant = plant.replace("{}", &elsewhere.path().display().to_string());
        let (outcome, _) = world.run(&format!("  a: {{run: '{plant}', cache: false}}\n"));
        let told = told(&outcome.unwrap_err());
        assert!(
            told.contains(&format!("{link}` is a symbolic link")),
            "{told}"
        );
        for folder in ["", "receipts", "events"] {
            let files = fs_err::read_dir(elsewhere.path().join(folder));
            for entry in files.into_iter().flatten() {
                let entry = entry.unwrap();
                assert!(entry.file_type().unwrap().is_dir(), "{entry:?}");
            }
        }
    }
}

#[test]
fn a_link_for_the_folder_of_events_is_not_followed() {
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs_err::create_dir(world.path(".attest/causal_ledger")).unwrap();
    symlink(elsewhere.path(), world.path(".attest/causal_ledger/events")).unwrap();
    let error = world.run("  a: {run: 'true'}\n").0.unwrap_err();
    assert!(
        told(&error).contains("is a symbolic link"),
        "{}",
        told(&error)
    );
    assert_eq!(fs_err::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn a_workspace_that_was_not_initialised_is_refused() {
    let world = World::new();
    fs_err::remove_dir(world.path(".attest")).unwrap();
    let error = world.run("  a: {run: touch ran}\n").0.unwrap_err();
    assert!(!error.is_no());
    assert!(
        error
            .to_string()
            .starts_with("not an ATTEST repository (run 'attest init')")
    );
    assert_eq!(world.files("."), Vec::<String>::new());
}

#[test]
fn a_read_only_state_folder_is_found_before_anything_runs() {
    for folder in ["receipts", "causal_ledger"] {
        let world = World::new();
        let path = world.path(&format!(".attest/{folder}"));
        fs_err::create_dir_all(&path).unwrap();
        let Some(read_only) = ReadOnly::make(&path) else {
            return;
        };
        let error = world.run("  a: {run: touch ran}\n").0.unwrap_err();
        drop(read_only);
        let told = told(&error);
        assert!(
            ReadOnly::TOLD.iter().any(|text| told.contains(text)),
            "{told}"
        );
        assert!(!exists(&world.path("ran")));
        nothing_stays(&world);
    }
}

#[test]
fn a_place_that_cannot_take_a_receipt_is_found_before_anything_runs() {
    let world = World::new();
    world.write("file", "");
    for place in ["absent/r.yaml", "file/r.yaml", ".attest"] {
        let mut options = world.options("  a: {run: touch ran}\n");
        options.place = Place::File(world.path(place));
        let error = run(&options, &mut NoHooks).0.unwrap_err();
        assert!(!error.is_no());
        assert!(
            error.to_string().starts_with("cannot write the receipt"),
            "{place}: {error}"
        );
        assert!(!exists(&world.path("ran")), "{place}");
    }
    nothing_stays(&world);
}

#[test]
fn declared_plugins_are_refused_and_never_ignored() {
    for link in [false, true] {
        let world = World::new();
        let path = world.path(".attest/plugins.toml");
        if link {
            symlink("/nowhere", &path).unwrap();
        } else {
            world.write(".attest/plugins.toml", "");
        }
        let error = world.run("  a: {run: touch ran}\n").0.unwrap_err();
        assert!(!error.is_no());
        assert!(
            error.to_string().contains("and this caller asks none"),
            "{error}"
        );
        assert!(!exists(&world.path("ran")));
    }
    // Also where the state is kept elsewhere.
    let world = World::new();
    world.write(".attest/plugins.toml", "");
    let state = tempfile::tempdir().unwrap();
    let mut options = world.options("  a: {run: touch ran}\n");
    options.state = State::new(world.path("."), state.path());
    let error = run(&options, &mut NoHooks).0.unwrap_err();
    assert!(matches!(error, RunError::PluginsDeclared { .. }));
}

#[test]
fn a_key_that_cannot_be_used_leaves_nothing() {
    struct NoKey;
    impl LoadKey for NoKey {
        fn load(&self) -> Result<Box<dyn SigningKey>, RunError> {
            Err(RunError::Key("key x is revoked".into()))
        }
    }
    let world = World::new();
    let mut options = world.options("  a: {run: 'true'}\n");
    options.signing = Some(&NoKey);
    let error = run(&options, &mut NoHooks).0.unwrap_err();
    assert!(!error.is_no());
    assert_eq!(
        told(&error),
        "cannot load the signing key: key x is revoked"
    );
    nothing_stays(&world);
}

#[test]
fn an_interrupt_ends_everything_and_leaves_no_receipt() {
    let world = World::new();
    let options = world.options("  a: {run: 'echo $$ > pid; sleep 300'}\n");
    let seen = Seen::default();
    let outcome = runtime().block_on(async {
        let cancel = async {
            until("the step runs", || {
                fs_err::read_to_string(world.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
            })
            .await;
            options.cancel.cancel();
        };
        tokio::join!(alone(&options, &seen), cancel).0
    });
    let error = outcome.unwrap_err();
    assert!(matches!(error, RunError::Cancelled), "{error}");
    assert!(!error.is_no());
    let pid: i32 = world.read("pid").trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH));
    nothing_stays(&world);
}

#[test]
fn two_runs_of_a_workspace_go_one_after_the_other() {
    let world = World::new();
    // Whoever finds the lock taken was run beside another one.
    let steps = "  a: {run: 'mkdir lock || exit 9; sleep 0.2; rmdir lock', cache: false}\n";
    let (one, two) = (world.options(steps), world.options(steps));
    let (seen_one, seen_two) = (Seen::default(), Seen::default());
    let (first, second) =
        runtime().block_on(async { tokio::join!(alone(&one, &seen_one), alone(&two, &seen_two)) });
    assert_eq!(first.unwrap().exit_code(), 0);
    assert_eq!(second.unwrap().exit_code(), 0);
    assert!(seen_two.all().contains("waiting for another run"));
    assert_eq!(world.receipts().len(), 2);
}

#[test]
fn a_run_inside_a_run_of_the_same_workspace_is_refused_and_not_waited_for() {
    let world = World::new();
    let outer =
        world.options("  a: {run: 'touch runs; while ! test -e go; do sleep 0.01; done'}\n");
    let mut inner = world.options("  b: {run: 'true'}\n");
    inner
        .environment
        .0
        .push(("ATTEST_STEP_NAME".into(), "a".into()));
    let (seen_outer, seen_inner) = (Seen::default(), Seen::default());
    let (outer, inner) = runtime().block_on(async {
        let nested = async {
            until("the step runs", || exists(&world.path("runs"))).await;
            let outcome = alone(&inner, &seen_inner).await;
            world.write("go", "");
            outcome
        };
        tokio::join!(alone(&outer, &seen_outer), nested)
    });
    assert_eq!(outer.unwrap().exit_code(), 0);
    assert!(matches!(inner.unwrap_err(), RunError::Nested));
}

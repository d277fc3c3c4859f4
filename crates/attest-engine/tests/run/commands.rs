//! What a command gets, and what is kept of what it says.

use attest_engine::hooks::NoHooks;
use attest_engine::output::Record;
use attest_engine::run::{Environment, Execution};

use crate::support::{World, run, step, told};

#[test]
fn a_step_inherits_the_environment_overlaid_by_pipeline_and_step() {
    let world = World::new();
    let mut options = world.options_of(
        "version: '1'\nenv: {A: pipeline, B: pipeline}\nsteps:\n  one:\n    env: {B: step}\n    run: |\n      echo $INHERITED $A $B $ATTEST_STEP_NAME $ATTEST_DETERMINISTIC; read x || echo nothing to read\n",
    );
    let mut environment = options.environment.0.clone();
    for (name, value) in [("INHERITED", "yes"), ("A", "inherited"), ("odd=name", "x")] {
        environment.push((name.into(), value.into()));
    }
    options.environment = Environment(environment);
    let (outcome, seen) = run(&options, &mut NoHooks);
    let receipt = outcome.unwrap().receipt;
    let said = "yes pipeline step one true\nnothing to read\n";
    assert_eq!(step(&receipt, "one").stdout, said);
    assert_eq!(seen.out(), said);
}

#[test]
fn a_hermetic_step_gets_a_fixed_environment() {
    let world = World::new();
    let mut options =
        world.options_of("version: '1'\nenv: {TZ: Europe/Berlin}\nsteps:\n  one:\n    run: env\n");
    let mut environment = options.environment.0.clone();
    environment.push(("INHERITED".into(), "yes".into()));
    options.environment = Environment(environment);
    options.execution = Execution::Hermetic;
    let receipt = run(&options, &mut NoHooks).0.unwrap().receipt;
    let said = &step(&receipt, "one").stdout;
    let mut names: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_once('='))
        // The shell adds these by itself.
        .filter(|(name, _)| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    names.sort_unstable();
    let path = names.iter().position(|(name, _)| *name == "PATH").unwrap();
    names.remove(path);
    assert_eq!(
        names,
        [
            ("ATTEST_DETERMINISTIC", "true"),
            ("ATTEST_STEP_NAME", "one"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("SOURCE_DATE_EPOCH", "1704067200"),
            ("TZ", "UTC"),
        ]
    );
    let provenance = receipt.provenance.unwrap();
    assert_eq!(receipt.timestamp.to_string(), "2024-01-01T00:00:00Z");
    assert_eq!(provenance.started_at, None);
    assert_eq!(provenance.invocation_id, None);
}

#[test]
fn a_working_directory_is_an_existing_folder_of_the_workspace() {
    let world = World::new();
    world.write("sub/dir/file", "here");
    let yaml =
        |directory: &str| format!("  one:\n    run: cat file\n    working_dir: {directory}\n");
    let (outcome, _) = world.run(&yaml("sub/dir"));
    assert_eq!(step(&outcome.unwrap().receipt, "one").stdout, "here");
    std::os::unix::fs::symlink("/", world.path("out")).unwrap();
    for (directory, why) in [
        ("nowhere", "does not exist"),
        ("sub/dir/file", "is not a directory"),
        ("/tmp", "must be relative and stay in the workspace"),
        ("sub/../..", "must be relative and stay in the workspace"),
        ("out", "leads out of the workspace"),
    ] {
        let (outcome, seen) = world.run(&yaml(directory));
        let error = outcome.unwrap_err();
        assert!(!error.is_no());
        assert_eq!(
            error.to_string(),
            format!("step 'one': working_dir '{directory}' {why}")
        );
        assert!(!seen.all().contains("started"), "{directory}");
    }
    assert_eq!(world.receipts().len(), 1);
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
    let world = World::new();
    let (outcome, _) = world.run(
        "  one:\n    run: printf so; printf far >&2; (sleep 300 & echo $! > pid; wait); sleep 300\n    timeout_secs: 1\n",
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 1);
    assert_eq!(outcome.failed, ["one"]);
    let step = step(&outcome.receipt, "one");
    assert_eq!(step.exit_code, 124);
    assert_eq!(step.stdout, "so");
    assert_eq!(
        step.stderr,
        "far\ncommand timed out after 1s and was killed\n"
    );
    let pid: i32 = world.read("pid").trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH));
}

#[test]
fn a_signal_is_recorded_as_minus_one_and_codes_as_they_are() {
    let world = World::new();
    let (outcome, _) =
        world.run("  a: {run: kill -9 $$}\n  b: {run: exit 255}\n  c: {run: nosuchprogram-here}\n");
    let outcome = outcome.unwrap();
    let codes: Vec<_> = outcome.receipt.steps.iter().map(|s| s.exit_code).collect();
    assert_eq!(codes, [-1, 255, 127]);
    assert_eq!(outcome.failed, ["a", "b", "c"]);
}

#[test]
fn what_a_step_leaves_running_is_killed_with_a_warning() {
    let world = World::new();
    let (outcome, seen) = world.run("  one: {run: sleep 300 & echo $! > pid}\n");
    assert_eq!(outcome.unwrap().exit_code(), 0);
    assert!(
        seen.all()
            .contains("warning step `one` left 1 process(es) running; they were killed"),
        "{}",
        seen.all()
    );
    let pid: i32 = world.read("pid").trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH));
}

#[test]
fn a_command_that_cannot_start_says_why_and_leaves_no_receipt() {
    let world = World::new();
    let mut options = world.options("  one: {run: 'true'}\n");
    options.environment = Environment(vec![("PATH".into(), "/nonexistent".into())]);
    let error = run(&options, &mut NoHooks).0.unwrap_err();
    assert!(!error.is_no());
    assert_eq!(
        told(&error),
        "step 'one': cannot start the command: no executable `sh` in the program's PATH `/nonexistent`"
    );
    assert_eq!(world.receipts(), Vec::<String>::new());
    let long = (0..40).map(|number| format!("/nonexistent/{number}"));
    let long = long.collect::<Vec<_>>().join(":");
    options.environment = Environment(vec![("PATH".into(), long.into())]);
    assert_eq!(
        told(&run(&options, &mut NoHooks).0.unwrap_err()),
        "step 'one': cannot start the command: no executable `sh` in the 40 folders of the program's PATH"
    );
}

#[test]
fn secrets_reach_neither_the_receipt_nor_the_screen_nor_the_cache() {
    let world = World::new();
    let yaml = "version: '1'\nsecrets: [TOKEN, PIN, ABSENT]\nenv: {PIN: '12'}\nsteps:\n  one:\n    run: |\n      printf 'a %s b ' \"$TOKEN\"; printf 'half-'; sleep 0.05; printf 'of-it\\nline two'; printf '%s' \"$TOKEN\" >&2; echo $PIN\n";
    let mut options = world.options_of(yaml);
    let mut environment = options.environment.0.clone();
    environment.push(("TOKEN".into(), "half-of-it\nline two".into()));
    options.environment = Environment(environment);
    for hit in [false, true] {
        let (outcome, seen) = run(&options, &mut NoHooks);
        let receipt = outcome.unwrap().receipt;
        let step = step(&receipt, "one");
        assert_eq!(step.cache_hit, hit);
        assert_eq!(step.stdout, "a [redacted TOKEN] b [redacted TOKEN]12\n");
        assert_eq!(step.stderr, "[redacted TOKEN]");
        assert!(seen.all().contains("secret `PIN` is too short"));
        if !hit {
            assert_eq!(seen.out(), step.stdout);
            assert_eq!(seen.err(), step.stderr);
        }
    }
    for folder in ["receipts", "cache", "causal_ledger/events"] {
        for file in world.files(&format!(".attest/{folder}")) {
            let text = world.read(&format!(".attest/{folder}/{file}"));
            assert!(!text.contains("half-of-it"), "{file}");
        }
    }
}

#[test]
fn outputs_are_kept_as_asked_and_shown_in_any_case() {
    let world = World::new();
    let steps = "  one: {run: \"head -c 70000 /dev/zero | tr '\\\\0' x; printf end\"}\n";
    for (record, length, start) in [
        (Record::None, 0, ""),
        (Record::Tail, 65536 + 27, "[4467 bytes cut by attest]\nxxx"),
        (Record::Full, 70003, "xxx"),
    ] {
        let mut options = world.options(steps);
        options.record = record;
        let (outcome, seen) = run(&options, &mut NoHooks);
        let receipt = outcome.unwrap().receipt;
        let said = &step(&receipt, "one").stdout;
        assert_eq!(said.len(), length, "{record:?}");
        assert!(said.starts_with(start), "{record:?}");
        assert_eq!(seen.out().len(), 70003);
    }
}

#[test]
fn what_is_no_text_is_recorded_and_reads_back() {
    let world = World::new();
    let (outcome, _) = world.run(
        "  one: {run: \"printf '\\\\377\\\\303\\\\251\\\\000\\\\033[31m\\\\302\\\\205\\\\342\\\\200\\\\250\\\\357\\\\273\\\\277 end'\"}\n",
    );
    let outcome = outcome.unwrap();
    let said = &step(&outcome.receipt, "one").stdout;
    assert_eq!(said, "\u{fffd}é\0\u{1b}[31m\u{85}\u{2028}\u{feff} end");
    let stored = fs_err::read(outcome.path.unwrap()).unwrap();
    let read = attest_receipt::receipt::read(&stored).unwrap();
    assert_eq!(read, outcome.receipt);
}

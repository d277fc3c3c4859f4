//! Wrapped commands: codes, receipts, secrets, interruptions.

use attest_engine::hooks::NoHooks;
use attest_engine::layout::State;
use attest_engine::output::Record;
use attest_engine::recompute::OnDisk;
use attest_engine::run::{Environment, Place};
use attest_engine::step::Input;
use attest_engine::wrap::{Failure, WrapOptions, WrapOutcome, run};
use attest_receipt::pipeline::{wrapped_command, wrapped_hash};
use attest_receipt::receipt::{Execution, Receipt};
use attest_verify::trust::Trust;
use process_tree::Wrapper;
use test_case::test_case;
use tokio_util::sync::CancellationToken;

use crate::support::{Seen, World, runtime, until};

pub(crate) fn options(world: &World, command: &[&str]) -> WrapOptions<'static> {
    let workspace = world.path("");
    WrapOptions {
        state: State::choose(&workspace, None, None),
        name: "build".into(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        environment: Environment(cli_shell::env::pick(["PATH"])),
        secrets: Vec::new(),
        input: Input::Nothing,
        wrapper: Wrapper::new(env!("CARGO_BIN_EXE_attest-engine-fixture")),
        record: Record::Tail,
        signing: None,
        place: Place::Receipts,
        attest_version: "1.2.3".into(),
        now: || "2026-11-30T12:00:00Z".parse().unwrap(),
        cancel: CancellationToken::new(),
    }
}

fn done(options: &WrapOptions<'_>) -> (WrapOutcome, Seen) {
    let seen = Seen::default();
    let outcome = runtime().block_on(run(options, &seen, &mut NoHooks));
    (outcome, seen)
}

fn receipt(outcome: &WrapOutcome) -> &Receipt {
    outcome.receipt.as_ref().unwrap()
}

/// Tells whether the receipt on disk describes the workspace as it is now.
fn recomputes(world: &World, outcome: &WrapOutcome) -> Result<(), String> {
    let bytes = fs_err::read(outcome.path.as_ref().unwrap()).unwrap();
    let workspace = OnDisk::new(world.path(""));
    let options = attest_verify::Options {
        check_signatures: false,
        trust_receipt_timestamp: false,
        recompute: true,
        require: Vec::new(),
        policy: None,
        now: "2026-11-30T12:00:00Z".parse().unwrap(),
    };
    let trust = Trust::Absent {
        looked_in: "nowhere".into(),
    };
    let judged = attest_verify::verify(&bytes, &trust, &options, Some(&workspace)).unwrap();
    for check in &judged.checks {
        if check.status == attest_verify::Status::Fail {
            return Err(check.detail.clone());
        }
    }
    Ok(())
}

#[test]
fn a_wrapped_command_is_attested_as_one_step() {
    let world = World::new();
    world.write("in.txt", "in");
    let mut options = options(
        &world,
        &[
            "sh",
            "-c",
            "printf out > out.txt; echo said; echo wailed >&2",
        ],
    );
    options.inputs = vec!["in.txt".into()];
    options.outputs = vec!["out.txt".into()];
    let (outcome, seen) = done(&options);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    assert_eq!(
        (seen.out().as_str(), seen.err().as_str()),
        ("said\n", "wailed\n")
    );
    let receipt = receipt(&outcome);
    let text = wrapped_command(&options.command);
    assert_eq!(receipt.pipeline_hash, wrapped_hash(&options.command));
    assert_eq!(receipt.schema_version, Some(2));
    assert_eq!(receipt.steps.len(), 1);
    assert_eq!(receipt.steps[0].stdout, "said\n");
    assert_eq!(receipt.steps[0].stderr, "wailed\n");
    let provenance = receipt.provenance.as_ref().unwrap();
    let command = options.command.clone();
    assert_eq!(provenance.execution, Some(Execution::Wrapped { command }));
    assert_eq!(provenance.pipeline_name.as_deref(), Some("build"));
    assert_eq!(provenance.artifacts[0].path, "out.txt");
    assert_eq!(
        provenance.steps[0].command_hash,
        blake3::hash(text.as_bytes()).to_hex().to_string()
    );
    // One event, which is the whole chain.
    assert_eq!(receipt.causal_events.len(), 1);
    assert_eq!(
        receipt.causal_chain_hash.as_ref(),
        receipt.causal_events.first()
    );
    let event = format!(
        ".attest/causal_ledger/events/{}.json",
        receipt.causal_events[0]
    );
    let event = world.read(&event);
    let event = attest_receipt::ledger::Event::read(event.as_bytes()).unwrap();
    assert_eq!(
        event.environment_hash,
        attest_receipt::ledger::environment_hash(
            std::env::consts::OS,
            std::env::consts::ARCH,
            "wrapped"
        )
    );
    recomputes(&world, &outcome).unwrap();
    world.write("out.txt", "other");
    let problem = recomputes(&world, &outcome).unwrap_err();
    assert!(problem.contains("output hash mismatch"), "{problem}");
}

#[test]
fn a34_the_boundaries_of_arguments_are_kept_and_no_shell_reads_them() {
    let world = World::new();
    let (one, seen) = done(&options(&world, &["echo", "a b", "$HOME", "*"]));
    assert_eq!(seen.out(), "a b $HOME *\n");
    let (two, _) = done(&options(&world, &["echo", "a", "b", "$HOME", "*"]));
    let (one, two) = (receipt(&one), receipt(&two));
    assert_ne!(one.pipeline_hash, two.pipeline_hash);
    assert_ne!(one.steps[0].input_hash, two.steps[0].input_hash);
}

#[test_case("exit 3", 3)]
#[test_case("kill -TERM $$", 143)]
#[test_case("kill -KILL $$", 137)]
fn a_failure_is_recorded_and_passed_on(script: &str, code: i32) {
    let world = World::new();
    let (outcome, _) = done(&options(&world, &["sh", "-c", script]));
    assert_eq!(outcome.exit_code(), code);
    assert_eq!(receipt(&outcome).steps[0].exit_code, code);
    assert!(outcome.path.as_ref().unwrap().exists());
}

#[test]
fn a_command_that_cannot_start_is_127_and_leaves_nothing() {
    let world = World::new();
    world.write("plain", "no program");
    for command in ["/no/such/program", "surely-not-in-path", "./plain"] {
        let (outcome, _) = done(&options(&world, &[command]));
        assert_eq!(outcome.exit_code(), 127, "{command}");
        assert_eq!(outcome.code, None);
        assert!(outcome.failure.unwrap().to_string().contains("execute"));
    }
    assert_eq!(world.receipts(), Vec::<String>::new());
    assert_eq!(
        world.files(".attest/causal_ledger/events"),
        Vec::<String>::new()
    );
}

#[test]
fn without_its_inputs_a_command_does_not_run() {
    let world = World::new();
    let mut options = options(&world, &["touch", "ran"]);
    options.inputs = vec!["absent".into()];
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), 1);
    let failure = outcome.failure.unwrap().to_string();
    assert_eq!(
        failure,
        "attestation failed: declared input not found: absent"
    );
    assert!(!world.path("ran").exists());
}

#[test_case("exit 0", 1)]
#[test_case("exit 7", 7)]
fn without_its_outputs_there_is_no_receipt(script: &str, code: i32) {
    let world = World::new();
    let mut options = options(&world, &["sh", "-c", script]);
    options.outputs = vec!["absent".into()];
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), code);
    let report = outcome.report();
    assert_eq!(report.evidence_status, "failed");
    assert!(report.error.unwrap().contains("declared output not found"));
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test_case("echo more >> in.txt", 1)]
#[test_case("rm in.txt; exit 9", 9)]
fn a_command_that_edits_its_inputs_gets_no_receipt(script: &str, code: i32) {
    let world = World::new();
    world.write("in.txt", "in");
    let mut options = options(&world, &["sh", "-c", script]);
    options.inputs = vec!["in.txt".into()];
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), code);
    assert!(outcome.failure.is_some());
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn what_the_command_writes_passes_unchanged() {
    let world = World::new();
    let (outcome, seen) = done(&options(&world, &["printf", r"\377\000\033[1m\r"]));
    assert_eq!(*seen.out.borrow(), b"\xff\0\x1b[1m\r");
    // The receipt holds text.
    let stdout = &receipt(&outcome).steps[0].stdout;
    assert_eq!(stdout, "\u{fffd}\0\u{1b}[1m\r");
    recomputes(&world, &outcome).unwrap();
}

#[test]
fn secrets_reach_neither_receipt_nor_ledger_nor_terminal() {
    const CANARY: &str = "canary-7f3a91";
    let world = World::new();
    let script = format!("echo $TOKEN; echo {CANARY} >&2; printf %s $TOKEN > out");
    let mut options = options(&world, &["sh", "-c", &script]);
    options.environment.0.push(("TOKEN".into(), CANARY.into()));
    options.secrets = vec!["TOKEN".into(), "ABSENT".into()];
    options.outputs = vec!["out".into()];
    let (outcome, seen) = done(&options);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    assert_eq!(world.read("out"), CANARY, "the command itself has it");
    let steps = &receipt(&outcome).steps;
    assert_eq!(steps[0].stdout, "[redacted TOKEN]\n");
    for text in [seen.out(), seen.err(), seen.all(), format!("{outcome:?}")] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert!(seen.all().contains("the command line holds a secret value"));
    assert!(seen.all().contains("secret `ABSENT` is no variable"));
    let mut folders = vec![world.path(".attest")];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs_err::read(&path).unwrap();
                assert!(!String::from_utf8_lossy(&bytes).contains(CANARY));
            }
        }
    }
    // The receipt is whole without it.
    recomputes(&world, &outcome).unwrap();
}

#[test]
fn a_secret_in_a_name_or_path_is_refused_before_the_command_starts() {
    const CANARY: &str = "canary-7f3a91";
    type Change = fn(&mut WrapOptions<'static>);
    let changes: [(&str, Change); 5] = [
        ("receipt.provenance.pipeline_name", |o| {
            o.name = CANARY.into();
        }),
        ("receipt.provenance.steps[0].inputs[0]", |o| {
            o.inputs = vec![CANARY.into()];
        }),
        ("receipt.provenance.steps[0].outputs[0]", |o| {
            o.outputs = vec![format!("o/{CANARY}-missing")];
        }),
        ("the path of the receipt", |o| {
            o.place = Place::File(o.state.workspace().join(CANARY));
        }),
        ("the path of the state folder", |o| {
            o.state = State::new(o.state.workspace(), o.state.workspace().join(CANARY));
        }),
    ];
    for (place, change) in changes {
        let world = World::new();
        let mut options = options(&world, &["touch", "ran"]);
        options.environment.0.push(("TOKEN".into(), CANARY.into()));
        options.secrets = vec!["TOKEN".into()];
        change(&mut options);
        let (outcome, seen) = done(&options);
        assert_eq!(outcome.exit_code(), 2, "{outcome:?}");
        let error = outcome.failure.as_ref().unwrap().to_string();
        assert!(
            error.contains("`TOKEN`") && error.contains(place),
            "{error}"
        );
        for text in [error, seen.all(), format!("{:?}", outcome.report())] {
            assert!(!text.contains(CANARY), "{text}");
        }
        assert!(!world.path("ran").exists() && !world.path(CANARY).exists());
        assert!(world.receipts().is_empty());
    }
}

#[test]
fn a_made_file_with_a_secret_in_its_name_leaves_no_receipt() {
    const CANARY: &str = "canary-7f3a91";
    let world = World::new();
    let mut options = options(&world, &["sh", "-c", "mkdir o; touch o/$TOKEN"]);
    options.environment.0.push(("TOKEN".into(), CANARY.into()));
    options.secrets = vec!["TOKEN".into()];
    options.outputs = vec!["o".into()];
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), 2, "{outcome:?}");
    let report = outcome.report();
    assert_eq!(report.build_exit_code, Some(0));
    let error = report.error.unwrap();
    assert!(
        error.contains("artifacts[0].path (`o/[redacted TOKEN]`)"),
        "{error}"
    );
    assert!(world.receipts().is_empty());
}

#[test]
fn a_program_with_a_secret_in_its_path_is_reported_without_it() {
    const CANARY: &str = "canary-7f3a91";
    let world = World::new();
    let mut options = options(&world, &["/absent/canary-7f3a91"]);
    options.environment.0.push(("TOKEN".into(), CANARY.into()));
    options.secrets = vec!["TOKEN".into()];
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), 127, "{outcome:?}");
    let error = outcome.report().error.unwrap();
    assert!(error.contains("/absent/[redacted TOKEN]"), "{error}");
    assert!(!error.contains(CANARY), "{error}");
}

#[test]
fn the_variables_of_this_process_are_inherited() {
    let world = World::new();
    let mut options = options(&world, &["sh", "-c", "echo $COLOUR"]);
    options
        .environment
        .0
        .push(("COLOUR".into(), "green".into()));
    options.environment.0.push(("A=B".into(), "odd".into()));
    let (outcome, seen) = done(&options);
    assert_eq!(seen.out(), "green\n", "{outcome:?}");
}

#[test]
fn an_interrupted_command_is_ended_and_leaves_no_receipt() {
    let world = World::new();
    let options = options(&world, &["sh", "-c", "echo $$ > pid; exec sleep 600"]);
    let cancel = options.cancel.clone();
    let seen = Seen::default();
    let outcome = runtime().block_on(async {
        let mut hooks = NoHooks;
        let both = async {
            until("a pid", || world.read_or_empty("pid").ends_with('\n')).await;
            cancel.cancel();
        };
        tokio::join!(run(&options, &seen, &mut hooks), both).0
    });
    assert_eq!(outcome.exit_code(), 130);
    assert!(matches!(outcome.failure, Some(Failure::Cancelled)));
    let pid = world.read("pid");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn the_report_tells_command_and_receipt_apart() {
    let world = World::new();
    let (outcome, _) = done(&options(&world, &["sh", "-c", "exit 4"]));
    let path = world.path("report.json");
    outcome.report().write(&path).unwrap();
    let text = world.read("report.json");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["build_exit_code"], 4);
    assert_eq!(json["evidence_status"], "produced");
    assert_eq!(json["error"], serde_json::Value::Null);
    let told = json["receipt"].as_str().unwrap();
    assert_eq!(std::path::Path::new(told), outcome.path.unwrap());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let refused = |change: &dyn Fn(&mut WrapOptions<'static>)| {
        let mut options = options(&world, &["touch", "ran"]);
        options.state = State::choose(folder.path(), None, None);
        change(&mut options);
        let (outcome, _) = done(&options);
        assert_eq!(outcome.exit_code(), 2, "{outcome:?}");
        assert!(matches!(outcome.failure, Some(Failure::Usage(_))));
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
    };
    refused(&|options| options.command.clear());
    refused(&|options| options.name = " ".into());
    refused(&|options| options.name = "a\nb".into());
    refused(&|options| options.name = "a\u{202e}b".into());
    refused(&|options| options.inputs = vec!["/etc/passwd".into()]);
    refused(&|options| options.outputs = vec!["../up".into()]);
    refused(&|options| options.outputs = vec![String::new()]);
}

#[test]
fn declared_plugins_are_not_passed_over() {
    let world = World::new();
    world.write(".attest/plugins.toml", "schema_version = 1\n");
    let (outcome, _) = done(&options(&world, &["touch", "ran"]));
    assert_eq!(outcome.exit_code(), 2);
    assert!(!world.path("ran").exists());
}

#[test]
fn a_workspace_needs_no_init_and_the_state_may_be_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let mut options = options(&world, &["true"]);
    options.state = State::choose(folder.path(), Some(&world.path("state")), None);
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(world.files("state/receipts").len(), 1);
    options.state = State::choose(folder.path(), None, None);
    let (outcome, _) = done(&options);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    assert!(folder.path().join(".attest/receipts").is_dir());
}

#[test]
fn many_at_once_write_a_receipt_each() {
    let world = World::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (outcome, _) = done(&options(&world, &["true"]));
                assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
            });
        }
    });
    let receipts = world.receipts();
    assert_eq!(receipts.len(), 8, "{receipts:?}");
    let events = world.files(".attest/causal_ledger/events");
    assert!(
        events.iter().all(|name| name.ends_with(".json")),
        "{events:?}"
    );
}

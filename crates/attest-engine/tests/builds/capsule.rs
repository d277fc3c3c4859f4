//! Steps and commands in capsules, with a stand-in for the container client.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use attest_engine::capsule::{CapsuleFault, Client, init, load, run};
use attest_engine::hooks::{NoHooks, StopKind};
use attest_engine::output::{Record, Secrets};
use attest_engine::run::{Environment, RunError, RunOptions};
use attest_engine::step::Tap;
use attest_receipt::receipt::ControlStatus;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use crate::asked::Asked;
use crate::support::{Seen, World, runtime, told, until};

/// Stands in for a container client: notes what it is asked, and runs the command beside itself.
const CLIENT: &str = r#"#!/bin/sh
for word in "$@"; do printf '%s\n' "$word" >> "$LOG"; done
echo . >> "$LOG"
case $1 in
version)
    [ -n "$DOWN" ] || exit 0
    echo 'noise' >&2
    echo 'Cannot connect to the daemon. Is it running?' >&2
    exit 1 ;;
run)
    [ -z "$REFUSES" ] || { echo 'docker: no such image.' >&2; exit 125; }
    while [ $# -gt 0 ]; do
        case $1 in -v) case $2 in *:ro) export INPUTS="${2%%:*}" ;; esac ;; esac
        case $1 in *@sha256:*) shift; break ;; esac
        shift
    done
    exec "$@" ;;
esac
"#;

struct Engine {
    folder: tempfile::TempDir,
}

impl Engine {
    fn new(clients: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("tools")).unwrap();
        fs_err::create_dir(folder.path().join("tmp")).unwrap();
        for name in clients {
            let path = folder.path().join("tools").join(name);
            fs_err::write(&path, CLIENT).unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            fs_err::set_permissions(&path, mode).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self) -> Environment {
        let tools = self.path("tools").display().to_string();
        let path = cli_shell::env::required("PATH").unwrap();
        Environment(vec![
            ("PATH".into(), format!("{tools}:{path}").into()),
            ("LOG".into(), self.path("log").into()),
            ("TMPDIR".into(), self.path("tmp").into()),
        ])
    }

    /// Only the clients that were put there: none of this machine.
    fn alone(&self) -> Environment {
        let mut environment = self.environment();
        environment.0[0].1 = format!("{}:/bin", self.path("tools").display()).into();
        environment
    }

    /// What the client was asked, one call each.
    fn calls(&self) -> Vec<Vec<String>> {
        let log = fs_err::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().map(str::to_owned).collect();
        let calls = lines.split(|line| line == ".");
        calls.map(<[_]>::to_vec).filter(|c| !c.is_empty()).collect()
    }

    fn left(&self) -> usize {
        fs_err::read_dir(self.path("tmp")).unwrap().count()
    }
}

fn image() -> String {
    format!("busybox@sha256:{}", "0".repeat(64))
}

fn found(environment: &Environment) -> Result<Client, CapsuleFault> {
    runtime().block_on(Client::find(environment, &CancellationToken::new()))
}

fn options(world: &World, engine: &Engine, steps: &str) -> RunOptions<'static> {
    let mut options = world.options(steps);
    options.environment = engine.environment();
    options
}

#[test]
fn a_command_runs_without_network_on_a_read_only_root() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    let capsule = load(&world.path(""), "demo").unwrap();
    let client = found(&engine.environment()).unwrap();
    let seen = Seen::default();
    let secrets = Secrets::default();
    let tap = Tap {
        step: "demo",
        observer: &seen,
        secrets: &secrets,
        record: Record::None,
    };
    let wrapper = Wrapper::new(env!("CARGO_BIN_EXE_attest-engine-fixture"));
    let command = ["sh".into(), "-c".into(), "echo here; exit 6".into()];
    let workspace = world.path("");
    let none = CancellationToken::new();
    let ran = run(
        &workspace, &capsule, &command, &client, &wrapper, tap, &none,
    );
    assert_eq!(runtime().block_on(ran).unwrap(), 6);
    assert_eq!(seen.out(), "here\n");
    let calls = engine.calls();
    assert_eq!(calls[0], ["version"]);
    let run = &calls[1];
    let expected = ["run", "--rm", "--network", "none", "--read-only", "--name"];
    assert_eq!(run[..6], expected);
    let mount = format!(
        "{}:/work",
        fs_err::canonicalize(&workspace).unwrap().display()
    );
    assert_eq!(run[7..11], ["-v", mount.as_str(), "-w", "/work"]);
    assert_eq!(
        run[11..],
        [
            "-e",
            "LANG=C.UTF-8",
            "-e",
            "LC_ALL=C.UTF-8",
            "-e",
            "SOURCE_DATE_EPOCH=1704067200",
            "-e",
            "TZ=UTC",
            image().as_str(),
            "sh",
            "-c",
            "echo here; exit 6"
        ]
    );
}

#[test]
fn without_a_client_or_without_its_engine_the_error_says_which() {
    let engine = Engine::new(&[]);
    let error = found(&engine.alone()).unwrap_err();
    assert!(matches!(error, CapsuleFault::NoClient), "{error}");

    let engine = Engine::new(&["docker", "podman"]);
    let mut environment = engine.alone();
    environment.0.push(("DOWN".into(), "1".into()));
    let error = found(&environment).unwrap_err();
    let CapsuleFault::NoEngine { client, said } = &error else {
        panic!("{error}");
    };
    assert_eq!(*client, engine.path("tools/docker"));
    assert_eq!(said, "Cannot connect to the daemon. Is it running?");
    assert_eq!(engine.calls().len(), 2, "both were asked");
    // A folder of the workspace is never searched.
    environment.0[0].1 = "tools:.".into();
    let error = found(&environment).unwrap_err();
    assert!(matches!(error, CapsuleFault::NoClient), "{error}");
}

#[test]
fn a_step_reads_a_snapshot_of_its_inputs() {
    let (world, engine) = (World::new(), Engine::new(&["podman"]));
    init(&world.path(""), "demo", &image()).unwrap();
    world.write("src/in", "in");
    let steps = "  make:\n    capsule: demo\n    run: cat $INPUTS/in > out; ls $INPUTS/.. ; pwd\n    inputs: [src]\n    outputs: [out]\n";
    let options = options(&world, &engine, steps);
    let (outcome, _) = crate::support::run(&options, &mut NoHooks);
    let receipt = outcome.unwrap().receipt;
    assert_eq!(world.read("out"), "in");
    let step = &receipt.steps[0];
    let hash = load(&world.path(""), "demo").unwrap().capsule_hash;
    assert_eq!(step.capsule_hash, hash);
    assert!(step.stdout.starts_with("src\n"), "{}", step.stdout);
    let isolation = receipt.isolation.as_ref().unwrap();
    assert_eq!(isolation.capsule_steps, ["make"]);
    let inputs = isolation.controls.last().unwrap();
    assert_eq!(inputs.status, ControlStatus::Enforced);
    let calls = engine.calls();
    let mount = calls[1].iter().find(|word| word.ends_with(":ro")).unwrap();
    assert!(mount.ends_with("/src:/work/src:ro"), "{mount}");
    assert!(mount.starts_with(engine.path("tmp").to_str().unwrap()));
    assert_eq!(engine.left(), 0, "the snapshot is gone");
    // The second run takes the result from the cache and needs no engine.
    let (outcome, _) = crate::support::run(&options, &mut NoHooks);
    assert!(outcome.unwrap().receipt.steps[0].cache_hit);
    assert_eq!(engine.calls().len(), 2);
}

#[test]
fn a_step_without_its_capsule_keeps_everything_from_running() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    let steps = "  first:\n    run: touch ran\n  second:\n    needs: [first]\n    capsule: absent\n    run: 'true'\n";
    let (outcome, _) = crate::support::run(&options(&world, &engine, steps), &mut NoHooks);
    let error = outcome.unwrap_err();
    assert!(!error.is_no());
    assert!(
        told(&error).contains("capsule 'absent' not found"),
        "{error:?}"
    );
    assert!(!world.path("ran").exists());
    assert_eq!(engine.calls().len(), 0);
}

#[test]
fn the_root_of_the_workspace_is_no_input_of_a_capsule() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    let steps = "  make:\n    capsule: demo\n    run: touch ran\n    inputs: [.]\n";
    let (outcome, _) = crate::support::run(&options(&world, &engine, steps), &mut NoHooks);
    let error = outcome.unwrap_err();
    assert!(matches!(
        error,
        RunError::Capsule { .. } | RunError::Hashing { .. }
    ));
    assert!(!world.path("ran").exists());
    assert_eq!(engine.left(), 0);
}

#[test]
fn a_container_whose_client_was_killed_is_removed() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    let steps = "  make:\n    capsule: demo\n    run: sleep 600\n    timeout_secs: 3\n";
    let (outcome, _) = crate::support::run(&options(&world, &engine, steps), &mut NoHooks);
    let receipt = outcome.unwrap().receipt;
    assert_eq!(receipt.steps[0].exit_code, 124);
    let calls = engine.calls();
    let name = &calls[1][6];
    assert!(name.starts_with("attest-"), "{name}");
    assert_eq!(calls[2], ["rm", "-f", name]);

    let steps = "  make:\n    capsule: demo\n    run: touch started; sleep 600\n";
    let options = options(&world, &engine, steps);
    let cancel = options.cancel.clone();
    let seen = Seen::default();
    let outcome = runtime().block_on(async {
        let mut hooks = NoHooks;
        let both = async {
            until("a start", || world.path("started").exists()).await;
            cancel.cancel();
        };
        let run = attest_engine::run::pipeline(&options, &seen, &mut hooks);
        tokio::join!(run, both).0
    });
    assert!(matches!(outcome, Err(RunError::Cancelled)));
    let calls = engine.calls();
    assert_eq!(calls.last().unwrap()[..2], ["rm", "-f"]);
    assert_eq!(engine.left(), 0);
}

#[test]
fn a_client_that_could_not_run_the_command_is_no_end_of_the_command() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    let steps = "  make:\n    capsule: demo\n    run: exit 126\n";
    let mut options = options(&world, &engine, steps);
    let (outcome, _) = crate::support::run(&options, &mut NoHooks);
    assert_eq!(outcome.unwrap().receipt.steps[0].exit_code, 126);
    let receipts = world.receipts();
    options.environment.0.push(("REFUSES".into(), "1".into()));
    for record in [Record::Tail, Record::None] {
        options.record = record;
        let (outcome, _) = crate::support::run(&options, &mut NoHooks);
        let error = outcome.unwrap_err();
        assert!(!error.is_no());
        let said = told(&error);
        assert!(said.starts_with("step 'make': "), "{said}");
        assert!(
            said.ends_with("did not run the command: docker: no such image."),
            "{said}"
        );
        assert_eq!(world.receipts(), receipts);
    }
    assert_eq!(engine.left(), 0);
}

#[test]
fn a_step_in_a_capsule_is_built_twice_like_any_other() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    world.write("in", "in");
    let steps = "  make:\n    capsule: demo\n    run: cp $INPUTS out\n    inputs: [in]\n    outputs: [out]\n";
    let options = options(&world, &engine, steps);
    let seen = Seen::default();
    let mut hooks = NoHooks;
    let checked = attest_engine::repro::check(&options, &seen, &mut hooks);
    let outcome = runtime().block_on(checked).unwrap();
    assert!(outcome.report.verified, "{outcome:?}");
    let hash = load(&world.path(""), "demo").unwrap().capsule_hash;
    assert_eq!(outcome.receipt.steps[0].capsule_hash, hash);
    let mounts: Vec<_> = engine
        .calls()
        .into_iter()
        .flatten()
        .filter(|word| word.ends_with(":/work"))
        .collect();
    assert_eq!(mounts.len(), 2);
    assert_ne!(mounts[0], mounts[1], "each build has its own workspace");
    assert_eq!(engine.left(), 0);
}

#[test]
fn a_step_in_a_capsule_is_asked_about_with_the_hash_of_its_capsule() {
    let (world, engine) = (World::new(), Engine::new(&["docker"]));
    init(&world.path(""), "demo", &image()).unwrap();
    let hash = load(&world.path(""), "demo").unwrap().capsule_hash.unwrap();
    let steps = "  a: {run: 'echo said', capsule: demo}\n  b: {run: 'true'}\n";
    let mut options = options(&world, &engine, steps);
    options.record = Record::None;
    let (seen, mut hooks) = (Seen::default(), Asked::default());
    let run = attest_engine::run::pipeline(&options, &seen, &mut hooks);
    let receipt = runtime().block_on(run).unwrap().receipt;
    assert_eq!(receipt.steps[0].capsule_hash.as_ref(), Some(&hash));
    assert_eq!(receipt.steps[0].stdout, "");
    // Before, after and in the receipt.
    let told = format!("capsule_hash: Some(\"{hash}\")");
    assert_eq!(hooks.told.matches(&told).count(), 3, "{}", hooks.told);
    assert_eq!(hooks.notes()[2], "post a said");
    // A no keeps the client from being called.
    let calls = engine.calls().len();
    let mut hooks = Asked::stopping("pre a", StopKind::Denied);
    let run = attest_engine::run::pipeline(&options, &seen, &mut hooks);
    runtime().block_on(run).unwrap_err();
    assert_eq!(engine.calls().len(), calls);
}

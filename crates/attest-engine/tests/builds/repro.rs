//! Pipelines that are built twice.

use std::os::unix::fs::symlink;

use attest_engine::hooks::NoHooks;
use attest_engine::repro::{ReproError, ReproOutcome, check};
use attest_engine::run::RunOptions;
use test_case::test_case;

use crate::support::{FakeKey, Seen, World, runtime, until};

/// A temporary folder of its own, so that what is left behind is seen.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn options(&self, world: &World, steps: &str) -> RunOptions<'static> {
        let mut options = world.options(steps);
        let folder = self.folder.path().as_os_str().to_owned();
        options.environment.0.push(("TMPDIR".into(), folder));
        options
    }

    pub(crate) fn left(&self) -> usize {
        fs_err::read_dir(self.folder.path()).unwrap().count()
    }
}

fn checked(options: &RunOptions<'_>) -> (Result<ReproOutcome, ReproError>, Seen) {
    let seen = Seen::default();
    let outcome = runtime().block_on(check(options, &seen, &mut NoHooks));
    (outcome, seen)
}

const SAME: &str = "  make:\n    run: cat in > out\n    inputs: [in]\n    outputs: [out]\n";

#[test]
fn the_same_twice_is_reproducible_and_signed_with_that_word() {
    let (world, place) = (World::new(), Place::new());
    world.write("in", "in");
    let key = FakeKey::new(String::new);
    let options = RunOptions {
        signing: Some(&key),
        ..place.options(&world, SAME)
    };
    let (outcome, _) = checked(&options);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 0);
    let receipt = &outcome.receipt;
    let found = receipt.reproducibility.as_ref().unwrap();
    assert!(found.verified);
    assert_eq!((found.runs, found.method.as_str()), (2, "double-build/v1"));
    assert_eq!(receipt.timestamp.to_string(), "2024-01-01T00:00:00Z");
    let provenance = receipt.provenance.as_ref().unwrap();
    assert_eq!(provenance.invocation_id, None);
    assert_eq!(provenance.started_at, None);
    assert_eq!(provenance.source, None);
    assert_eq!(provenance.ci, None);
    assert_eq!(key.loaded.borrow().len(), 1);
    assert!(receipt.signature.is_some());
    assert_eq!(world.receipts().len(), 1);
    let json = serde_json::to_value(&outcome.report).unwrap();
    assert_eq!(json["verified"], true);
    assert_eq!(json["runs"], 2);
    assert_eq!(json["steps"][0]["same"], true);
    assert_eq!(json["plugins"], serde_json::json!([]));
    assert_eq!(outcome.report.lines(), Vec::<String>::new());
    // The workspace itself was not built in, and nothing is left of the copies.
    assert!(!world.path("out").exists());
    assert_eq!(place.left(), 0);
    assert_eq!(world.files(".attest/cache"), Vec::<String>::new());
}

#[test_case("pwd > out"; "the path")]
#[test_case("pwd | wc -c > out"; "the length of the path")]
#[test_case("cat /proc/sys/kernel/random/uuid > out"; "chance")]
#[test_case("ls -i marker > out"; "the file system")]
fn what_differs_is_named_file_by_file(command: &str) {
    let (world, place) = (World::new(), Place::new());
    world.write("marker", "");
    let steps = format!(
        "  make:\n    run: |\n      {command}\n      echo same > two\n    outputs: [out, two]\n"
    );
    let (outcome, _) = checked(&place.options(&world, &steps));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 1);
    assert!(!outcome.receipt.reproducibility.as_ref().unwrap().verified);
    let lines = outcome.report.lines();
    assert_eq!(
        lines[0],
        "reproducibility check failed: 1 step(s) diverged between the two runs"
    );
    assert_eq!(lines[1], "step make:");
    assert!(lines[2].starts_with("  output hash (run A): "));
    assert!(lines[3].starts_with("  output hash (run B): "));
    assert!(lines[4].starts_with("  A: f:") && lines[4].ends_with(" out"));
    assert!(lines[5].starts_with("  B: f:") && lines[5].ends_with(" out"));
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(world.receipts().len(), 1, "the receipt says so");
    assert_eq!(place.left(), 0);
}

#[test]
fn twenty_files_are_named_and_the_rest_counted() {
    let (world, place) = (World::new(), Place::new());
    let steps = "  make:\n    run: mkdir out; for n in $(seq 100 125); do pwd > out/$n; done\n    outputs: [out]\n";
    let (outcome, _) = checked(&place.options(&world, steps));
    let report = outcome.unwrap().report;
    assert_eq!(report.steps[0].differs.len(), 20);
    assert_eq!(report.steps[0].more, 6);
    let lines = report.lines();
    assert_eq!(lines.last().unwrap(), "  ... (6 more files differ)");
}

#[test]
fn a_file_that_only_one_build_makes_is_absent_from_the_other() {
    let (world, place) = (World::new(), Place::new());
    let steps = "  make:\n    run: mkdir out; touch out/$(pwd | wc -c)\n    outputs: [out]\n";
    let (outcome, _) = checked(&place.options(&world, steps));
    let lines = outcome.unwrap().report.lines().join("\n");
    assert_eq!(lines.matches("<absent>").count(), 2, "{lines}");
}

#[test]
fn another_exit_code_is_a_difference_too() {
    let (world, place) = (World::new(), Place::new());
    let steps = "  make:\n    run: case $PWD in */a) exit 0;; *) exit 5;; esac\n";
    let (outcome, _) = checked(&place.options(&world, steps));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 1);
    assert_eq!(outcome.failed, ["make"]);
    let lines = outcome.report.lines().join("\n");
    assert!(lines.contains("exit code (run A): 0"), "{lines}");
    assert!(lines.contains("exit code (run B): 5"), "{lines}");
}

#[test]
fn the_environment_is_fixed() {
    let (world, place) = (World::new(), Place::new());
    let steps = "  make:\n    run: env | grep -v ^PATH= | grep -v ^PWD= | grep -v ^OLDPWD= | grep -v ^SHLVL= | grep -v ^_= | sort > out\n    outputs: [out]\n  show:\n    needs: [make]\n    run: cat out\n";
    let mut options = place.options(&world, steps);
    options.environment.0.push(("CANARY".into(), "1".into()));
    options.environment.0.push(("TZ".into(), "Mars".into()));
    let (outcome, _) = checked(&options);
    let outcome = outcome.unwrap();
    let show = &outcome.receipt.steps[1];
    assert_eq!(
        show.stdout,
        "ATTEST_DETERMINISTIC=true\nATTEST_STEP_NAME=make\nLANG=C.UTF-8\nLC_ALL=C.UTF-8\nSOURCE_DATE_EPOCH=1704067200\nTZ=UTC\n"
    );
    assert!(outcome.report.verified);
}

#[test]
fn links_that_lead_out_are_left_out_and_refused_among_inputs() {
    let (world, place) = (World::new(), Place::new());
    world.write("in", "in");
    world.write("data/one", "1");
    symlink("/etc", world.path("outside")).unwrap();
    symlink("one", world.path("data/inner")).unwrap();
    let steps = "  make:\n    run: ls > out\n    inputs: [data]\n    outputs: [out]\n  show:\n    needs: [make]\n    run: cat out\n";
    let (outcome, seen) = checked(&place.options(&world, steps));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.receipt.steps[1].stdout, "data\nin\nout\n");
    assert!(seen.all().contains("symlink `outside` leads out"));

    symlink("/etc/passwd", world.path("data/out")).unwrap();
    let (outcome, _) = checked(&place.options(&world, steps));
    let error = outcome.unwrap_err();
    assert!(matches!(error, ReproError::LinkInInputs { .. }), "{error}");
    assert_eq!(place.left(), 0);
}

#[test]
fn neither_state_nor_git_is_copied_and_a_socket_is_refused() {
    let (world, place) = (World::new(), Place::new());
    world.write(".git/config", "");
    world.write(".attest/keys/k.key", "");
    let steps = "  make:\n    run: ls -A\n";
    let (outcome, _) = checked(&place.options(&world, steps));
    assert_eq!(outcome.unwrap().receipt.steps[0].stdout, "");

    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    let (outcome, _) = checked(&place.options(&world, steps));
    let error = outcome.unwrap_err();
    assert!(!error.is_no());
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("`socket` is a socket"), "{cause}");
    assert_eq!(place.left(), 0);
}

#[test]
fn a_missing_output_is_an_honest_no_and_leaves_nothing() {
    let (world, place) = (World::new(), Place::new());
    let steps = "  make:\n    run: 'true'\n    outputs: [out]\n";
    let (outcome, _) = checked(&place.options(&world, steps));
    assert!(outcome.unwrap_err().is_no());
    assert_eq!(place.left(), 0);
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn an_interrupted_check_leaves_nothing() {
    let (world, place) = (World::new(), Place::new());
    let mark = world.path("started");
    let steps = format!(
        "  make:\n    run: echo $$ > {}; exec sleep 600\n",
        mark.display()
    );
    let options = place.options(&world, &steps);
    let cancel = options.cancel.clone();
    let seen = Seen::default();
    let outcome = runtime().block_on(async {
        let mut hooks = NoHooks;
        let both = async {
            until("a pid", || world.read_or_empty("started").ends_with('\n')).await;
            cancel.cancel();
        };
        tokio::join!(check(&options, &seen, &mut hooks), both).0
    });
    assert!(outcome.is_err());
    let pid = world.read("started");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    assert_eq!(place.left(), 0);
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn a_workspace_that_was_not_initialised_is_refused() {
    let (world, place) = (World::new(), Place::new());
    fs_err::remove_dir_all(world.path(".attest")).unwrap();
    let (outcome, _) = checked(&place.options(&world, SAME));
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("not an ATTEST repository"), "{error}");
    assert_eq!(place.left(), 0);
}

#[test]
fn a_temporary_folder_that_is_none_is_named() {
    let (world, place) = (World::new(), Place::new());
    world.write("in", "in");
    world.write("file", "");
    for (folder, why) in [
        (world.path("absent"), "does not exist"),
        (world.path("file"), "is no folder"),
    ] {
        let mut options = place.options(&world, SAME);
        let variables = &mut options.environment.0;
        variables.retain(|(name, _)| name != "TMPDIR");
        variables.push(("TMPDIR".into(), folder.clone().into()));
        assert_eq!(
            checked(&options).0.unwrap_err().to_string(),
            format!(
                "there is no place for the copies of the workspace: the temporary folder `{}` (TMPDIR) {why}",
                folder.display()
            )
        );
    }
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn a_workspace_may_be_named_by_a_link() {
    let (world, place) = (World::new(), Place::new());
    world.write("in", "in");
    let link = place.folder.path().join("link");
    symlink(world.path(""), &link).unwrap();
    let mut options = place.options(&world, SAME);
    options.state = attest_engine::layout::State::choose(&link, None, None);
    let (outcome, _) = checked(&options);
    assert!(outcome.unwrap().report.verified);
}

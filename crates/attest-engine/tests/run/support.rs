//! A workspace of its own, and everything that is seen of a run in it.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attest_engine::hooks::{Hooks, NoHooks};
use attest_engine::layout::State;
use attest_engine::output::{Observer, Record, Stream};
use attest_engine::run::{
    Environment, Execution, LoadKey, Place, RunError, RunOptions, RunOutcome, SigningKey, pipeline,
};
use attest_receipt::pipeline::Pipeline;
use attest_receipt::receipt::{Receipt, StepResult};
use attest_receipt::time::Time;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

/// A workspace that was initialised.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join(".attest")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, below: &str) -> String {
        fs_err::read_to_string(self.path(below)).unwrap()
    }

    /// The files in a folder, sorted.
    pub(crate) fn files(&self, below: &str) -> Vec<String> {
        let Ok(entries) = fs_err::read_dir(self.path(below)) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Options for a pipeline of these steps, in YAML below `steps:`.
    pub(crate) fn options(&self, steps: &str) -> RunOptions<'static> {
        self.options_of(&format!("version: '1'\nname: test\nsteps:\n{steps}"))
    }

    pub(crate) fn options_of(&self, yaml: &str) -> RunOptions<'static> {
        let workspace = self.folder.path();
        RunOptions {
            state: State::new(workspace, workspace.join(".attest")),
            pipeline: Pipeline::read(yaml.as_bytes()).unwrap(),
            pipeline_path: Some("attest.yaml".into()),
            environment: Environment(cli_shell::env::pick(["PATH"])),
            wrapper: Wrapper::new(env!("CARGO_BIN_EXE_attest-engine-fixture")),
            jobs: NonZeroUsize::MIN,
            record: Record::Tail,
            execution: Execution::Ambient,
            signing: None,
            place: Place::Receipts,
            attest_version: "1.2.3".into(),
            now: || "2026-11-30T12:00:00Z".parse().unwrap(),
            cancel: CancellationToken::new(),
        }
    }

    pub(crate) fn run(&self, steps: &str) -> (Result<RunOutcome, RunError>, Seen) {
        run(&self.options(steps), &mut NoHooks)
    }

    pub(crate) fn receipts(&self) -> Vec<String> {
        self.files(".attest/receipts")
    }
}

pub(crate) fn jobs(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

pub(crate) fn run(
    options: &RunOptions<'_>,
    hooks: &mut dyn Hooks,
) -> (Result<RunOutcome, RunError>, Seen) {
    let seen = Seen::default();
    let outcome = runtime().block_on(pipeline(options, &seen, hooks));
    (outcome, seen)
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn step<'a>(receipt: &'a Receipt, name: &str) -> &'a StepResult {
    receipt.steps.iter().find(|step| step.name == name).unwrap()
}

/// An error as the command line prints it: its words and those of its causes.
pub(crate) fn told(error: &RunError) -> String {
    cli_shell::CliError::no(error.to_string())
        .messages()
        .into_iter()
        .chain(causes(error))
        .collect::<Vec<_>>()
        .join(": ")
}

fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    causes
}

/// Everything that an observer is told.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) lines: RefCell<Vec<String>>,
    pub(crate) out: RefCell<Vec<u8>>,
    pub(crate) err: RefCell<Vec<u8>>,
}

impl Seen {
    pub(crate) fn all(&self) -> String {
        self.lines.borrow().join("\n")
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.out.borrow()).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.err.borrow()).into_owned()
    }

    fn note(&self, line: String) {
        self.lines.borrow_mut().push(line);
    }
}

impl Observer for Seen {
    fn started(&self, step: &str) {
        self.note(format!("started {step}"));
    }

    fn output(&self, _step: &str, stream: Stream, bytes: &[u8]) {
        let to = match stream {
            Stream::Out => &self.out,
            Stream::Err => &self.err,
        };
        to.borrow_mut().extend_from_slice(bytes);
    }

    fn ended(&self, result: &StepResult) {
        self.note(format!("ended {} {}", result.name, result.exit_code));
    }

    fn skipped(&self, step: &str, why: &str) {
        self.note(format!("skipped {step}: {why}"));
    }

    fn warning(&self, message: &str) {
        self.note(format!("warning {message}"));
    }

    fn waiting(&self, message: &str) {
        self.note(format!("waiting {message}"));
    }
}

/// A key that signs with a fixed pattern, and says whether it was loaded.
pub(crate) struct FakeKey {
    pub(crate) loaded: RefCell<Vec<String>>,
    pub(crate) probe: Box<dyn Fn() -> String>,
}

impl FakeKey {
    pub(crate) fn new(probe: impl Fn() -> String + 'static) -> Self {
        Self {
            loaded: RefCell::default(),
            probe: Box::new(probe),
        }
    }
}

impl LoadKey for FakeKey {
    fn load(&self) -> Result<Box<dyn SigningKey>, RunError> {
        self.loaded.borrow_mut().push((self.probe)());
        Ok(Box::new(Pattern))
    }
}

pub(crate) struct Pattern;

impl SigningKey for Pattern {
    fn public_hex(&self) -> String {
        "ab".repeat(32)
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        for (byte, from) in signature.iter_mut().zip(message) {
            *byte = *from;
        }
        signature
    }
}

pub(crate) fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// Waits until something is so; the caller's test fails if it never is.
pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

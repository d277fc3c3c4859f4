//! `run` without `--wrap`: the pipeline of the current folder.

use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use attest_engine::hooks::{NoHooks, StopKind};
use attest_engine::layout::State;
use attest_engine::run::{self, Environment, Execution, Place, RunError, RunOptions, RunOutcome};
use attest_receipt::receipt::StepResult;
use attest_receipt::time::Time;
use cli_shell::{CliError, Format, Ui, exit, visible_bytes};
use process_tree::Wrapper;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Run;
use super::live::Live;
use crate::signing::KeyChoice;

const PIPELINE: &str = "attest.yaml";
/// How many lines of a failed step's output are shown again at the end.
const TAIL: usize = 20;
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(120);

pub(super) fn run(arguments: &Run, ui: &Ui) -> Result<ExitCode, CliError> {
    let workspace = std::env::current_dir()
        .map_err(|error| CliError::operation(error).because("cannot tell the current folder"))?;
    let variable = cli_shell::env::var_os("ATTEST_STATE_DIR");
    let state_dir = arguments.keeping.state_dir.as_deref();
    let state = State::choose(&workspace, state_dir, variable.as_deref());
    state.prepare().map_err(|error| failed(error.into()))?;
    let file = arguments.pipeline.as_deref().unwrap_or(Path::new(PIPELINE));
    let signing = KeyChoice::new(&workspace, arguments.key.as_deref());
    let options = RunOptions {
        pipeline: run::load(file).map_err(failed)?,
        pipeline_path: within(file, &workspace),
        state,
        environment: Environment(cli_shell::env::all()),
        wrapper: Wrapper::current_exe().map_err(|error| {
            CliError::operation(error).because("cannot find the running program")
        })?,
        jobs: arguments.jobs,
        record: arguments.keeping.record_output.into(),
        execution: Execution::Ambient,
        signing: arguments.sign.then_some(&signing as _),
        place: match arguments.output.first() {
            Some(file) => Place::File(file.clone()),
            None => Place::Receipts,
        },
        attest_version: version(),
        now: || Time::from(cli_shell::clock::now()),
        cancel: CancellationToken::new(),
    };
    let live = Live::new(ui);
    let outcome = block_on(&live, &options.cancel, async {
        run::pipeline(&options, &live, &mut NoHooks).await
    })?;
    drop(live);
    let outcome = outcome.map_err(failed)?;
    report(ui, &outcome)
}

/// Returns the version that receipts name, without the commit.
pub(crate) fn version() -> String {
    let version = cli_shell::version().split(' ').next();
    version.unwrap_or_default().to_owned()
}

/// Runs something to its end on this thread; an interrupt or a request to end cancels it, and it
/// is waited for all the same, since it has processes to end.
pub(crate) fn block_on<T>(
    live: &Live<'_>,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    let failed = |error| CliError::operation(error).because("cannot start the runtime");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let done = runtime.block_on(async {
        let mut work = pin!(work);
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                Some(()) = interrupt.recv() => cancel.cancel(),
                Some(()) = terminate.recv() => cancel.cancel(),
                Some(()) = hangup.recv() => cancel.cancel(),
                () = tokio::time::sleep(TURN)  => live.tick(),
            }
        }
    });
    // A thread that still hashes a large tree for a cancelled run is not waited for.
    runtime.shutdown_background();
    done.map_err(failed)
}

/// Returns the file's path below the workspace, for those who are told of it.
fn within(file: &Path, workspace: &Path) -> Option<String> {
    let file = file.canonicalize().ok()?;
    let workspace = workspace.canonicalize().ok()?;
    let path = file.strip_prefix(workspace).ok()?;
    path.to_str().map(str::to_owned)
}

/// Says what came of the run: the receipt's path on standard output, the rest on standard error.
fn report(ui: &Ui, outcome: &RunOutcome) -> Result<ExitCode, CliError> {
    tell(ui, outcome)?;
    let steps = outcome.receipt.steps.iter();
    for step in steps.filter(|step| step.exit_code != 0) {
        ui.error(&CliError::no(failure(step)));
    }
    for skipped in &outcome.skipped {
        ui.error(&CliError::no(format!(
            "step '{}' skipped: {}",
            skipped.step, skipped.why
        )));
    }
    if let Some(stop) = &outcome.stopped {
        ui.error(&match stop.kind {
            StopKind::Denied => CliError::no(stop.to_string()),
            StopKind::Failed => CliError::operation(stop.to_string()),
        });
    }
    Ok(match outcome.exit_code() {
        0 => exit::ok(),
        code => ExitCode::from(code),
    })
}

#[derive(Serialize)]
struct Record<'a> {
    receipt: Option<String>,
    failed: &'a [String],
    skipped: Vec<&'a str>,
}

fn tell(ui: &Ui, outcome: &RunOutcome) -> Result<(), CliError> {
    let path = outcome.path.as_deref();
    if ui.format() == Format::Json {
        return ui.json(&Record {
            receipt: path.map(|path| path.to_string_lossy().into_owned()),
            failed: &outcome.failed,
            skipped: outcome.skipped.iter().map(|s| s.step.as_str()).collect(),
        });
    }
    match path {
        Some(path) => tell_path(ui, path),
        None => Ok(()),
    }
}

/// Prints a path for people as text that is safe, and for programs as it is.
pub(crate) fn tell_path(ui: &Ui, path: &Path) -> Result<(), CliError> {
    let bytes = path.as_os_str().as_bytes();
    if ui.writes_to_terminal() {
        return ui.data(visible_bytes(bytes));
    }
    ui.raw(&[bytes, b"\n"].concat())
}

/// The failure of a step and the end of what it said, on standard error if it said anything there.
fn failure(step: &StepResult) -> String {
    let mut text = format!(
        "step '{}' failed with exit code {}",
        step.name, step.exit_code
    );
    let (stream, said) = if step.stderr.trim().is_empty() {
        ("stdout", &step.stdout)
    } else {
        ("stderr", &step.stderr)
    };
    if said.trim().is_empty() {
        return text;
    }
    text.push_str(&format!("\n--- {stream} of '{}' (tail) ---", step.name));
    let lines: Vec<_> = said.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(TAIL)) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

/// Turns the engine's error into one with an exit code and hints.
pub(crate) fn failed(error: RunError) -> CliError {
    let hint = match &error {
        RunError::ReceiptTooLong { .. } => {
            Some("record less of the outputs with `--record-output tail` or `none`")
        }
        RunError::InputsChanged { .. } => {
            Some("declare what the step writes as an output, in another place than its inputs")
        }
        RunError::PluginsDeclared { .. } => {
            Some("run on a build with a plugin host, or remove the declaration")
        }
        _ => None,
    };
    let error = if error.is_no() {
        CliError::no(error)
    } else {
        CliError::operation(error)
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

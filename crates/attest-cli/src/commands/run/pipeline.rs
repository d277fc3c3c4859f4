//! `run` without `--wrap`: the pipeline of the current folder.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_engine::hooks::{Stop, StopKind};
use attest_engine::layout::State;
use attest_engine::output::{Observer, Secrets};
use attest_engine::plugins::PluginHooks;
use attest_engine::repro::{self, Report, ReproError};
use attest_engine::run::{self, Environment, Execution, Place, RunError, RunOptions, Skipped};
use attest_receipt::receipt::{Receipt, StepResult};
use attest_receipt::time::Time;
use cli_shell::{CliError, Format, Ui, exit, visible_bytes};
use keys::KeysError;
use process_tree::Wrapper;
use safe_fs::SafeFsError;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tree_manifest::ManifestError;

use super::asked::{Asked, Unstarted};
use super::until_done::block_on;
use super::{Run, collisions, live};
use crate::answer::also_unread;
use crate::places::keys_hint;
use crate::signing::KeyChoice;

const PIPELINE: &str = "attest.yaml";
/// How many lines of a failed step's output are shown again at the end.
const TAIL: usize = 20;
const UNSTAMPED: &str = "the receipt has no timestamp, and `attest timestamp` can still add one";

/// Runs the pipeline; `known` learns what must not be said as soon as it is known.
pub(super) fn run(
    arguments: &Run,
    ui: &Ui,
    known: &OnceCell<Secrets>,
) -> Result<ExitCode, CliError> {
    let workspace = current_folder()?;
    let variable = cli_shell::env::var_os("ATTEST_STATE_DIR");
    let state_dir = arguments.keeping.state_dir.as_deref();
    let state = State::choose(&workspace, state_dir, variable.as_deref());
    state.check().map_err(|error| failed(error.into()))?;
    let file = arguments.pipeline.as_deref().unwrap_or(Path::new(PIPELINE));
    let pipeline = run::load(file).map_err(failed)?;
    collisions::of_pipeline(arguments, &state, file, &pipeline)?;
    let asked = Asked::declared(&workspace, arguments.log_file.as_deref())?;
    let signing = KeyChoice::new(&workspace, arguments.key.as_deref()).stamped(&arguments.wish, ui);
    let options = RunOptions {
        pipeline,
        pipeline_path: within(file, &workspace),
        state,
        environment: Environment(cli_shell::env::all()),
        wrapper: wrapper()?,
        jobs: arguments.jobs.unwrap_or(NonZeroUsize::MIN),
        record: arguments.keeping.record_output.into(),
        execution: Execution::Ambient,
        signing: arguments.sign.then_some(&signing as _),
        place: place(arguments),
        attest_version: version(),
        now: || Time::from(cli_shell::clock::now()),
        cancel: CancellationToken::new(),
    };
    known.get_or_init(|| options.secrets());
    let code = if arguments.check_reproducibility {
        check(ui, &options, &asked)?
    } else {
        build(ui, &options, &asked)?
    };
    match (signing.unstamped(), asked.lost()) {
        (None, None) => Ok(code),
        (Some(error), _) => Err(error.because(UNSTAMPED)),
        (None, Some(error)) => Err(error),
    }
}

/// Returns what must not be said of a run that did not get as far as to know its pipeline.
pub(super) fn secrets(arguments: &Run) -> Secrets {
    let file = arguments.pipeline.as_deref().unwrap_or(Path::new(PIPELINE));
    let environment = Environment(cli_shell::env::all());
    run::load(file).map_or_else(
        |_| Secrets::default(),
        |pipeline| run::secrets(&pipeline, &environment),
    )
}

fn build(ui: &Ui, options: &RunOptions<'_>, asked: &Asked<'_>) -> Result<ExitCode, CliError> {
    let outcome = watched(ui, options, asked, async |seen, hooks| {
        let built = run::pipeline(options, seen, hooks).await;
        built.map_err(|error| suspected(error, asked))
    })?;
    let path = outcome.path.as_deref();
    let stop = hiding(options, outcome.stopped.as_ref());
    let stop = stop.as_ref();
    let (failed, skipped) = (&outcome.failed, &outcome.skipped);
    also_unread(tell(ui, path, failed, skipped, stop, None))?;
    explain(ui, &outcome.receipt, skipped);
    stopped(ui, stop);
    Ok(ExitCode::from(outcome.exit_code()))
}

fn check(ui: &Ui, options: &RunOptions<'_>, asked: &Asked<'_>) -> Result<ExitCode, CliError> {
    let outcome = watched(ui, options, asked, async |seen, hooks| {
        let checked = repro::check(options, seen, hooks).await;
        checked.map_err(|error| match error {
            ReproError::Run(error) => suspected(error, asked),
            error => CliError::operation(error),
        })
    })?;
    let path = outcome.path.as_deref();
    let report = Some(&outcome.report);
    let stop = hiding(options, outcome.stopped.as_ref());
    let stop = stop.as_ref();
    let (failed, skipped) = (&outcome.failed, &outcome.skipped);
    also_unread(tell(ui, path, failed, skipped, stop, report))?;
    explain(ui, &outcome.receipt, skipped);
    stopped(ui, stop);
    compared(ui, &outcome.report, stop.is_some());
    Ok(ExitCode::from(outcome.exit_code()))
}

/// Says why a run failed, and who else than a step may have changed its inputs.
fn suspected(error: RunError, asked: &Asked<'_>) -> CliError {
    let suspects = match &error {
        RunError::InputsChanged { .. } => asked.suspects(),
        _ => None,
    };
    let error = failed(error);
    match suspects {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Does the work of a run, watched, with the plugins there to be asked.
fn watched<T>(
    ui: &Ui,
    options: &RunOptions<'_>,
    asked: &Asked<'_>,
    work: impl AsyncFnOnce(&dyn Observer, &mut PluginHooks) -> Result<T, CliError>,
) -> Result<T, CliError> {
    live::watch(ui, |seen| {
        let (wrapper, cancel) = (&options.wrapper, &options.cancel);
        let work = async |hooks: &mut PluginHooks| work(seen, hooks).await;
        let done = asked.during(wrapper, cancel, options.secrets(), seen.asides(), work);
        match block_on(exit::FAILED_CODE, cancel, done)? {
            Ok(done) => done,
            Err(Unstarted::Interrupted) => Err(failed(RunError::Cancelled)),
            Err(Unstarted::Failed(error)) => Err(error),
        }
    })
}

/// Who stopped a run, in words without secrets.
fn hiding(options: &RunOptions<'_>, stop: Option<&Stop>) -> Option<Stop> {
    let stop = stop?;
    Some(Stop {
        reason: options.secrets().replace(&stop.reason),
        ..stop.clone()
    })
}

/// Says who stopped the run, and why.
fn stopped(ui: &Ui, stop: Option<&Stop>) {
    let Some(stop) = stop else { return };
    ui.error(&match stop.kind {
        StopKind::Denied => CliError::no(stop.to_string()),
        StopKind::Failed => CliError::operation(stop.to_string()),
    });
}

/// Says what two builds have in common. Of one that was stopped nothing can be compared.
fn compared(ui: &Ui, report: &Report, stopped: bool) {
    let differs = report.lines();
    let halved = stopped && report.runs < 2;
    if !differs.is_empty() && !halved {
        ui.error(&CliError::no(differs.join("\n")));
    }
    let (differing, alike): (Vec<_>, Vec<_>) =
        report.plugins.iter().partition(|one| one.has_differences());
    for line in alike.iter().flat_map(|plugin| plugin.lines()) {
        ui.status(line);
    }
    if !differing.is_empty() {
        let mut lines = vec![format!(
            "reproducibility check failed: {} plugin(s) answered the two builds differently",
            differing.len()
        )];
        // Each of them is a line of its own, without a label in front.
        lines.extend(differing.iter().flat_map(|plugin| plugin.lines()));
        ui.error(&CliError::no(lines.join("\n")));
    }
    if report.verified {
        let (runs, steps) = (report.runs, report.steps.len());
        let steps = if steps == 1 {
            "1 step".to_owned()
        } else {
            format!("{steps} steps")
        };
        ui.status(format_args!(
            "reproducibility: {runs} builds agree, {steps} compared"
        ));
    }
}

fn place(arguments: &Run) -> Place {
    let output = arguments.outputs.first().map(PathBuf::from);
    let file = arguments.receipt.clone().or(output);
    file.map_or(Place::Receipts, Place::File)
}

pub(crate) fn current_folder() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::operation(error).because("cannot tell the current folder"))
}

/// Returns what watches over commands. What such a watcher leaves when a command kills it comes to
/// this process, which ends it then.
pub(crate) fn wrapper() -> Result<Wrapper, CliError> {
    // Without that such a command is still noticed, and the message says what may be running.
    process_tree::adopt_orphans().ok();
    Wrapper::current_exe()
        .map_err(|error| CliError::operation(error).because("cannot find the running program"))
}

/// Returns the version that receipts name, without the commit.
pub(crate) fn version() -> String {
    let version = cli_shell::version().split(' ').next();
    version.unwrap_or_default().to_owned()
}

/// Returns the file's path below the workspace, for those who are told of it.
fn within(file: &Path, workspace: &Path) -> Option<String> {
    let file = file.canonicalize().ok()?;
    let workspace = workspace.canonicalize().ok()?;
    let path = file.strip_prefix(workspace).ok()?;
    path.to_str().map(str::to_owned)
}

/// Says on standard error what did not succeed.
fn explain(ui: &Ui, receipt: &Receipt, skipped: &[Skipped]) {
    for step in receipt.steps.iter().filter(|step| step.exit_code != 0) {
        ui.error(&CliError::no(failure(step)));
    }
    for Skipped { step, why } in skipped {
        ui.error(&CliError::no(format!("step '{step}' skipped: {why}")));
    }
}

#[derive(Serialize)]
struct Record<'a> {
    receipt: Option<Cow<'a, str>>,
    failed: &'a [String],
    skipped: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reproducibility: Option<&'a Report>,
}

#[derive(Serialize)]
struct Stopped<'a> {
    plugin: &'a str,
    how: &'static str,
    reason: Cow<'a, str>,
}

impl<'a> Stopped<'a> {
    fn of(stop: &'a Stop) -> Self {
        Self {
            plugin: &stop.plugin,
            how: match stop.kind {
                StopKind::Denied => "denied",
                StopKind::Failed => "failed",
            },
            reason: match stop.kind {
                // Programs get the findings in one line.
                StopKind::Denied => stop.reason.replace('\n', "; ").into(),
                StopKind::Failed => Cow::Borrowed(&stop.reason),
            },
        }
    }
}

/// Says on standard output where the receipt is; as JSON also what came of the run.
fn tell(
    ui: &Ui,
    path: Option<&Path>,
    failed: &[String],
    skipped: &[Skipped],
    stop: Option<&Stop>,
    reproducibility: Option<&Report>,
) -> Result<(), CliError> {
    if ui.format() == Format::Json {
        return ui.json(&Record {
            receipt: path.map(|path| path.to_string_lossy()),
            failed,
            skipped: skipped
                .iter()
                .map(|skipped| skipped.step.as_str())
                .collect(),
            stopped: stop.map(Stopped::of),
            reproducibility,
        });
    }
    path.map_or(Ok(()), |path| tell_path(ui, path))
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

/// Who wrote a pattern is told that there are none.
pub(super) fn missing_hint(problem: &ManifestError) -> Option<&'static str> {
    match problem {
        ManifestError::Missing { path, .. } if path.contains(['*', '?', '[']) => {
            Some("declared paths are literal: `*`, `?` and `[` match nothing else; name the folder")
        }
        _ => None,
    }
}

/// Turns the engine's error into one with an exit code and hints.
pub(crate) fn failed(error: RunError) -> CliError {
    let hint = match &error {
        RunError::ReceiptTooLong { .. } => Some(
            "a receipt holds each step's outputs and a line for each file that is made: record less with `--record-output`, or declare an archive of the files instead",
        ),
        RunError::Key(source) => source.downcast_ref::<KeysError>().and_then(keys_hint),
        RunError::Missing { problem, .. } => missing_hint(problem),
        RunError::InputsChanged { .. } => {
            Some("declare what the step writes as an output, in another place than its inputs")
        }
        RunError::PipelineFile { source, .. }
            if source
                .downcast_ref::<SafeFsError>()
                .is_some_and(SafeFsError::is_not_found) =>
        {
            Some("`attest init` makes a first pipeline, `--pipeline FILE` names another file")
        }
        RunError::PipelineFile { path, .. } if crate::receipt_file::is_receipt(path) => {
            Some("it is a receipt: `attest show FILE` lays it out, `attest verify FILE` judges it")
        }
        RunError::Secret { .. } => Some(
            "name it in another way: what a receipt tells of names and paths is taken literally",
        ),
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

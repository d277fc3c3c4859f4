//! `run --wrap`: one command as it is; its output passes through, its exit code is ours.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use attest_engine::layout::State;
use attest_engine::output::Secrets;
use attest_engine::plugins::PluginHooks;
use attest_engine::run::{Environment, Place, RunError};
use attest_engine::step::Input;
use attest_engine::wrap::{self, Failure, WrapOptions, WrapOutcome};
use attest_receipt::time::Time;
use cli_shell::{CliError, Ui, exit, visible, visible_bytes};
use std::os::unix::ffi::OsStrExt;
use tokio_util::sync::CancellationToken;

use super::asked::{Asked, Unstarted};
use super::pipeline::{current_folder, failed, missing_hint, version, wrapper};
use super::{Run, block_on, collisions};
use crate::commands::through::pass;
use crate::places::check_folder;
use crate::signing::KeyChoice;
use crate::words::{hidden, short};

/// The code of an interrupted command, as shells tell it.
const INTERRUPTED: u8 = 130;

/// Returns what must not be said.
pub(super) fn secrets(arguments: &Run) -> Secrets {
    wrap::secrets(
        &arguments.wrapped.secrets,
        &Environment(cli_shell::env::all()),
    )
}

pub(super) fn run(arguments: &Run, ui: &Ui, secrets: &Secrets) -> Result<ExitCode, CliError> {
    let wrapped = &arguments.wrapped;
    let workspace = match &wrapped.workspace {
        Some(folder) => {
            // Not told by the parser of arguments, which knows no secrets.
            check_folder(folder).map_err(|why| {
                let folder = visible(&folder.to_string_lossy());
                CliError::usage(format!("--workspace names `{folder}`, but {why}"))
            })?;
            current_folder()?.join(folder)
        }
        None => current_folder()?,
    };
    let state = state(arguments, &workspace);
    collisions::of_wrapped(arguments, &state)?;
    let asked = Asked::declared(&workspace, arguments.log_file.as_deref())?;
    let signing = KeyChoice::new(&workspace, arguments.key.as_deref()).stamped(&arguments.wish, ui);
    let options = WrapOptions {
        state,
        name: wrapped.name.clone().unwrap_or_default(),
        inputs: wrapped.inputs.clone(),
        outputs: arguments.outputs.clone(),
        command: wrapped.command.clone(),
        environment: Environment(cli_shell::env::all()),
        secrets: wrapped.secrets.clone(),
        input: if io::stdin().is_terminal() {
            Input::Terminal
        } else {
            Input::Inherit
        },
        wrapper: wrapper()?,
        record: arguments.keeping.record_output.into(),
        signing: arguments.sign.then_some(&signing as _),
        place: arguments
            .receipt
            .clone()
            .map_or(Place::Receipts, Place::File),
        attest_version: version(),
        now: || Time::from(cli_shell::clock::now()),
        cancel: CancellationToken::new(),
    };
    let passed = pass(ui, |through| {
        let (wrapper, cancel) = (&options.wrapper, &options.cancel);
        let work = async |hooks: &mut PluginHooks| wrap::run(&options, through, hooks).await;
        let done = asked.during(wrapper, cancel, options.secrets(), through.asides(), work);
        block_on(INTERRUPTED, cancel, done)
    })?;
    let start = if passed.open_line { "\n" } else { "" };
    let report = wrapped.report.as_ref();
    let mut outcome = match passed.done {
        Ok(outcome) => outcome,
        Err(unstarted) => return not_begun(ui, report, unstarted, secrets),
    };
    if let (Some(error), None) = (signing.unstamped(), &outcome.failure) {
        let error = error.messages().join(": ");
        outcome.failure = Some(RunError::Unstamped(error.into()).into());
    }
    let inputs_changed = matches!(outcome.failure, Some(Failure::InputsChanged(_)));
    let code = tell(ui, report, outcome, secrets, start)?;
    if let (true, Some(hint)) = (inputs_changed, asked.suspects()) {
        ui.hint(hint);
    }
    match asked.lost() {
        Some(error) if code == ExitCode::SUCCESS => Err(error),
        Some(error) => {
            ui.error(&short(hidden(error, secrets)));
            Ok(code)
        }
        None => Ok(code),
    }
}

/// Leaves a report of a command that was not started.
fn not_begun(
    ui: &Ui,
    report: Option<&PathBuf>,
    unstarted: Unstarted,
    secrets: &Secrets,
) -> Result<ExitCode, CliError> {
    let mut outcome = WrapOutcome::default();
    let error = match unstarted {
        Unstarted::Interrupted => {
            outcome.failure = Some(Failure::Cancelled);
            return tell(ui, report, outcome, secrets, "");
        }
        Unstarted::Failed(error) => hidden(error, secrets),
    };
    outcome.failure = Some(Failure::Usage(error.messages().join(": ")));
    if let Some(Err(error)) = report.map(|path| outcome.report().write(path)) {
        let error = CliError::operation(error).because("cannot write the report");
        ui.error(&short(hidden(error, secrets)));
    }
    Err(error)
}

fn state(arguments: &Run, workspace: &std::path::Path) -> State {
    let variable = cli_shell::env::var_os("ATTEST_STATE_DIR");
    let option = arguments.keeping.state_dir.as_deref();
    State::choose(workspace, option, variable.as_deref())
}

fn tell(
    ui: &Ui,
    report: Option<&PathBuf>,
    outcome: WrapOutcome,
    secrets: &Secrets,
    start: &str,
) -> Result<ExitCode, CliError> {
    let say = |error: CliError| ui.error(&short(hidden(error, secrets)));
    if let Some(path) = &outcome.path {
        let path = visible_bytes(path.as_os_str().as_bytes());
        ui.status(format_args!("{start}attest: receipt written to {path}"));
    }
    let mut code = outcome.exit_code();
    let written = report.map_or(Ok(()), |path| outcome.report().write(path));
    if let Some(failure) = outcome.failure {
        say(told(failure));
    }
    if let Err(error) = written {
        say(CliError::operation(error).because("cannot write the report"));
        if code == 0 {
            code = i32::from(exit::FAILED_CODE);
        }
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn told(failure: Failure) -> CliError {
    match failure {
        Failure::Failed(error) => failed(error),
        Failure::Files(problem) => {
            let hint = missing_hint(&problem);
            let error = CliError::no(Failure::Files(problem));
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        failure => CliError::no(failure),
    }
}

//! What a run writes must be nothing that it hashes, nor its pipeline file.

use std::path::Path;

use attest_engine::layout::State;
use attest_engine::places::{Declared, PlaceError, Places};
use attest_receipt::pipeline::Pipeline;
use cli_shell::CliError;

use super::Run;
use crate::guard::Guard;
use crate::new_file;

/// Judges the options of a pipeline run before anything is made.
pub(super) fn of_pipeline(
    run: &Run,
    state: &State,
    file: &Path,
    pipeline: &Pipeline,
) -> Result<(), CliError> {
    let output = run.outputs.first().map(Path::new);
    let named = [
        ("--output", output),
        ("--receipt", run.receipt.as_deref()),
        ("--log-file", run.log_file.as_deref()),
    ];
    let declared = pipeline.steps.iter().flat_map(|(name, step)| {
        let inputs = all(name, "input", &step.inputs);
        inputs.chain(all(name, "output", &step.outputs))
    });
    check(&Places {
        state,
        files: files(named),
        pipeline: Some(file),
        declared: declared.collect(),
    })
}

/// Judges the options of a wrapped command before anything is made.
pub(super) fn of_wrapped(run: &Run, state: &State) -> Result<(), CliError> {
    let wrapped = &run.wrapped;
    let name = wrapped.name.as_deref().unwrap_or_default();
    let report = wrapped.report.as_deref();
    let named = [
        ("--receipt", run.receipt.as_deref()),
        ("--report", report),
        ("--log-file", run.log_file.as_deref()),
    ];
    let inputs = all(name, "input", &wrapped.inputs);
    check(&Places {
        state,
        files: files(named),
        pipeline: None,
        declared: inputs.chain(all(name, "output", &run.outputs)).collect(),
    })?;
    let guard = Guard::of(state.workspace());
    report.map_or(Ok(()), |report| new_file::check(report, "report", &guard))
}

fn files<'a>(named: [(&'static str, Option<&'a Path>); 3]) -> Vec<(&'static str, &'a Path)> {
    let given = named.into_iter();
    given
        .filter_map(|(option, path)| Some((option, path?)))
        .collect()
}

fn all<'a>(
    step: &'a str,
    role: &'static str,
    paths: &'a [String],
) -> impl Iterator<Item = Declared<'a>> {
    paths.iter().map(move |path| Declared { step, role, path })
}

fn check(places: &Places<'_>) -> Result<(), CliError> {
    let guard = Guard::of(places.state.workspace());
    for (option, file) in &places.files {
        let refused = |error: CliError| error.because(format!("`{option}` is refused"));
        guard.check(file).map_err(refused)?;
    }
    Guard::check_state(places.state.folder())?;
    places.check().map_err(|error| {
        let hint = match &error {
            PlaceError::State { .. } => {
                "keep the state elsewhere with `--state-dir`, or declare the paths that matter one by one"
            }
            PlaceError::Declared { .. } => "name a file outside of what is declared",
            _ => "name another file",
        };
        CliError::usage(error).hint(hint)
    })
}

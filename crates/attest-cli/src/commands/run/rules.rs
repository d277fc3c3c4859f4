//! Which options of `run` need which others.

use std::path::Path;

use cli_shell::{CliError, Format, Ui};

use super::Run;
use crate::new_file;
use crate::prerequisite::{self, Rule};

const PIPELINE: &str = "a pipeline run, not --wrap";

/// Refuses options that could not take effect.
pub(super) fn check(run: &Run, ui: &Ui) -> Result<(), CliError> {
    let wrapped = &run.wrapped;
    let wraps = |option, given, why| Rule {
        option,
        given,
        requires: "--wrap",
        met: wrapped.wrap,
        why,
    };
    let runs = |option, given, why| Rule {
        option,
        given,
        requires: PIPELINE,
        met: !wrapped.wrap,
        why,
    };
    if let Some(word) = run.misplaced.first() {
        let place = if wrapped.wrap {
            "the command that is wrapped stands after `--`"
        } else {
            "a pipeline file is named with `--pipeline`"
        };
        return Err(CliError::usage(format!(
            "`{word}` cannot stand here: {place}"
        )));
    }
    if run.verify {
        return Err(CliError::usage(
            "--verify is not offered: this program has no isolation of processes that would deserve the name",
        )
        .hint("a step with `capsule: NAME` runs in a container without a network, pinned by digest"));
    }
    no_stdout(run)?;
    prerequisite::check(&run.wish.rules(run.sign))?;
    prerequisite::check(&[
        Rule {
            option: "--key",
            given: run.key.is_some(),
            requires: "--sign",
            met: run.sign,
            why: "a key was named but nothing would be signed",
        },
        Rule {
            option: "--wrap",
            given: wrapped.wrap,
            requires: "--name <STEP_NAME>",
            met: wrapped.name.is_some(),
            why: "the receipt records the wrapped command under a step name",
        },
        Rule {
            option: "--wrap",
            given: wrapped.wrap,
            requires: "a command after `--`",
            met: !wrapped.command.is_empty(),
            why: "there is nothing to wrap otherwise",
        },
        Rule {
            option: "--format json",
            given: wrapped.wrap && ui.format() == Format::Json,
            requires: "--report <FILE> beside --wrap",
            met: wrapped.report.is_some(),
            why: "standard output is that of the wrapped command",
        },
        wraps(
            "--name",
            wrapped.name.is_some(),
            "a pipeline run takes step names from the pipeline file",
        ),
        wraps(
            "--input",
            !wrapped.inputs.is_empty(),
            "a pipeline run declares inputs in the pipeline file",
        ),
        wraps(
            "--output more than once",
            run.outputs.len() > 1,
            "a pipeline run has one receipt, and declares outputs in the pipeline file",
        ),
        wraps(
            "--output beside --receipt",
            !run.outputs.is_empty() && run.receipt.is_some(),
            "both name the file of the receipt",
        ),
        wraps(
            "--secret",
            !wrapped.secrets.is_empty(),
            "a pipeline run names secrets in the pipeline file",
        ),
        wraps(
            "--workspace",
            wrapped.workspace.is_some(),
            "a pipeline run uses the current directory",
        ),
        wraps(
            "a command after `--`",
            !wrapped.command.is_empty(),
            "a pipeline run takes its commands from the pipeline file",
        ),
        wraps(
            "--report",
            wrapped.report.is_some(),
            "a wrap report describes one existing build command",
        ),
        runs(
            "--check-reproducibility",
            run.check_reproducibility,
            "a wrapped command runs once; there is nothing to replay",
        ),
        runs(
            "--pipeline",
            run.pipeline.is_some(),
            "--wrap takes a command, not a pipeline file",
        ),
        runs("--jobs", run.jobs.is_some(), "--wrap runs one command"),
    ])
}

/// Standard output has the path of the receipt, or what the wrapped command writes.
fn no_stdout(run: &Run) -> Result<(), CliError> {
    let wrapped = &run.wrapped;
    let output = run.outputs.first().filter(|_| !wrapped.wrap);
    let named = [
        ("--output", output.map(Path::new)),
        ("--receipt", run.receipt.as_deref()),
        ("--report", wrapped.report.as_deref()),
        ("--log-file", run.log_file.as_deref()),
    ];
    match named
        .iter()
        .find(|(_, file)| file.is_some_and(new_file::is_stdout))
    {
        None => Ok(()),
        Some((option, _)) => Err(CliError::usage(format!(
            "{option} does not write to standard output, which has another use here"
        ))
        .hint("name a file; one with that very name is `./-`")),
    }
}

//! The program: from the command line to the exit code.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::process::ExitCode;

use clap::CommandFactory;
use cli_shell::{CliError, GlobalOpts, Ui};
use futures_util::{StreamExt, stream};
use process_tree::Wrapper;
use tokio::signal::unix::{SignalKind, signal};

use crate::run::{Limits, Runner};
use crate::scenario::{Scenario, UnknownScenario, select};
use crate::{Args, Report, ReportFormat, Target};

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program. Its `main` starts with [`process_tree::run_wrapper_if_asked`].
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with::<Args>(args, tool)
}

fn tool(args: Args) -> Result<ExitCode, CliError> {
    let scenarios = select(&args.only, args.strict).map_err(|error| {
        let hint = match error {
            UnknownScenario::Name { .. } => "`--list --strict` prints the names of the scenarios",
            UnknownScenario::Strict { .. } => "add `--strict` in front of the plugin",
        };
        CliError::usage(error).hint(hint)
    })?;
    let ui = Ui::new(&GlobalOpts {
        quiet: args.quiet,
        ..GlobalOpts::default()
    });
    if args.list {
        return list(&ui, args.format, &scenarios);
    }
    let target = Target {
        argv: args.plugin,
        env: own_environment(),
        wrapper: Wrapper::current_exe().map_err(CliError::operation)?,
    };
    let limits = Limits {
        session: args.timeout,
        rejection: args.reject_timeout,
        repeat: args.repeat,
    };
    let runner = Runner::new(target, args.operation, limits);
    let jobs = args.jobs.unwrap_or_else(default_jobs);
    let mut report = Report::new(args.format, args.operation);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::operation)?;
    runtime.block_on(async {
        // Dropping the run ends whatever process it has started, so an interrupt leaves nothing.
        tokio::select! {
            done = perform(&runner, &scenarios, jobs, &mut report, &ui) => done,
            error = interrupted() => Err(error),
        }
    })?;
    ui.raw(report.end().as_bytes())?;
    let totals = report.totals();
    let skipped = match totals.skipped {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    ui.status(format_args!(
        "{} passed, {} failed{skipped}",
        totals.passed, totals.failed
    ));
    Ok(if totals.failed == 0 {
        cli_shell::exit::ok()
    } else {
        cli_shell::exit::no()
    })
}

async fn perform(
    runner: &Runner,
    scenarios: &[Scenario],
    jobs: NonZeroUsize,
    report: &mut Report,
    ui: &Ui,
) -> Result<(), CliError> {
    let runs = stream::iter(scenarios).map(|scenario| runner.run(scenario));
    // Whichever ends first, verdicts come in the order of the table.
    let mut verdicts = pin!(runs.buffered(jobs.get()));
    while let Some(verdict) = verdicts.next().await {
        ui.raw(report.add(verdict).as_bytes())?;
    }
    Ok(())
}

async fn interrupted() -> CliError {
    let (interrupt, terminate) = match (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(error), _) | (_, Err(error)) => return CliError::operation(error),
    };
    let (mut interrupt, mut terminate) = (interrupt, terminate);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    CliError::operation("interrupted before the last scenario")
}

/// As many at once as there are processors, but not so many that they get into each other's way.
fn default_jobs() -> NonZeroUsize {
    const MOST: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);
    std::thread::available_parallelism().map_or(NonZeroUsize::MIN, |count| count.min(MOST))
}

fn list(ui: &Ui, format: ReportFormat, scenarios: &[Scenario]) -> Result<ExitCode, CliError> {
    for scenario in scenarios {
        match format {
            ReportFormat::Json => ui.data(format_args!("{{\"name\":\"{}\"}}", scenario.name))?,
            ReportFormat::Human | ReportFormat::Junit => ui.data(scenario.name)?,
        }
    }
    Ok(cli_shell::exit::ok())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a plugin under test gets the tool's own environment, whole"
)]
fn own_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

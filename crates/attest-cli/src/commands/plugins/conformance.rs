//! `plugins conformance CMD`: tests a plugin against attest-plugin/1, for those who write one.
//!
//! Nothing that is declared is read and no digest is compared: this is no run, and says so.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use attest_plugin_conformance::{Limits, Report, Runner, Scenario, Target, Verdict, all, select};
use attest_plugin_host::{Executable, ExecutableError, declare};
use attest_plugin_protocol::PluginName;
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, visible};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::look::search;
use crate::commands::run::{block_on, version, wrapper};
use crate::guard::Guard;
use crate::new_file;

/// What is written with `--junit`.
const WHAT: &str = "JUnit document";

/// More than this at once get into each other's way.
const MOST_AT_ONCE: usize = 4;

/// Whoever sees nothing for so long is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to test, and how.
#[derive(Debug, Clone, Args)]
pub(super) struct Conformance {
    /// Print the names of the scenarios and where each rule comes from
    #[arg(long)]
    list: bool,
    /// Run this scenario only (may be given more than once)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// The name that it will be declared under [default: the one that it says]
    #[arg(long, value_name = "NAME")]
    name: Option<PluginName>,
    /// A variable of its `env` table (may be given more than once)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The workspace that it works in [default: a new empty folder each time]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// How long it may take for an answer, as `timeout_secs` of a declaration
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout_secs: u64,
    /// Also write the report as a JUnit XML document
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// The path of the plugin, with a `/`, and arguments, of which a run gives none
    #[arg(
        value_name = "CMD",
        required_unless_present = "list",
        num_args = 1..,
        trailing_var_arg = true
    )]
    command: Vec<OsString>,
}

/// What `--list --format json` prints of a scenario.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    source: &'static str,
}

impl Conformance {
    pub(super) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let scenarios = select(&self.only).map_err(|error| {
            CliError::usage(error).hint("`attest plugins conformance --list` prints the names")
        })?;
        if self.list {
            return list(&scenarios, ui);
        }
        self.variables_stand_once()?;
        let target = self.target()?;
        let guard = Guard::of(Path::new("."));
        if let Some(junit) = &self.junit {
            new_file::check(junit, WHAT, &guard)?;
        }
        ui.status(format_args!(
            "no digest was checked; that of this file is {}",
            target.executable.digest()
        ));
        let report = self.report(target, &scenarios, ui)?;
        let totals = report.totals();
        match ui.format() {
            Format::Json => ui.json(&totals)?,
            Format::Human => ui.status(format_args!(
                "{} passed, {} failed, {} skipped, {} warned",
                totals.passed, totals.failed, totals.skipped, totals.warned
            )),
        }
        if let Some(junit) = &self.junit {
            new_file::write(junit, report.junit().as_bytes(), WHAT, &guard)?;
        }
        Ok(match totals.failed {
            0 => exit::ok(),
            _ => exit::no(),
        })
    }

    /// A table cannot hold a name twice.
    fn variables_stand_once(&self) -> Result<(), CliError> {
        let mut seen = BTreeSet::new();
        let again = self.env.iter().find(|(name, _)| !seen.insert(name));
        match again {
            Some((name, _)) => Err(CliError::usage(format!(
                "the variable `{name}` is given twice"
            ))),
            None => Ok(()),
        }
    }

    fn target(&self) -> Result<Target, CliError> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| CliError::usage("no plugin is named"))?;
        let shown = visible(&program.to_string_lossy());
        if !program.as_bytes().contains(&b'/') {
            return Err(CliError::usage(format!(
                "`{shown}` is not a path: nothing is looked up here"
            ))
            .hint(format!("`./{shown}` names a file of this folder")));
        }
        let executable = Executable::open(Path::new(program)).map_err(|error| {
            let forbidden = matches!(error, ExecutableError::NotExecutable { .. });
            let error = CliError::operation(error).because(format!("cannot run `{shown}`"));
            if forbidden {
                error.hint("`chmod +x` makes a file a program")
            } else {
                error
            }
        })?;
        let workspace = match &self.workspace {
            Some(workspace) => Some(folder(workspace)?),
            None => None,
        };
        Ok(Target {
            executable: Arc::new(executable),
            arguments: arguments.to_vec(),
            name: self.name.clone(),
            env: self.env.clone(),
            search: search(),
            attest_version: version(),
            workspace,
            wrapper: wrapper()?,
        })
    }

    fn report(&self, target: Target, scenarios: &[Scenario], ui: &Ui) -> Result<Report, CliError> {
        let limits = Limits {
            answer: Duration::from_secs(self.timeout_secs),
            ..Limits::default()
        };
        let runner = Runner::new(target, limits);
        let mut report = Report::default();
        let cancel = CancellationToken::new();
        let told = CancellationToken::new();
        let tell = |verdict: Verdict| {
            told.cancel();
            match ui.format() {
                Format::Json => ui.json(&verdict.record())?,
                Format::Human => ui.data(verdict.line())?,
            }
            report.add(verdict);
            Ok(())
        };
        let waits = async {
            tokio::select! {
                () = told.cancelled() => {}
                () = tokio::time::sleep(PATIENCE) => ui.status(format_args!(
                    "no line yet; an answer of the plugin may take {} s, see `--timeout-secs`",
                    self.timeout_secs
                )),
            }
            std::future::pending::<()>().await;
        };
        block_on(2, &cancel, async {
            // Dropping the rest ends whatever process it has started.
            tokio::select! {
                done = runner.run_all(scenarios, at_once(), tell) => done,
                () = waits => Ok(()),
                () = cancel.cancelled() => {
                    Err(CliError::operation("interrupted before the last scenario"))
                }
            }
        })??;
        Ok(report)
    }
}

fn list(scenarios: &[Scenario], ui: &Ui) -> Result<ExitCode, CliError> {
    let width = all().map(|one| one.name.len()).max().unwrap_or_default();
    for Scenario { name, source, .. } in scenarios {
        let record = Listed { name, source };
        ui.record(&record, |one| {
            format!("{:width$}  {}", one.name, one.source)
        })?;
    }
    Ok(exit::ok())
}

fn folder(path: &Path) -> Result<PathBuf, CliError> {
    let shown = || format!("the workspace `{}`", visible(&path.to_string_lossy()));
    let folder =
        fs_err::canonicalize(path).map_err(|error| CliError::operation(error).because(shown()))?;
    if !folder.is_dir() {
        return Err(CliError::usage(format!("{} is not a folder", shown())));
    }
    Ok(folder)
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, as in the `env` table of a declaration")?;
    match declare::unfit_variable(name) {
        Some(rule) => Err(format!("the name {rule}")),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}

fn at_once() -> NonZeroUsize {
    const MOST: NonZeroUsize = NonZeroUsize::MIN.saturating_add(MOST_AT_ONCE - 1);
    available_parallelism().map_or(NonZeroUsize::MIN, |count| count.min(MOST))
}

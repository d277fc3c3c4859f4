//! The command line of `forge-worker`: from the arguments to the exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli_shell::{CliError, ServerOpts, Ui, exit, logging};
use process_tree::Wrapper;

use crate::config::{Host, TokenSource, WorkerConfig};
use crate::websocket::GateConnector;
use crate::{WorkerError, run};

const EXIT_CODES: &str = "\
Exit codes:
  0  drained after SIGTERM or SIGINT: no job runs, each was delivered, kept, or stopped for its lost lease; or the check passed
  2  usage, configuration or start failed
  3  a second signal cancelled the running jobs
  4  the drain deadline passed, or a third signal came, and the running jobs were killed";

/// Leases jobs from a Gate, runs plugins and declared checks, makes candidate commits
#[derive(Debug, Parser)]
#[command(name = "forge-worker", version = cli_shell::version(), after_help = EXIT_CODES)]
struct Args {
    /// The configuration file (strict JSON, at most 1 MiB)
    #[arg(long, value_name = "FILE", required_unless_present = "check_config")]
    config: Option<PathBuf>,
    /// Judge the configuration file alone and exit: 0 if it is good, 2 if not
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    check_config: Option<Option<PathBuf>>,
    /// With --check-config: also look up what the file names on this host
    #[arg(long, requires = "check_config")]
    live: bool,
    #[command(flatten)]
    server: ServerOpts,
}

/// Runs the whole program. `args` begins with the program's name.
///
/// The caller's `main` must have called `process_tree::run_wrapper_if_asked` first: the Worker
/// starts its plugins and checks through the executable that it runs from.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with(args, body)
}

/// The definition of the command line, for documentation.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that cli-shell calls"
)]
fn body(args: Args) -> Result<ExitCode, CliError> {
    let file = file(&args)?;
    let config = WorkerConfig::load(file).map_err(CliError::config)?;
    if args.check_config.is_some() {
        if args.live {
            look_up(&config)?;
        }
        Ui::new(&args.server.terminal()).status(format_args!("`{}` is valid", file.display()));
        return Ok(exit::ok());
    }
    logging::init(
        args.server.log_format.unwrap_or_default(),
        args.server.verbosity(),
    );
    close_process_to_others()?;
    let (host, connector) = look_up(&config)?;
    forget_token(&config.token)?;
    let wrapper = Wrapper::current_exe().map_err(|source| {
        CliError::operation(WorkerError::Os {
            what: "find the running executable",
            source,
        })
    })?;
    let outcome = run::run(&config, host, wrapper, connector).map_err(CliError::operation)?;
    Ok(ExitCode::from(outcome.exit_code()))
}

fn file(args: &Args) -> Result<&Path, CliError> {
    let checked = args.check_config.as_ref().and_then(Option::as_ref);
    match (&args.config, checked) {
        (Some(file), None) | (None, Some(file)) => Ok(file),
        (Some(_), Some(_)) => Err(CliError::usage("the configuration file is given twice")),
        (None, None) => Err(CliError::usage("no configuration file is given")
            .hint("use `--config FILE --check-config` or `--check-config FILE`")),
    }
}

fn look_up(config: &WorkerConfig) -> Result<(Host, GateConnector), CliError> {
    let host = Host::look_up(config).map_err(CliError::config)?;
    let connector = run::connector(config, &host).map_err(CliError::config)?;
    Ok((host, connector))
}

/// Takes the token back out of the environment, where a plugin that runs as root would find it
/// in spite of a closed process. No thread runs yet.
fn forget_token(source: &TokenSource) -> Result<(), CliError> {
    let TokenSource::Env(name) = source else {
        return Ok(());
    };
    process_tree::forget_variable(name.as_ref()).map_err(|source| {
        CliError::operation(WorkerError::Os {
            what: "take the token out of the environment",
            source,
        })
    })
}

/// Closes `/proc/PID/environ` and the memory of this process, which hold the token, to plugins
/// and checks that run as the same user. What is started is not affected: it begins anew.
fn close_process_to_others() -> Result<(), CliError> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|errno| {
            CliError::operation(WorkerError::Os {
                what: "close this process to others of the same user",
                source: errno.into(),
            })
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// What another process of the same user reads of this one is decided by this flag.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_started_worker_is_closed_to_others() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        close_process_to_others().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}

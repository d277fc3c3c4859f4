//! `forge-gate`: its arguments, its signals, its exit code.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, Parser};
use cli_shell::logging::{self, LogFormat};
use cli_shell::{CliError, ServerOpts, Ui, clock, exit, service};
use gate_store::SqliteStore;
use tokio::runtime::Runtime;
use web_server::Signals;

use crate::config::GateConfig;
use crate::error::GateError;
use crate::log;
use crate::serve::{Gate, Host};

/// The control server: keeps the queue of tasks, leases them to Workers and
/// stores what they report. It runs nothing of a task itself.
#[derive(Debug, Parser)]
#[command(name = "forge-gate", version = cli_shell::version())]
struct Args {
    /// The configuration file (JSON)
    #[arg(long, value_name = "FILE", required_unless_present = "check_config")]
    config: Option<PathBuf>,
    /// Judge the configuration file alone and exit: 0 if it is good, 2 if not
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    check_config: Option<Option<PathBuf>>,
    /// With --check-config: also check tokens, certificate and listen address on this host
    #[arg(long, requires = "check_config")]
    live: bool,
    /// Copy the database of the configuration to a new file, check the copy and exit; a Gate may
    /// have it in use
    #[arg(
        long,
        value_name = "FILE",
        requires = "config",
        conflicts_with = "check_config"
    )]
    backup_to: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOpts,
}

/// The command line, for generated documentation.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program with these arguments, the program's own name first.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli_shell::main_with(args, |args: Args| run(&args))
}

fn run(args: &Args) -> Result<ExitCode, CliError> {
    let file = file(args)?;
    let config = cli_shell::config::load(file, GateConfig::read).map_err(CliError::config)?;
    if args.check_config.is_some() {
        return check(args, file, &config);
    }
    if let Some(copy) = &args.backup_to {
        return back_up(args, &config, copy);
    }
    serve(&config, &args.server)
}

fn file(args: &Args) -> Result<&Path, CliError> {
    match (
        &args.config,
        args.check_config.as_ref().and_then(Option::as_ref),
    ) {
        (Some(file), None) | (None, Some(file)) => Ok(file),
        (Some(_), Some(_)) => Err(CliError::usage("the configuration file is given twice")),
        (None, None) => Err(CliError::usage("no configuration file is given")
            .hint("use `--config FILE --check-config` or `--check-config FILE`")),
    }
}

fn check(args: &Args, file: &Path, config: &GateConfig) -> Result<ExitCode, CliError> {
    if args.live {
        runtime()?
            .block_on(Host::inspect(config))
            .map_err(CliError::config)?;
    }
    Ui::new(&args.server.terminal())
        .status(format!("configuration file `{}` is valid", file.display()));
    Ok(exit::ok())
}

fn back_up(args: &Args, config: &GateConfig, copy: &Path) -> Result<ExitCode, CliError> {
    let jobs = SqliteStore::back_up(&config.database, copy)
        .map_err(GateError::from)
        .map_err(CliError::operation)?;
    let copy = copy.display();
    Ui::new(&args.server.terminal())
        .status(format!("{jobs} jobs are in `{copy}`; the copy was checked"));
    Ok(exit::ok())
}

fn serve(config: &GateConfig, options: &ServerOpts) -> Result<ExitCode, CliError> {
    // A server's log is for machines unless somebody says otherwise.
    let format = match (options.log_format, config.log_format) {
        (Some(format), _) => format,
        (None, LogFormat::Auto) => LogFormat::Json,
        (None, format) => format,
    };
    logging::init(format, options.verbosity());
    log::startup(cli_shell::version());
    let passed = service::listener().map_err(GateError::Passed); // no thread runs yet
    let served = runtime()?.block_on(async {
        let (gate, mut signals) = match start(config, passed).await {
            Ok(started) => started,
            Err(error) => {
                log::startup_failed(error.startup_code());
                return Err(error);
            }
        };
        let stopping = gate.handle();
        let watcher = async move {
            signals.next().await;
            service::stopping();
            stopping.stop();
            std::future::pending::<()>().await;
        };
        service::ready(); // the kernel queues connections from here on
        tokio::select! {
            served = gate.serve() => served.inspect_err(log::failed),
            () = watcher => Ok(()),
        }
    });
    served.map_err(CliError::operation)?;
    log::stopped();
    Ok(exit::ok())
}

async fn start(
    config: &GateConfig,
    passed: Result<Option<TcpListener>, GateError>,
) -> Result<(Gate, Signals), GateError> {
    let signals = Signals::new().map_err(GateError::Runtime)?;
    let gate = Gate::start_on(config, Arc::new(clock::now), passed?).await?;
    Ok((gate, signals))
}

fn runtime() -> Result<Runtime, CliError> {
    Runtime::new()
        .map_err(GateError::Runtime)
        .map_err(CliError::operation)
}

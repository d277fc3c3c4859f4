//! `backplane serve`: its arguments, its signals, its exit code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use cli_shell::config::{Layer, Setting, load_toml};
use cli_shell::logging::{self, LogFormat};
use cli_shell::{CliError, Ui, clock, exit, service};
use tokio::runtime::Runtime;
use web_server::{Listen, Signals};

use crate::config::{DEFAULT_LISTEN, RegistryConfig};
use crate::error::RegistryError;
use crate::log;
use crate::serve::Registry;

/// Arguments of `backplane serve`; how much is logged is the program's `--verbose` or `--quiet`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The folder of the registry: its database, its artifacts, the administrator's token; needed to
    /// serve
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "check_config",
        conflicts_with = "check_config"
    )]
    pub root: Option<PathBuf>,
    /// The configuration file (TOML)
    #[arg(long, value_name = "FILE", conflicts_with = "check_config")]
    pub config: Option<PathBuf>,
    /// Where to listen, as `host:port` [default: that of the file, or 127.0.0.1:8790]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "check_config")]
    pub listen: Option<Listen>,
    /// Judge a configuration file alone and exit: 0 if it is good, 2 if not
    #[arg(long, value_name = "FILE")]
    pub check_config: Option<PathBuf>,
    /// The form of the log on standard error
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Log")]
    pub log_format: Option<LogFormat>,
}

/// Runs `backplane serve` until it is asked to stop; call it before any thread starts.
///
/// # Errors
/// The configuration is wrong, the registry cannot start, or it failed.
pub fn run(args: &ServeArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    if let Some(file) = &args.check_config {
        load(file)?;
        ui.status(format!("configuration file `{}` is valid", file.display()));
        return Ok(exit::ok());
    }
    let root = args
        .root
        .as_deref()
        .ok_or_else(|| CliError::usage("no folder is given for the registry; use `--root DIR`"))?;
    let config = args.config.as_deref().map(load).transpose()?;
    serve(root, &config.unwrap_or_default(), args, ui)
}

fn serve(
    root: &Path,
    config: &RegistryConfig,
    args: &ServeArgs,
    ui: &Ui,
) -> Result<ExitCode, CliError> {
    // A server's log is for machines unless somebody says otherwise.
    let format = match (args.log_format, config.log_format) {
        (Some(format), _) => format,
        (None, LogFormat::Auto) => LogFormat::Json,
        (None, format) => format,
    };
    logging::init(format, ui.verbosity());
    log::startup(cli_shell::version());
    let passed = service::listener().map_err(RegistryError::Passed); // no thread runs yet
    let listen = listen(args, config)?;
    let runtime = Runtime::new()
        .map_err(RegistryError::Runtime)
        .map_err(CliError::operation)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::new().map_err(RegistryError::Runtime)?;
        let clock = Arc::new(clock::now);
        let registry = Registry::start(root, config, &listen, clock, passed?).await?;
        if let Some(token) = registry.made_token() {
            log::token_made(token);
        }
        let stopping = registry.handle();
        let watcher = async move {
            signals.next().await;
            service::stopping();
            stopping.stop();
            std::future::pending::<()>().await;
        };
        service::ready(); // the kernel queues connections from here on
        tokio::select! {
            () = registry.serve() => {}
            () = watcher => {}
        }
        Ok(())
    });
    served
        .inspect_err(|error: &RegistryError| log::failed(error))
        .map_err(CliError::operation)?;
    log::stopped();
    Ok(exit::ok())
}

/// The flag, else the file, else the default.
fn listen(args: &ServeArgs, config: &RegistryConfig) -> Result<Listen, CliError> {
    let default: Listen = DEFAULT_LISTEN.parse().map_err(CliError::usage)?;
    let file = args.config.clone().unwrap_or_default();
    Ok(Setting::default_value(default)
        .or(Layer::File(file), config.listen.clone())
        .or(Layer::Flag("listen".to_owned()), args.listen.clone())
        .into_value())
}

fn load(file: &Path) -> Result<RegistryConfig, CliError> {
    load_toml(file, RegistryConfig::read).map_err(CliError::config)
}

//! `backplane serve`: its arguments, its signals, its exit code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cli_shell::config::load_toml;
use cli_shell::logging::LogFormat;
use cli_shell::{CliError, Ui, exit};
use web_server::Listen;

use crate::config::RegistryConfig;

/// Arguments of `backplane serve`; how much is logged is the program's `--verbose` or `--quiet`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The folder of the registry: its database, its artifacts, the administrator's token
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
    /// Where to listen, as `host:port`
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
    let _config = args.config.as_deref().map(load).transpose()?;
    Err(CliError::operation("this build serves no registry yet"))
}

fn load(file: &Path) -> Result<RegistryConfig, CliError> {
    load_toml(file, RegistryConfig::read).map_err(CliError::config)
}

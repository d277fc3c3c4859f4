//! The names of commands that other programs of this name have and this one does not.
//!
//! They are known so that a script that calls one learns in a line what it met, whatever the
//! arguments; they are in no help text.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cli_shell::CliError;

/// A command that is not here.
#[derive(Debug, Clone, Subcommand)]
pub enum Elsewhere {
    /// Trust bundles
    #[command(hide = true, disable_help_flag = true)]
    Trust(Anything),
    /// Evidence archives
    #[command(hide = true, disable_help_flag = true)]
    Evidence(Anything),
    /// Container images
    #[command(hide = true, disable_help_flag = true)]
    Image(Anything),
    /// Keyless identities
    #[command(hide = true, disable_help_flag = true)]
    Identity(Anything),
}

/// Arguments that nobody looks at.
#[derive(Debug, Clone, Args)]
pub struct Anything {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        hide = true,
        num_args = 0..
    )]
    _rest: Vec<OsString>,
}

impl Elsewhere {
    pub(crate) fn run(&self) -> Result<ExitCode, CliError> {
        let (name, instead) = match self {
            Self::Trust(_) => ("trust", "keys are trusted with `attest keys import`"),
            Self::Evidence(_) => (
                "evidence",
                "a receipt and its ledger are handed on with `attest causal export`",
            ),
            Self::Image(_) => ("image", "the signing of images is left to their own tools"),
            Self::Identity(_) => ("identity", "receipts are signed with `attest sign`"),
        };
        Err(CliError::usage(format!(
            "this attest has no command `{name}`: {instead}"
        )))
    }
}

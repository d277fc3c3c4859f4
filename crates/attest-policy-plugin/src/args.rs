//! The command line: nothing to speak the protocol, `check` for the authors of policies.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use cli_shell::GlobalOpts;

use crate::NAME;

const AFTER_HELP: &str = "\
Without a command it speaks attest-plugin/1 on standard input and output, as \
`attest run` starts it. Declare it in .attest/plugins.toml:

  schema_version = 1

  [[plugin]]
  name = \"policy\"
  command = \"attest-policy\"
  digest = \"\"    # filled in by `attest plugins pin policy`
  protocol = \"1\"
  hooks = [
    \"pipeline.validate\", \"step.pre\", \"step.post\", \"receipt.finalize\"
  ]
  deterministic = true

The policy is .attest/policy.toml, or the file below the workspace that the \
plugin's own variable POLICY_FILE names (env = { POLICY_FILE = \"...\" }).

Exit codes:
  0  the core said that the run is over; or the policy denies nothing
  1  the core broke the protocol or left; or `check` found a denial
  2  usage, or there is no policy that can be read";

/// Judges runs of attest by a policy file: the reference plugin of attest-plugin/1.
#[derive(Debug, Parser)]
#[command(
    name = NAME,
    version = cli_shell::version(),
    max_term_width = 80,
    after_help = AFTER_HELP
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalOpts,
    #[command(subcommand)]
    pub(crate) command: Option<Commands>,
}

/// What there is to do beside speaking the protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum Commands {
    Check(Check),
}

/// Says in words what a policy asks for, and judges a pipeline or a receipt by it.
///
/// A pipeline is judged as before its run (`pipeline.validate`), a receipt as before its
/// signature (`receipt.finalize`). Nothing is run, and no signature is looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The policy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Judge this pipeline too
    #[arg(long, value_name = "PIPELINE")]
    pub(crate) pipeline: Option<PathBuf>,
    /// Judge this receipt too
    #[arg(long, value_name = "RECEIPT")]
    pub(crate) receipt: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn verify_cli() {
        Args::command().debug_assert();
    }
}

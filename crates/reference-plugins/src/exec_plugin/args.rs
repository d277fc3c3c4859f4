//! The command line: options of the plugin, then the command and everything that belongs to it.

use std::ffi::OsString;

use clap::{Parser, ValueEnum};
use process_tree::Signal;

use super::NAME;

const AFTER_HELP: &str = "\
Serves one `workspace_edit` operation on standard input and output and exits. CMD \
runs with the workspace as its working directory, the instruction on standard \
input and this program's environment, plus:
  FORGE_WORKSPACE     the workspace
  FORGE_SUBJECT_FILE  where CMD may write the commit subject: one line, up to 256 bytes
  FORGE_REPORT_FILE   where CMD may write {\"summary\":TEXT,\"changes\":[TEXT,...]}

The two files lie in a private directory outside the workspace and do not exist \
when CMD starts. A CMD by relative path is looked for from where this program was \
started, never in the workspace. Standard output of CMD is discarded. CMD fails if \
it exits non-zero, takes longer than the operation allows, or writes a malformed \
file; the reason and the end of its standard error go to standard error. Whatever \
it started is gone before the operation is answered.

Exit codes:
  0  the operation was answered, with a result or a failure
  2  the peer broke the protocol, or the arguments are wrong

Example:
  forge-exec-plugin -- ./agent.sh --quiet";

/// Any command as a workspace plugin of the forge plugin protocol v1
#[derive(Debug, Parser)]
#[command(
    name = NAME,
    version = cli_shell::version(),
    override_usage = "forge-exec-plugin [OPTIONS] -- CMD [ARG]...",
    after_help = AFTER_HELP
)]
pub(super) struct Args {
    /// The signal that asks CMD to stop when the operation is cancelled
    #[arg(
        long,
        value_enum,
        default_value_t,
        ignore_case = true,
        value_name = "SIGNAL"
    )]
    pub(super) signal: AskSignal,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, num_args = 1.., trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
}

/// A signal that asks, in the spelling of kill(1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum AskSignal {
    /// Interrupt, as Ctrl-C sends it
    #[default]
    #[value(name = "INT", alias = "SIGINT")]
    Int,
    /// Terminate
    #[value(name = "TERM", alias = "SIGTERM")]
    Term,
    /// Hang up
    #[value(name = "HUP", alias = "SIGHUP")]
    Hup,
}

impl From<AskSignal> for Signal {
    fn from(signal: AskSignal) -> Self {
        match signal {
            AskSignal::Int => Self::Interrupt,
            AskSignal::Term => Self::Terminate,
            AskSignal::Hup => Self::Hangup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        let args = line.split(' ').map(OsString::from);
        Args::try_parse_from(cli_shell::normalize_args(&Args::command(), args))
    }

    #[test]
    fn verify_cli() {
        Args::command().debug_assert();
    }

    #[test]
    fn everything_after_the_command_is_its_own() {
        let args = parse("tool --signal TERM -- cmd --signal HUP -x").unwrap();
        assert_eq!(args.signal, AskSignal::Term);
        assert_eq!(args.command, ["cmd", "--signal", "HUP", "-x"]);
        assert_eq!(
            parse("tool cmd -signal HUP").unwrap().command,
            ["cmd", "-signal", "HUP"]
        );
        assert_eq!(parse("tool -- cmd").unwrap().signal, AskSignal::Int);
    }

    #[test]
    fn a_command_is_needed_and_the_signal_is_one_that_asks() {
        assert!(parse("tool").is_err());
        assert!(parse("tool --").is_err());
        assert!(parse("tool --signal KILL cmd").is_err());
        assert_eq!(
            parse("tool -signal=sigterm cmd").unwrap().signal,
            AskSignal::Term
        );
    }
}

//! The command line, which has no options of its own: the environment says what there is to say.

use clap::Parser;

use super::NAME;

const AFTER_HELP: &str = "\
Serves one `workspace_edit` operation on standard input and output and exits. The \
Codex CLI is run as `codex exec` in its `workspace-write` sandbox, with the task on \
standard input, and this program's environment. Variables:
  CODEX_BIN   the CLI, a path or a name to look up in PATH (default: codex)
  CODEX_HOME  the CLI's own: its configuration and credentials
  TMPDIR      where the private directory of a run is made, outside the workspace

What the CLI prints is discarded. The operation fails with `execution_failed` if the \
CLI exits non-zero or takes longer than the operation allows, if its last message \
does not say subject, summary and changes, or if HEAD of the workspace is not \
where it was; the reason goes to standard error. Cancelled, the CLI gets an interrupt \
and 150 ms, and is killed then. Whatever it started is gone before the operation is \
answered.

Exit codes:
  0  the operation was answered, with a result or a failure
  2  the peer broke the protocol, or the arguments are wrong";

/// The Codex CLI as a workspace plugin of the forge plugin protocol v1
#[derive(Debug, Parser)]
#[command(name = NAME, version = cli_shell::version(), after_help = AFTER_HELP)]
pub(super) struct Args {}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn verify_cli() {
        Args::command().debug_assert();
    }

    #[test]
    fn arguments_are_refused() {
        assert!(Args::try_parse_from(["tool", "exec"]).is_err());
    }
}

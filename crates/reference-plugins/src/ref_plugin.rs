//! `forge-ref-plugin`: the smallest whole plugin. Text in, the same text in upper case out.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use forge_plugin_kit::Plugin;

/// The name of the program.
pub const NAME: &str = "forge-ref-plugin";

const PREFIX: &str = "FORGE: ";

const AFTER_HELP: &str = "\
Serves one `text` operation on standard input and output and exits: the result is \
`FORGE: ` and the input in Unicode upper case. A result over 65,536 bytes is \
answered with the failure `execution_failed`.

Exit codes:
  0  the operation was answered, with a result or a failure
  2  the peer broke the protocol, or the arguments are wrong";

/// The reference text plugin of the forge plugin protocol v1
#[derive(Debug, Parser)]
#[command(name = NAME, version = cli_shell::version(), after_help = AFTER_HELP)]
struct Args {}

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program.
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    let name = args.next();
    // A host passes no arguments; it is not made to wait for the command line's definition.
    if args.peek().is_some()
        && let Err(code) = cli_shell::parse::<Args>(name.into_iter().chain(args))
    {
        return code;
    }
    Plugin::new(NAME)
        .text(|input, _context| Ok(shout(&input)))
        .serve()
}

fn shout(input: &str) -> String {
    format!("{PREFIX}{}", input.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_cli() {
        command().debug_assert();
    }

    #[test]
    fn upper_case_goes_by_unicode() {
        assert_eq!(shout("Größe ǆ ŉ"), "FORGE: GRÖSSE Ǆ ʼN");
        assert_eq!(shout(""), "FORGE: ");
    }
}

//! From the arguments to the exit code: the frame around every `main`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as ClapErrorKind;

use crate::error::{CliError, ErrorKind};
use crate::{exit, generate, normalize_args, ui};

/// Parses the arguments, runs the body and reports its error: a whole `main`.
pub fn main_with<P: Parser>(
    args: impl IntoIterator<Item = OsString>,
    body: impl FnOnce(P) -> Result<ExitCode, CliError>,
) -> ExitCode {
    match parse::<P>(args) {
        Ok(parsed) => run(|| body(parsed)),
        Err(code) => code,
    }
}

/// Parses the arguments after [`normalize_args`]; help, version, `--generate` and usage errors
/// are answered here.
///
/// # Errors
/// The code with which to exit at once: 0 after help, version or generated text, 2 on bad usage.
pub fn parse<P: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<P, ExitCode> {
    let mut command = P::command();
    let args = normalize_args(&command, args);
    if let Some(code) = generate::maybe(&command, &args) {
        return Err(code);
    }
    command
        .try_get_matches_from_mut(args)
        .and_then(|mut matches| P::from_arg_matches_mut(&mut matches))
        .map_err(|error| answer(&error))
}

/// Runs a body and turns its error into a message, hints and the exit code.
pub fn run(body: impl FnOnce() -> Result<ExitCode, CliError>) -> ExitCode {
    match body() {
        Ok(code) => code,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                ui::report(&error);
            }
            ExitCode::from(error.kind().exit_code())
        }
    }
}

/// Prints what clap has to say and returns the code that goes with it.
fn answer(error: &clap::Error) -> ExitCode {
    let asked = matches!(
        error.kind(),
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion
    );
    match error.print() {
        Ok(()) if asked => exit::ok(),
        Ok(()) => exit::failed(),
        Err(cause) => {
            let cause = CliError::output(cause);
            if cause.kind() == ErrorKind::BrokenPipe && asked {
                return exit::ok();
            }
            // What was wrong with the usage has nowhere left to be said.
            if asked {
                ui::report(&cause);
            }
            exit::failed()
        }
    }
}

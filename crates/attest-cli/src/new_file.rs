//! A file that a command was asked to write: replaced as a whole, and only if it is a file.

use std::path::Path;

use cli_shell::{CliError, Format, Ui};
use safe_fs::SafeFsError;

use crate::guard::Guard;
use crate::prerequisite::Rule;

const MODE: u32 = 0o644;

/// Tells whether a name means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Standard output has room for what was made or for a record of it.
pub(crate) fn json_needs_a_file(ui: &Ui, to_stdout: bool) -> Rule {
    Rule {
        option: "--format json",
        given: ui.format() == Format::Json,
        requires: "a file as --output",
        met: !to_stdout,
        why: "standard output gets what is made, and no record fits beside it",
    }
}

/// Finds out before the work that the file could not be written.
pub(crate) fn check(path: &Path, what: &str, guard: &Guard) -> Result<(), CliError> {
    let refused = |error: CliError| error.because(format!("the {what} cannot be written"));
    guard.check(path).map_err(refused)?;
    safe_fs::writable_target(path)
        .map(drop)
        .map_err(|error| failed(error, what))
}

/// Writes the file, or the one that a link in its place leads to.
pub(crate) fn write(path: &Path, bytes: &[u8], what: &str, guard: &Guard) -> Result<(), CliError> {
    check(path, what, guard)?;
    safe_fs::write_target(path, bytes, MODE).map_err(|error| failed(error, what))
}

fn failed(error: SafeFsError, what: &str) -> CliError {
    CliError::operation(error).because(format!("the {what} cannot be written"))
}

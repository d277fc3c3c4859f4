//! A file that a command was asked to write: replaced as a whole, and only if it is a file.

use std::path::Path;

use cli_shell::CliError;
use safe_fs::SafeFsError;

use crate::guard::Guard;

const MODE: u32 = 0o644;

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

//! A file that a command was asked to write: replaced as a whole, and only if it is a file.

use std::path::Path;

use cli_shell::CliError;
use safe_fs::SafeFsError;

const MODE: u32 = 0o644;

/// Finds out before the work that the file could not be written.
pub(crate) fn check(path: &Path, what: &str) -> Result<(), CliError> {
    safe_fs::writable_target(path)
        .map(drop)
        .map_err(|error| failed(error, what))
}

/// Writes the file, or the one that a link in its place leads to.
pub(crate) fn write(path: &Path, bytes: &[u8], what: &str) -> Result<(), CliError> {
    safe_fs::write_target(path, bytes, MODE).map_err(|error| failed(error, what))
}

fn failed(error: SafeFsError, what: &str) -> CliError {
    CliError::operation(error).because(format!("the {what} cannot be written"))
}

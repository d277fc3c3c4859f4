//! A file that a command was asked to write: replaced as a whole, and only if it is a file.

use std::path::Path;

use cli_shell::CliError;

const MODE: u32 = 0o644;

/// Writes the file. A link leads to the file that is replaced; a device or pipe is not one, and
/// renaming over it would take it away from everybody else.
pub(crate) fn write(path: &Path, bytes: &[u8], what: &str) -> Result<(), CliError> {
    let failed = |error: CliError| error.because(format!("the {what} cannot be written"));
    let found = fs_err::metadata(path);
    if found.is_ok_and(|found| !found.is_file()) {
        let name = path.display();
        return Err(failed(CliError::operation(format!(
            "`{name}` is not a regular file"
        ))));
    }
    let target = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    safe_fs::write_atomic(&target, bytes, MODE).map_err(|error| failed(CliError::operation(error)))
}

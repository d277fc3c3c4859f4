//! The exit codes that all programs share, in one table.
//!
//! A program with further codes lists them in its `after_help`; nothing else decides a code.

use std::process::ExitCode;

/// The number for "yes" or "done".
pub const OK_CODE: u8 = 0;
/// The number for "the answer is no".
pub const NO_CODE: u8 = 1;
/// The number for "usage, configuration or the operation itself failed".
pub const FAILED_CODE: u8 = 2;

/// What each shared exit code means, in ascending order; printed by the generated reference.
pub const TABLE: &[(u8, &str)] = &[
    (OK_CODE, "success, or the answer is yes"),
    (NO_CODE, "the work was done and the answer is no"),
    (FAILED_CODE, "usage, configuration or the operation failed"),
];

/// Returns the code of success.
#[must_use]
pub fn ok() -> ExitCode {
    ExitCode::from(OK_CODE)
}

/// Returns the code of an honest "no".
#[must_use]
pub fn no() -> ExitCode {
    ExitCode::from(NO_CODE)
}

/// Returns the code of a failed operation.
#[must_use]
pub fn failed() -> ExitCode {
    ExitCode::from(FAILED_CODE)
}

//! Watches over the commands that the tests of this crate run; it does nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    process_tree::run_wrapper_if_asked().unwrap_or(ExitCode::FAILURE)
}

//! `attest` itself, for the tests of this package: it starts the plugins as a user's does.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    attest_cli::main_from(std::env::args_os())
}

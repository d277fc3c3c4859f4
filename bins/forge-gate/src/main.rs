//! The control server.

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::main_from(std::env::args_os())
}

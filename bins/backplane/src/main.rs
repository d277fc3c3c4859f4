//! The `backplane` command. It parses nothing and decides nothing; the library does.

use std::process::ExitCode;

fn main() -> ExitCode {
    backplane_cli::main_from(std::env::args_os())
}

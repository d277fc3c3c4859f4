//! The reference text plugin. It parses nothing and decides nothing; the library does.

use std::process::ExitCode;

fn main() -> ExitCode {
    reference_plugins::ref_plugin::main_from(std::env::args_os())
}

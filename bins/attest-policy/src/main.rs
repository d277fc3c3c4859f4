//! The reference plugin of attest-plugin/1. It parses nothing and decides nothing; the library does.

use std::process::ExitCode;

fn main() -> ExitCode {
    attest_policy_plugin::main_from(std::env::args_os())
}

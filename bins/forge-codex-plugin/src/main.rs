//! The Codex CLI as a workspace plugin. It parses nothing and decides nothing; the library does.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    reference_plugins::codex_plugin::main_from(std::env::args_os())
}

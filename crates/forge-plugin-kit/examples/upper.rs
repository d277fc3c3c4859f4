//! A text plugin: the answer is the input in upper case.
//!
//! Try it: `cargo build --example upper`, then
//! `forge-plugin-conformance target/debug/examples/upper`.

use std::process::ExitCode;

use forge_plugin_kit::{Failure, serve_text};

fn main() -> ExitCode {
    serve_text(|input, _context| {
        if input.trim().is_empty() {
            return Err(Failure::invalid_request(
                "there is nothing to put into upper case",
            ));
        }
        Ok(input.to_uppercase())
    })
}

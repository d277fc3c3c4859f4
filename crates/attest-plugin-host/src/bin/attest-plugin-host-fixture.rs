//! The program that the tests of this crate run, and their process wrapper.
//!
//! It is built with the package, yet belongs to no product.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    ExitCode::SUCCESS
}

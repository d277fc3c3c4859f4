//! Prints the hash of the output manifest of some paths: what `docs/performance.md` times.
//!
//! `hash_tree WORKSPACE [--manifest] [--threads N] PATH...`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example says what it found"
)]

use std::{path::PathBuf, process::ExitCode};

use tree_manifest::Options;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let workspace = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let mut options = Options::default();
    let mut whole = false;
    let mut declared = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--manifest" => whole = true,
            "--threads" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                options.threads = number.unwrap_or(0);
            }
            _ => declared.push(argument),
        }
    }
    match tree_manifest::outputs(&workspace, &declared, &options) {
        Ok(manifest) if whole => print!("{}", manifest.text()),
        Ok(manifest) => println!("{}", manifest.hash()),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

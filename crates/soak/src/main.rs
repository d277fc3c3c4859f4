//! Runs a Gate and two Workers, gives them work, kills and stops them at random, and judges at the
//! end what is left: over HTTP, in the database, in the repositories and among the processes.
//!
//! It uses no crate of the appliance: a mistake there cannot hide itself here. `cargo xtask soak`
//! builds the programs and runs it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test tool starts programs, waits in real time and talks to a person"
)]

use std::process::ExitCode;

mod args;
mod faults;
mod host;
mod http;
mod judge;
mod owner;
mod place;
mod programs;
mod random;
mod report;
mod run;
mod signals;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match args::parse(&words) {
        Ok(options) => options,
        Err(reason) => {
            eprint!("soak: {reason}\n\n{}", args::HELP);
            return ExitCode::from(2);
        }
    };
    match run::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::from(2)
        }
    }
}

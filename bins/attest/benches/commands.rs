//! How long whole commands take, the start of the process included.
//!
//! Prints medians in milliseconds: the bare start (`--version`), `verify` of a signed receipt of
//! three steps, `run` of a step that does nothing outside of a git checkout. `ATTEST_PEER` names another
//! `attest` that takes turns with this one. Run it on a quiet machine: `cargo bench -p attest`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench starts what it measures, prints what it found and may fail by panicking"
)]
#![allow(
    dead_code,
    reason = "the bed of the tests has more than is needed here"
)]

#[path = "../tests/it/bed.rs"]
mod bed;

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bed::Bed;

const ROUNDS: usize = 200;

const PIPELINE: &str = "version: \"1.0\"\nsteps:\n  nothing:\n    run: \":\"\n    cache: false\n";

const COMMANDS: [(&str, &[&str]); 3] = [
    ("start", &["--version"]),
    (
        "verify",
        &[
            "verify",
            "--trust-store",
            "trust",
            "r1_pipeline_signed.yaml",
        ],
    ),
    ("run", &["-q", "run"]),
];

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let bed = Bed::with_vectors();
    bed.write("attest.yaml", PIPELINE);
    std::fs::create_dir_all(bed.path(".attest/receipts")).unwrap();
    let mut programs = vec![("ours", OsString::from(env!("CARGO_BIN_EXE_attest")))];
    programs.extend(std::env::var_os("ATTEST_PEER").map(|peer| ("peer", peer)));
    println!("{ROUNDS} rounds, medians (and the fastest) in ms");
    for (name, args) in COMMANDS {
        let mut times = vec![Vec::with_capacity(ROUNDS); programs.len()];
        for _ in 0..ROUNDS {
            // In turns, so that what else the machine does meets both.
            for ((_, program), times) in programs.iter().zip(&mut times) {
                let mut command = Command::new(program);
                command.args(args).current_dir(bed.folder());
                times.push(timed(&mut command));
            }
        }
        for ((whose, _), mut times) in programs.iter().zip(times) {
            times.sort();
            let [fastest, median] = [0, ROUNDS / 2].map(|at| times.get(at).copied());
            println!("{name:7} {whose:5} {:7.2} ({:.2})", ms(median), ms(fastest));
        }
    }
}

fn timed(command: &mut Command) -> Duration {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().unwrap();
    let took = start.elapsed();
    assert!(status.success(), "{command:?}");
    took
}

fn ms(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

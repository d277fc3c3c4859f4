//! What consulting a plugin costs: a pipeline of 100 steps that do nothing, without a plugin, with one
//! that is asked once, and with one that is asked at every hook.
//!
//! The plugin is this very program, told apart by a variable that its declaration sets; it allows
//! everything. Prints medians in milliseconds and what one request costs. Run it on a quiet
//! machine: `cargo bench -p attest --bench plugins`.
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

use std::fmt::Write as _;
use std::io::{stdin, stdout};
use std::process::{Command, Stdio};
use std::time::Instant;

use attest_plugin_protocol::{Announcement, Hook, Payload, Plugin, Verdict, serve};

use crate::bed::Bed;

const ROUNDS: usize = 40;
const STEPS: u32 = 100;
/// `pipeline.validate` and `receipt.finalize` once, two for each step.
const REQUESTS: u32 = 2 + 2 * STEPS;

/// Says that this process is the plugin, and where it leaves a line for each time it is started.
const STARTS: &str = "BENCH_STARTS";
const PLUGINS: &str = ".attest/plugins.toml";

struct Allow;

impl Plugin for Allow {
    fn hello(&mut self, _attest_version: &str) -> Result<Announcement, String> {
        let name = "allow".parse().map_err(|_| "no name")?;
        Ok(Announcement::new(name, "1", &Hook::ALL, true))
    }

    fn judge(&mut self, _payload: &Payload) -> Verdict {
        Verdict::allow()
    }
}

fn main() {
    if let Some(starts) = std::env::var_os(STARTS) {
        let line = format!("{}\n", std::process::id());
        let mut text = std::fs::read_to_string(&starts).unwrap_or_default();
        text.push_str(&line);
        std::fs::write(&starts, text).unwrap();
        return serve(&mut Allow, stdin().lock(), stdout().lock()).unwrap();
    }
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", pipeline());
    let program = std::env::current_exe().unwrap();
    let digest = blake3::hash(&std::fs::read(&program).unwrap()).to_hex();
    let declared = |hooks: &[Hook]| {
        let hooks: Vec<String> = hooks
            .iter()
            .map(|hook| format!("{:?}", hook.as_str()))
            .collect();
        format!(
            "schema_version = 1\n[[plugin]]\nname = \"allow\"\ncommand = {:?}\n\
             digest = \"blake3:{digest}\"\nprotocol = \"1\"\nhooks = [{}]\ndeterministic = true\n\
             env = {{ {STARTS} = \"starts\" }}\n",
            program.to_str().unwrap(),
            hooks.join(", ")
        )
    };
    let kinds = [
        ("no plugin", None),
        ("asked once", Some(declared(&[Hook::ReceiptFinalize]))),
        ("asked always", Some(declared(&Hook::ALL))),
    ];
    let mut times = vec![Vec::with_capacity(ROUNDS); kinds.len()];
    for _ in 0..ROUNDS {
        // In turns, so that what else the machine does meets all.
        for ((_, text), times) in kinds.iter().zip(&mut times) {
            match text {
                Some(text) => drop(bed.write(PLUGINS, text)),
                None => std::fs::remove_file(bed.path(PLUGINS)).unwrap_or_default(),
            }
            std::fs::remove_file(bed.path("starts")).unwrap_or_default();
            times.push(timed(&bed));
            let starts = std::fs::read_to_string(bed.path("starts")).unwrap_or_default();
            assert_eq!(starts.lines().count(), usize::from(text.is_some()));
        }
    }
    println!("{STEPS} steps, {ROUNDS} rounds, medians (and the fastest) in ms");
    let [none, once, always] = times.try_into().unwrap();
    for ((name, _), times) in kinds.iter().zip([&none, &once, &always]) {
        println!(
            "{name:13} {:8.2} ({:.2})",
            median(times.clone()),
            fastest(times)
        );
    }
    let asked = f64::from(REQUESTS);
    let between = |less: &[f64], more: &[f64], requests: f64| {
        // Of pairs, since a machine is seldom quiet for long.
        let pairs = less.iter().zip(more).map(|(less, more)| more - less);
        let [pairs, best] = [median(pairs.collect()), fastest(more) - fastest(less)];
        format!("{:.3} ms ({:.3})", pairs / requests, best / requests)
    };
    println!(
        "start, first request and end: {}",
        between(&none, &once, 1.0)
    );
    println!(
        "a further request: {}",
        between(&once, &always, asked - 1.0)
    );
    println!(
        "a request with its share of the start: {}",
        between(&none, &always, asked)
    );
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn pipeline() -> String {
    let mut text = "version: \"1.0\"\nsteps:\n".to_owned();
    for number in 0..STEPS {
        let _ = writeln!(text, "  s{number:03}: {{run: \":\", cache: false}}");
    }
    text
}

fn timed(bed: &Bed) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attest"));
    command
        .args(["-q", "run"])
        .current_dir(bed.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().unwrap();
    let took = start.elapsed();
    assert!(status.success(), "{command:?}");
    took.as_secs_f64() * 1000.0
}

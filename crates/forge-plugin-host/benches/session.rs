//! What a plugin session costs above the bare start and end of the same executable.
//!
//! Sessions and bare starts take turns, so that a change of the machine's load meets both. The
//! host is measured with 64 MiB and with 1 GiB of resident memory, since a fork would pay for
//! that. `-- --rounds N` sets the number of turns.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench measures real time, starts a bare process and prints a table"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use forge_plugin_host::{PluginCommand, RunLimits, run};
use forge_plugin_protocol::{Capability, Operation};
use process_tree::{Capture, Spec, Wrapper, capture, capture_direct};
use tokio_util::sync::CancellationToken;

const FIXTURE: &str = env!("CARGO_BIN_EXE_forge-plugin-host-fixture");
const MIB: usize = 1 << 20;

fn main() {
    let mut arguments = std::env::args()
        .skip_while(|word| word != "--rounds")
        .skip(1);
    let rounds = arguments.next().map_or(400, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    println!("host MiB | figure | bare | direct | wrapped | session | session above bare, ms");
    for (resident, bar) in [(64, 2.0), (1024, 2.5)] {
        let ballast = vec![1_u8; resident * MIB];
        // On a worker thread, where a program that serves would run it.
        let times = runtime.block_on(runtime.spawn(measure(rounds))).unwrap();
        // Read it, so that it stays.
        assert!(ballast.iter().step_by(4096).all(|byte| *byte == 1));
        for (figure, part) in [("p10", 0.1), ("median", 0.5), ("p90", 0.9)] {
            let [bare, direct, wrapped, session] = [0, 1, 2, 3].map(|kind| {
                let kind = times.get(kind).unwrap();
                let rank = (kind.len() - 1) as f64 * part;
                kind.get(rank as usize).unwrap().as_secs_f64() * 1_000.0
            });
            let above = session - bare;
            let verdict = match figure {
                "median" if above <= bar => format!(" (bar {bar}: within)"),
                "median" => format!(" (bar {bar}: OVER)"),
                _ => String::new(),
            };
            println!(
                "{resident:8} | {figure:6} | {bare:4.2} | {direct:6.2} | {wrapped:7.2} | {session:7.2} | {above:4.2}{verdict}"
            );
        }
    }
}

/// Sorted times of a bare start, a direct and a wrapped capture, and a session.
async fn measure(rounds: usize) -> [Vec<Duration>; 4] {
    let wrapper = Wrapper::new(FIXTURE);
    let none = CancellationToken::new();
    let limits = Capture::new(Duration::from_secs(10), 1_000);
    let mut times = [(); 4].map(|()| Vec::new());
    for _ in 0..rounds {
        let [bare, direct, wrapped, session] = &mut times;
        let since = Instant::now();
        let mut child = Command::new(FIXTURE)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success());
        bare.push(since.elapsed());

        let since = Instant::now();
        let done = capture_direct(Spec::new([FIXTURE]), limits.clone(), &none).await;
        assert!(done.unwrap().exit.is_success());
        direct.push(since.elapsed());

        let since = Instant::now();
        let done = capture(&wrapper, Spec::new([FIXTURE]), limits.clone(), &none).await;
        assert!(done.unwrap().exit.is_success());
        wrapped.push(since.elapsed());

        let since = Instant::now();
        one_session(&wrapper).await;
        session.push(since.elapsed());
    }
    for kind in &mut times {
        kind.sort_unstable();
    }
    times
}

async fn one_session(wrapper: &Wrapper) {
    let command = PluginCommand {
        argv: [FIXTURE, "init", "text", "read", "result", "ok"]
            .map(str::to_owned)
            .to_vec(),
        env: Vec::new(),
        cwd: None,
    };
    let limits = RunLimits {
        timeout: Duration::from_secs(10),
        output_bytes: 10_000,
    };
    let operation = Operation::text("hello").unwrap();
    let none = CancellationToken::new();
    let offer = [Capability::Text];
    run(
        wrapper,
        &command,
        &operation,
        &offer,
        &limits,
        &none,
        &mut |_| {},
    )
    .await
    .unwrap();
}

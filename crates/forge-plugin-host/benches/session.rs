//! What a plugin session costs above the bare start and end of the same executable.
//!
//! Sessions and bare starts take turns, so that a change of the machine's load meets both. The
//! host is measured with 64 MiB and with 1 GiB of resident memory, since a fork would pay for
//! that. `-- --rounds N` sets the number of turns.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
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
    println!("host MiB | bare ms | direct ms | wrapped ms | session ms | session above bare | bar");
    for (resident, bar) in [(64, 2.0), (1024, 2.5)] {
        let ballast = vec![1_u8; resident * MIB];
        let medians = runtime.block_on(measure(rounds));
        // Read it, so that it stays.
        assert_eq!(
            ballast
                .iter()
                .step_by(4096)
                .map(|b| usize::from(*b))
                .sum::<usize>(),
            ballast.len() / 4096
        );
        let [bare, direct, wrapped, session] = medians.map(|d| d.as_secs_f64() * 1_000.0);
        let above = session - bare;
        let verdict = if above <= bar { "within" } else { "OVER" };
        println!(
            "{resident:8} | {bare:7.2} | {direct:9.2} | {wrapped:10.2} | {session:10.2} | {above:18.2} | {bar} {verdict}"
        );
    }
}

/// Medians of a bare start, a direct and a wrapped capture, and a session.
async fn measure(rounds: usize) -> [Duration; 4] {
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
    times.map(|mut times| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    })
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

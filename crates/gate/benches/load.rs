//! Jobs per second, lease latency and memory of a Gate under a real load: HTTP
//! submissions and WebSocket Workers on loopback, the database on disk.
//!
//! `cargo bench -p gate --bench load -- [--jobs N] [--dir DIR] [--control]`
//!
//! With `--control` the Workers offer job control.
//! The Gate runs as a child process of its own, so that its memory is its own.
//! Every run is bounded in jobs and in time.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench measures the clock, starts the Gate as a child and fails loudly"
)]

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

const OWNER: &str = "bench-owner-token";
const WORKER: &str = "bench-worker-token";
const SUBMITTERS: usize = 32;
const LATENCY_SAMPLES: usize = 200;
const TIME_LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == "--serve") {
        return gate::main_from([args[0].clone(), "--config".into(), args[2].clone()]);
    }
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)
            .and_then(|value| value.to_str())
            .map(str::to_owned)
    };
    // Without `--bench` (a test run) a few jobs prove that it works.
    let measured = args.iter().any(|arg| arg == "--bench");
    let jobs = value("--jobs").map_or(if measured { 20_000 } else { 100 }, |jobs| {
        jobs.parse().unwrap()
    });
    let control = args.iter().any(|arg| arg == "--control");
    let dir = value("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for slots in [200, 16] {
        runtime.block_on(async {
            tokio::time::timeout(TIME_LIMIT, measure(&dir, slots, jobs, control))
                .await
                .expect("within the time limit");
        });
    }
    ExitCode::SUCCESS
}

async fn measure(dir: &Path, slots: usize, jobs: usize, control: bool) {
    let gate = Running::start(dir, slots);
    let finished = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(Notify::new());
    let (leased, mut leases) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for slot in 0..slots {
        let socket = connect(&gate.address, slot, control).await;
        tasks.spawn(work(
            socket,
            Arc::clone(&finished),
            Arc::clone(&done),
            jobs,
            leased.clone(),
        ));
    }
    let idle_kib = gate.resident_kib();

    let mut latencies = Vec::new();
    let mut client = Client::connect(&gate.address).await;
    for _ in 0..LATENCY_SAMPLES.min(jobs) {
        let start = Instant::now();
        client.submit().await;
        let at: Instant = leases.recv().await.unwrap();
        latencies.push(at.saturating_duration_since(start));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    latencies.sort();
    finished.store(0, Ordering::SeqCst);

    let left = Arc::new(AtomicUsize::new(jobs));
    let (start, cpu) = (Instant::now(), gate.cpu());
    for _ in 0..SUBMITTERS {
        let mut client = Client::connect(&gate.address).await;
        let left = Arc::clone(&left);
        tasks.spawn(async move {
            let one_less = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok()
            {
                client.submit().await;
            }
        });
    }
    done.notified().await;
    let elapsed = start.elapsed();
    // On a loaded machine this tells more than the time that passed.
    let cpu = gate.cpu() - cpu;
    println!(
        "slots={slots} jobs={jobs} control={control} seconds={:.2} jobs_per_second={:.0} gate_cpu_us_per_job={:.0} lease_p50_us={} lease_p99_us={} idle_kib={idle_kib} peak_kib={}",
        elapsed.as_secs_f64(),
        jobs as f64 / elapsed.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / jobs as f64,
        latencies[latencies.len() / 2].as_micros(),
        latencies[latencies.len() * 99 / 100].as_micros(),
        gate.peak_kib(),
    );
    tasks.shutdown().await;
}

/// Ends every lease at once.
async fn work(
    mut socket: WebSocketStream<TcpStream>,
    finished: Arc<AtomicUsize>,
    done: Arc<Notify>,
    jobs: usize,
    leased: mpsc::UnboundedSender<Instant>,
) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        if let Some(n) = text.strip_prefix("{\"type\":\"ping\",") {
            let pong = format!("{{\"type\":\"pong\",{n}");
            socket.send(Message::text(pong)).await.unwrap();
        } else if text.contains("\"type\":\"lease\"") {
            leased.send(Instant::now()).ok();
            let id = |name: &str| {
                let at = text.find(name).unwrap() + name.len();
                &text[at..at + 32]
            };
            let (job, attempt) = (id("\"job_id\":\""), id("\"attempt_id\":\""));
            let result = format!(
                "{{\"type\":\"result\",\"job_id\":\"{job}\",\"attempt_id\":\"{attempt}\",\"result\":\"ok\"}}\n"
            );
            socket.send(Message::text(result)).await.unwrap();
        } else if text.starts_with("{\"type\":\"ack\"") {
            if finished.fetch_add(1, Ordering::SeqCst) + 1 == jobs {
                done.notify_one();
            }
        } else {
            panic!("{text}");
        }
    }
}

async fn connect(address: &str, slot: usize, control: bool) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (worker, slot) = (slot / 50, slot % 50);
    let offer = if control {
        "&control_version=job_control%2Fv1"
    } else {
        ""
    };
    let url = format!("ws://{address}/v1/workers/connect?worker_id=w{worker}&slot={slot}{offer}");
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {WORKER}-{worker}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    // Small messages: with the default of 128 KiB the clearing of buffers is most of the load's work.
    let config = WebSocketConfig::default().read_buffer_size(4096);
    tokio_tungstenite::client_async_with_config(request, stream, Some(config))
        .await
        .unwrap()
        .0
}

/// A keep-alive connection that submits jobs.
struct Client {
    stream: tokio::io::BufReader<TcpStream>,
    request: Vec<u8>,
    line: String,
    body: Vec<u8>,
}

impl Client {
    async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let body = "{\"input\":\"hello\"}";
        let request = format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {OWNER}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Self {
            stream: tokio::io::BufReader::new(stream),
            request: request.into_bytes(),
            line: String::new(),
            body: Vec::new(),
        }
    }

    async fn submit(&mut self) {
        self.stream
            .get_mut()
            .write_all(&self.request)
            .await
            .unwrap();
        let mut length = 0;
        let mut first = true;
        loop {
            self.line.clear();
            self.stream.read_line(&mut self.line).await.unwrap();
            if std::mem::take(&mut first) {
                assert!(self.line.starts_with("HTTP/1.1 201 "), "{}", self.line);
            }
            if let Some(value) = self.line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if self.line == "\r\n" {
                break;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await.unwrap();
    }
}

/// A Gate in a process of its own.
struct Running {
    child: Child,
    address: String,
    _dir: tempfile::TempDir,
}

impl Running {
    fn start(dir: &Path, slots: usize) -> Self {
        let dir = tempfile::tempdir_in(dir).unwrap();
        let file = dir.path().join("gate.json");
        std::fs::write(&file, config(dir.path(), slots).to_string()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([OsString::from("--serve"), file.into()])
            .env("FORGE_LOG", "gate::log=info,warn")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the Gate listens").unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == "listening" {
                break event["address"].as_str().unwrap().to_owned();
            }
        };
        // The log is written and read as in earnest, and thrown away.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address,
            _dir: dir,
        }
    }

    fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Processor time that the Gate has used.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap())
            .sum();
        // Linux reports ticks of 10 ms to every program.
        Duration::from_millis(ticks * 10)
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn config(dir: &Path, slots: usize) -> Value {
    let path = |name: String| dir.join(name).to_str().unwrap().to_owned();
    std::fs::write(dir.join("owner"), OWNER).unwrap();
    let workers: Vec<Value> = (0..slots.div_ceil(50))
        .map(|worker| {
            let token = path(format!("worker-{worker}"));
            std::fs::write(&token, format!("{WORKER}-{worker}")).unwrap();
            json!({"id": format!("w{worker}"), "pool": "bench", "token_file": token, "concurrency": 50})
        })
        .collect();
    json!({
        "version": 1, "listen": "127.0.0.1:0", "database": path("state/gate.db".to_owned()),
        "owner_token_file": path("owner".to_owned()), "recovery_interval": "1s",
        "lease_poll_interval": "100ms", "default_pool": "bench",
        "lifecycle": {"lease_ttl": "30s", "retry_base": "1s", "max_attempts": 3},
        "default_execution": {
            "plugin_id": "reference", "environment": [], "plugin_timeout": "15m", "check_timeout": "10m",
            "git_timeout": "1m", "cleanup_timeout": "10s", "plugin_output_bytes": 1_048_576,
            "check_output_bytes": 2048, "git_output_bytes": 1_048_576,
        },
        "workers": workers,
    })
}

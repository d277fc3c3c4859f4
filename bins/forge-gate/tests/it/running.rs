//! A Gate process on a throwaway database, a client and a Worker that block.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use cli_shell::clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

pub(crate) const OWNER: &str = "owner-canary-4711";
pub(crate) const WORKER: &str = "worker-canary-4711";
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a configuration.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("owner"), OWNER).unwrap();
        std::fs::write(path("worker"), WORKER).unwrap();
        let config = json!({
            "version": 1, "listen": "127.0.0.1:0", "database": path("state/gate.db"),
            "owner_token_file": path("owner"), "recovery_interval": "100ms", "lease_poll_interval": "20ms",
            "default_pool": "coding",
            "lifecycle": {"lease_ttl": "2s", "retry_base": "10ms", "max_attempts": 5},
            "default_execution": {
                "plugin_id": "reference", "environment": [], "plugin_timeout": "15m", "check_timeout": "10m",
                "git_timeout": "1m", "cleanup_timeout": "10s", "plugin_output_bytes": 1_048_576,
                "check_output_bytes": 2048, "git_output_bytes": 1_048_576,
            },
            "workers": [{"id": "worker-1", "pool": "coding", "token_file": path("worker"), "concurrency": 1}],
        });
        std::fs::write(path("gate.json"), config.to_string()).unwrap();
        Self(dir)
    }

    pub(crate) fn config(&self) -> std::path::PathBuf {
        self.0.path().join("gate.json")
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A running Gate.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Everything that it wrote so far.
    pub(crate) log: String,
    address: String,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test starts the program that it is about"
)]
pub(crate) fn spawn(args: &[&std::ffi::OsStr]) -> Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_forge-gate"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Running {
    pub(crate) fn start(place: &Place) -> Self {
        Self::of(spawn(&["-config".as_ref(), place.config().as_os_str()]))
    }

    /// A Gate that was started otherwise.
    pub(crate) fn of(mut child: Child) -> Self {
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut running = Self {
            child,
            lines,
            log: String::new(),
            address: String::new(),
        };
        running.address = running.event("listening")["address"]
            .as_str()
            .unwrap()
            .to_owned();
        running
    }

    /// Waits for an event in the log.
    pub(crate) fn event(&mut self, name: &str) -> Value {
        let deadline = clock::instant() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(clock::instant());
            let line = self
                .lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no {name} in {}", self.log));
            self.log.push_str(&line);
            self.log.push('\n');
            let event: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            if event["event"] == name {
                return event;
            }
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end and collects the rest of the log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.log.push_str(&line);
            self.log.push('\n');
        }
        (status, std::mem::take(&mut self.log))
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {OWNER}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }

    pub(crate) fn connect(&self) -> Worker {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let url = format!(
            "ws://{}/v1/workers/connect?worker_id=worker-1&slot=0",
            self.address
        );
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {WORKER}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        Worker(
            tokio_tungstenite::tungstenite::client(request, stream)
                .unwrap()
                .0,
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A slot.
pub(crate) struct Worker(WebSocket<TcpStream>);

impl Worker {
    pub(crate) fn receive(&mut self) -> Value {
        match self.0.read().unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn finish(&mut self, lease: &Value) {
        let result = json!({
            "type": "result", "job_id": lease["job_id"], "attempt_id": lease["attempt_id"], "result": "done",
        });
        self.0.send(Message::text(result.to_string())).unwrap();
        assert_eq!(self.receive()["type"], "ack");
    }
}

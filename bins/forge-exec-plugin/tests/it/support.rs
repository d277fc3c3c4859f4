//! A host of a few lines: one process, frames in and out, a workspace and a place for scripts.
//! The Codex plugin's tests take this file too; `crate::PROGRAM` is the plugin.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const ID: &str = "0123456789abcdef0123456789abcdef";

/// Everything that the Worker offers.
pub(crate) const OFFER: [&str; 5] = [
    "workspace_edit",
    "progress",
    "cancel",
    "commit_subject",
    "agent_report",
];

/// Folders of one test.
pub(crate) struct Place {
    root: TempDir,
    variables: Vec<(String, OsString)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["workspace", "temporary", "start"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self {
            root,
            variables: Vec::new(),
        }
    }

    /// Sets a variable of the plugin's environment.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Where the plugin is started from.
    pub(crate) fn start(&self) -> PathBuf {
        self.root.path().join("start")
    }

    /// The plugin's TMPDIR.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.path().join("temporary")
    }

    /// A file outside of the workspace for what a script has seen.
    pub(crate) fn seen(&self) -> PathBuf {
        self.root.path().join("seen")
    }

    /// Writes a shell script as the command and returns its path.
    pub(crate) fn script(&self, body: &str) -> String {
        let path = self.root.path().join("command.sh");
        script(&path, body);
        path.to_str().unwrap().to_owned()
    }

    /// Starts a session with the full offer.
    pub(crate) fn session(&self, args: &[&str]) -> Session {
        Session::start(
            self,
            args,
            &OFFER,
            60_000,
            "edit the files",
            &self.workspace(),
        )
    }

    /// Runs a session to its end.
    pub(crate) fn run(&self, args: &[&str]) -> End {
        self.session(args).end()
    }
}

/// Writes an executable shell script.
pub(crate) fn script(path: &Path, body: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A running plugin that has got its `execute`.
pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(crate) initialized: Value,
}

/// All that came after `initialized`.
pub(crate) struct End {
    pub(crate) progress: Vec<Value>,
    pub(crate) terminal: Value,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl Session {
    pub(crate) fn start(
        place: &Place,
        args: &[&str],
        offer: &[&str],
        timeout_ms: u64,
        instruction: &str,
        workspace: &Path,
    ) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test drives the program as a host does"
        )]
        let mut child = std::process::Command::new(crate::PROGRAM)
            .args(args)
            .current_dir(place.start())
            .env("TMPDIR", place.temporary())
            .envs(place.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut session = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            initialized: Value::Null,
        };
        // The field order of the protocol, which a map would not keep.
        let limits = "{\"frame_bytes\":1048576,\"progress_frames\":128,\"text_bytes\":65536,\"progress_text_bytes\":1024,\"commit_subject_bytes\":256}";
        session.send(
            "initialize",
            &format!(",\"capabilities\":{},\"limits\":{limits}", json!(offer)),
        );
        session.initialized = session.receive();
        session.send(
            "execute",
            &format!(
                ",\"operation\":\"workspace_edit\",\"workspace\":{},\"instruction\":{},\"timeout_ms\":{timeout_ms}",
                json!(workspace.to_str().unwrap()),
                json!(instruction)
            ),
        );
        session
    }

    pub(crate) fn cancel(&mut self) {
        self.send("cancel", "");
    }

    fn send(&mut self, kind: &str, rest: &str) {
        let frame = format!("{{\"version\":\"v1\",\"id\":\"{ID}\",\"type\":\"{kind}\"{rest}}}\n");
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(frame.as_bytes())
            .unwrap();
    }

    /// Reads one frame and checks what all frames share.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let frame: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"));
        assert_eq!(
            (frame["version"].as_str(), frame["id"].as_str()),
            (Some("v1"), Some(ID))
        );
        frame
    }

    /// Closes everything, as the system does for a host that was killed, and waits.
    pub(crate) fn abandon(self) -> ExitStatus {
        let Self {
            mut child,
            stdin,
            stdout,
            ..
        } = self;
        drop((stdin, stdout, child.stderr.take()));
        child.wait().unwrap()
    }

    /// Reads up to the terminal frame, closes the input, and waits for a clean end of the output.
    pub(crate) fn end(mut self) -> End {
        let mut progress = Vec::new();
        let terminal = loop {
            let frame = self.receive();
            if frame["type"] != "progress" {
                break frame;
            }
            progress.push(frame);
        };
        drop(self.stdin.take());
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&rest),
            "",
            "nothing follows the terminal frame"
        );
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        End {
            progress,
            terminal,
            stderr,
            status: self.child.wait().unwrap(),
        }
    }
}

impl End {
    /// The terminal frame without what all frames share.
    pub(crate) fn answer(&self) -> Value {
        let mut frame = self.terminal.as_object().unwrap().clone();
        frame.retain(|name, _| name != "version" && name != "id");
        Value::Object(frame)
    }

    /// Checks that the operation failed with this category and this reason on standard error.
    pub(crate) fn failed(&self, category: &str, reason: &str) {
        assert_eq!(
            self.answer(),
            json!({"type": "failure", "category": category}),
            "{}",
            self.stderr
        );
        assert!(
            self.stderr.contains(reason),
            "`{reason}` in `{}`",
            self.stderr
        );
        assert_eq!(self.status.code(), Some(0));
    }
}

/// Waits until something holds, for at most a minute.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests measure real time where that is the promise"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Whether a process with this id still runs `sleep`.
pub(crate) fn sleeps(pid: &str) -> bool {
    std::fs::read(format!("/proc/{}/cmdline", pid.trim()))
        .is_ok_and(|command| command.starts_with(b"sleep"))
}

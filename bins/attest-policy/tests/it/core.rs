//! A core of a few lines: one process, messages in and out, a workspace with a policy.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_attest-policy");

/// Judges commands and durations.
pub(crate) const POLICY: &str = r#"version = 1

[[command]]
id = "no-network"
decision = "deny"
severity = "high"
deny = ["*curl*"]

[[duration]]
id = "quick"
decision = "warn"
severity = "low"
step_secs = 5
"#;

/// A workspace of its own.
pub(crate) struct Workspace(TempDir);

impl Workspace {
    pub(crate) fn new() -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        workspace.write(".attest/policy.toml", POLICY);
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with the environment of a plugin and nothing else.
    pub(crate) fn plugin(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .current_dir(self.path())
            .env_clear()
            .env("ATTEST_WORKSPACE", self.path())
            .env("ATTEST_PLUGIN_NAME", "policy")
            .env("ATTEST_PLUGIN_PROTOCOL", "1")
            .env("ATTEST_VERSION", "1.2.3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The program as somebody types it in the workspace.
    pub(crate) fn typed(&self, args: &[impl AsRef<OsStr>]) -> Typed {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        Typed {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A plugin that runs.
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

/// How a plugin ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Session {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            id: 0,
        }
    }

    /// Starts one and greets it.
    pub(crate) fn greeted(command: &mut Command) -> (Self, Value) {
        let mut session = Self::start(command);
        session.send(
            "hello",
            &json!({"attest_version": "1.2.3", "protocols": [1]}),
        );
        let answer = session.answer();
        (session, answer)
    }

    pub(crate) fn send(&mut self, kind: &str, more: &Value) {
        self.id += 1;
        let mut message = json!({"v": 1, "id": self.id, "kind": kind});
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.raw(&format!("{message}\n"));
    }

    pub(crate) fn raw(&mut self, line: &str) {
        // A plugin that left has said why on its standard error.
        drop(self.input.as_mut().unwrap().write_all(line.as_bytes()));
    }

    /// Reads one message, which is compact and for the last request.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let line = line.strip_suffix('\n').unwrap();
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["id"], self.id, "{line}");
        answer
    }

    pub(crate) fn ask(&mut self, kind: &str, payload: &Value) -> Value {
        self.send(kind, &json!({ "payload": payload }));
        let answer = self.answer();
        assert_eq!(answer["kind"], "verdict", "{answer}");
        answer
    }

    pub(crate) fn shutdown(mut self) -> End {
        self.send("shutdown", &json!({}));
        self.end()
    }

    /// Closes the input and waits.
    pub(crate) fn end(mut self) -> End {
        drop(self.input.take());
        let (mut out, mut err) = (String::new(), String::new());
        self.output.read_to_string(&mut out).unwrap();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        End {
            status: self.child.wait().unwrap(),
            out,
            err,
        }
    }
}

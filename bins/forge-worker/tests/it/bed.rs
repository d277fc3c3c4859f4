//! Where a Worker is tested: folders, a repository, plugins, a configuration, the process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gate::{ATTEMPT, Gate, JOB, LONG};

pub(crate) const TOKEN: &str = "canary-token-of-the-worker-0123456789";

/// Runs the instruction as a shell script in the workspace; `#subject X` and `#report S|C|C`
/// lines in it become the parts of the result, `#fail` a failure. With `--progress` each
/// `#progress STAGE TEXT` line is a frame of its own, before the script runs.
const PLUGIN: &str = r##"
import json, os, subprocess, sys
def send(frame):
    sys.stdout.write(json.dumps(frame, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()
init = json.loads(sys.stdin.readline())
if "--strict-old" in sys.argv and "agent_report" in init["capabilities"]:
    raise SystemExit("unknown capability")
base = {"version": "v1", "id": init["id"]}
known = ["text", "workspace_edit", "commit_subject", "agent_report"]
if "--progress" in sys.argv:
    known.append("progress")
send({**base, "type": "initialized", "capabilities": [c for c in known if c in init["capabilities"]]})
execute = json.loads(sys.stdin.readline())
if execute["operation"] == "text":
    send({**base, "type": "result", "output": execute["input"].upper()})
else:
    lines = execute["instruction"].split("\n")
    result = {**base, "type": "result"}
    for line in lines:
        if line.startswith("#subject "):
            result["commit_subject"] = line[9:]
        if line.startswith("#report "):
            result["summary"], *result["changes"] = line[8:].split("|")
        if line.startswith("#fail"):
            result = {**base, "type": "failure", "category": "execution_failed"}
    told = [line.split(" ", 2)[1:] for line in lines if line.startswith("#progress ")]
    for number, (stage, text) in enumerate(told, 1):
        send({**base, "type": "progress", "sequence": number, "stage": stage, "text": text})
    null = subprocess.DEVNULL
    subprocess.run(["/bin/sh", "-c", execute["instruction"]], cwd=execute["workspace"],
                   stdin=null, stdout=null, stderr=null)
    send(result)
# Python takes its time to end, and a loaded machine more than a host allows.
os._exit(0)
"##;

pub(crate) struct Bed {
    dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) base: String,
    pub(crate) config: Value,
    environment: Vec<(String, String)>,
}

impl Bed {
    /// A repository with one commit on `main`, and a Worker configured for this Gate.
    pub(crate) fn new(gate_url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["repositories/demo", "worktrees", "runtime", "bin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("bin/plugin.py"), PLUGIN).unwrap();
        let repository = root.join("repositories/demo");
        git(&repository, &["init", "-q", "-b", "main", "."]);
        fs::write(repository.join("README"), "hello\n").unwrap();
        fs::write(
            repository.join("check.sh"),
            "#!/bin/sh\ntest -e answer.txt\n",
        )
        .unwrap();
        fs::set_permissions(
            repository.join("check.sh"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", "first"]);
        let base = git(&repository, &["rev-parse", "HEAD"]);
        let path = |name: &str| root.join(name).display().to_string();
        let config = json!({
            "version": 1,
            "gate_url": gate_url,
            "id": "worker-1",
            "token_env": "TEST_WORKER_TOKEN",
            "heartbeat_interval": "1s",
            "concurrency": 1,
            // So that what is in the folders is of a job.
            "prepared_workspaces": 0,
            "repository_roots": [path("repositories")],
            "worktree_root": path("worktrees"),
            "runtime_root": path("runtime"),
            "repositories": [{"id": "demo", "path": path("repositories/demo")}],
            "plugins": [{"id": "shell", "argv": ["/usr/bin/python3", path("bin/plugin.py")]}],
            "environment_allowlist": ["PATH", "PLUGIN_ONLY", "UNSET_ANYWHERE"],
            "check_environment_allowlist": ["PATH"],
            "ceilings": {
                "plugin_timeout": "15m", "check_timeout": "10m", "git_timeout": "1m",
                "cleanup_timeout": "10s", "plugin_output_bytes": 1048576,
                "check_output_bytes": 2048, "git_output_bytes": 1048576
            }
        });
        let environment = vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("TEST_WORKER_TOKEN".to_owned(), TOKEN.to_owned()),
            ("PLUGIN_ONLY".to_owned(), "for the plugin".to_owned()),
            (
                "SECRET_OF_THE_HOST".to_owned(),
                "canary-of-the-host".to_owned(),
            ),
        ];
        Self {
            dir,
            root,
            base,
            config,
            environment,
        }
    }

    /// A bed and a Worker that has connected to a Gate of its own.
    pub(crate) async fn connected() -> (Self, Gate, Worker, crate::gate::Slot<tokio::net::TcpStream>)
    {
        Self::connected_with(|_| {}).await
    }

    pub(crate) async fn connected_with(
        change: impl FnOnce(&mut Self),
    ) -> (Self, Gate, Worker, crate::gate::Slot<tokio::net::TcpStream>) {
        let gate = Gate::new().await;
        let mut bed = Self::new(&gate.url());
        change(&mut bed);
        let worker = bed.start();
        let slot = gate.accept().await;
        (bed, gate, worker, slot)
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.root.join("repositories/demo")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repository(), args)
    }

    pub(crate) fn set_env(&mut self, name: &str, value: Option<&str>) {
        self.environment.retain(|(existing, _)| existing != name);
        self.environment
            .extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        let path = self.root.join("worker.json");
        fs::write(&path, self.config.to_string()).unwrap();
        path
    }

    /// The program with these arguments, in the environment of the bed.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = command(env!("CARGO_BIN_EXE_forge-worker"));
        command
            .args(args)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .current_dir("/");
        command
    }

    pub(crate) fn start(&self) -> Worker {
        let config = self.config_file().display().to_string();
        let log = self
            .root
            .join(format!("log-{}", fs::read_dir(&self.root).unwrap().count()));
        let child = self
            .program(&["--config", &config, "--log-format", "json", "-v"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs_err::File::create(&log).unwrap().into_parts().0)
            .spawn()
            .unwrap();
        Worker { child, log }
    }

    /// What is in the Worker's folders beside its locks and what only waits for its removal.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let mut left = self.in_folders();
        left.retain(|path| !path.display().to_string().contains("/forge-removed-"));
        left
    }

    /// What is in the Worker's folders beside its locks and state.
    pub(crate) fn in_folders(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["worktrees", "runtime"] {
            for entry in fs::read_dir(self.root.join(folder)).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name();
                if ![".forge-worker.lock", ".forge-worker-state"].contains(&name.to_str().unwrap())
                {
                    found.push(entry.path());
                }
            }
        }
        found
    }

    pub(crate) fn candidate_refs(&self) -> String {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/agent-forge"])
    }

    /// A text lease.
    pub(crate) fn text_lease(&self, input: &str) -> String {
        let mut lease = lease("shell");
        lease["input"] = json!(input);
        lease.to_string()
    }

    /// A coding lease on the base; `change` may alter anything.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers write the value in place"
    )]
    pub(crate) fn coding_lease(
        &self,
        instruction: &str,
        tests: Value,
        change: impl FnOnce(&mut Value),
    ) -> String {
        let mut lease = lease("shell");
        lease["task"] = json!({
            "repository_id": "demo",
            "base_sha": self.base,
            "instruction": instruction,
            "tests": tests,
        });
        let execution = &mut lease["policy"]["execution"];
        execution["repository_id"] = json!("demo");
        execution["default_branch"] = json!("main");
        execution["environment"] = json!(["PATH", "PLUGIN_ONLY", "UNSET_ANYWHERE"]);
        change(&mut lease);
        lease.to_string()
    }

    /// Keeps the folder for a look after a failed test.
    #[expect(dead_code, reason = "for whoever hunts a failure")]
    pub(crate) fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

fn lease(plugin: &str) -> Value {
    json!({
        "type": "lease",
        "job_id": JOB,
        "attempt_id": ATTEMPT,
        "policy": {
            "version": 1, "worker_pool": "coding", "lease_ttl_nanos": 30_000_000_000_u64,
            "retry_base_nanos": 1_000_000_000, "max_attempts": 3,
            "retry_algorithm": "exponential-v1", "retry_max_nanos": 86_400_000_000_000_u64,
            "execution": {
                "plugin_id": plugin, "environment": [],
                "plugin_timeout_nanos": 60_000_000_000_u64,
                "check_timeout_nanos": 60_000_000_000_u64,
                "git_timeout_nanos": 60_000_000_000_u64,
                "cleanup_timeout_nanos": 10_000_000_000_u64,
                "plugin_output_bytes": 1_048_576, "check_output_bytes": 2048,
                "git_output_bytes": 1_048_576
            }
        }
    })
}

/// A running Worker; killed with its last owner.
pub(crate) struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for the end, without blocking the Gate of the test.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the Worker does not end; its log:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills the Worker alone, as the kernel would, and waits for it.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().unwrap();
        self.ended().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            println!("log of the Worker:\n{}", self.log());
        }
    }
}

/// Waits until something holds; fails after a minute.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The processes whose command line holds this text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_process = entry
            .file_name()
            .to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        if !is_process {
            continue;
        }
        // An empty command line is a zombie's, which runs nothing.
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(text) {
            found.push(format!("{} {command}", entry.file_name().display()));
        }
    }
    found
}

/// A number that no other process of this machine sleeps for.
pub(crate) fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{}.{:03}",
        100_000_u64 + u64::from(std::process::id()),
        next
    )
}

pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let output = command("git")
        .args([
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@example.org",
        ])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

//! A throwaway appliance: one repository, one Gate, Workers as asked, all state in a folder that
//! is removed with it. Every process is ended by its own handle.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::repository::{git, repository};

/// Long enough for a loaded machine, short enough to notice a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub(crate) const FORGE: &str = env!("CARGO_BIN_EXE_forge");

/// A token that must never appear anywhere but in its file.
pub(crate) const OWNER_TOKEN: &str = "canary-owner-5f1c0a77e2";
/// The Worker's token, likewise.
pub(crate) const WORKER_TOKEN: &str = "canary-worker-91d3b0c4aa";

/// What a test may set.
pub(crate) struct Setup {
    /// How long a lease lives.
    pub(crate) lease_ttl: &'static str,
    /// How long a second attempt waits.
    pub(crate) retry_base: &'static str,
    /// The longest that a plugin may run.
    pub(crate) plugin_timeout: &'static str,
    /// The argument vector of the workspace plugin behind `forge __exec-plugin --`; `@FOLDER@`
    /// stands for the throwaway folder.
    pub(crate) command: Vec<String>,
    /// The argument vector of another workspace plugin, in place of the whole of that.
    pub(crate) plugin: Option<Vec<String>>,
    /// Variables of the Worker that the workspace plugin gets; `@FOLDER@` likewise.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Variables of the Gate alone.
    pub(crate) gate_variables: Vec<(&'static str, String)>,
    /// Variables of the Worker alone, which no plugin gets.
    pub(crate) worker_variables: Vec<(&'static str, String)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            lease_ttl: "3s",
            retry_base: "200ms",
            plugin_timeout: "30s",
            command: words(&["/bin/sh", "-c", "cat > answer.txt"]),
            plugin: None,
            variables: Vec::new(),
            gate_variables: Vec::new(),
            worker_variables: Vec::new(),
        }
    }
}

/// The appliance.
pub(crate) struct Appliance {
    folder: tempfile::TempDir,
    port: u16,
    base: String,
    variables: Vec<(&'static str, String)>,
    gate_variables: Vec<(&'static str, String)>,
    worker_variables: Vec<(&'static str, String)>,
    gate: Option<Child>,
    workers: Vec<Child>,
}

impl Appliance {
    /// Makes the repository and the configuration and starts the Gate.
    pub(crate) fn start(setup: &Setup) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("forge-it-")
            .tempdir()
            .unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let root = folder.path();
        for name in ["gate", "trees", "runtime", "repos/main"] {
            let path = root.join(name);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let base = repository(&root.join("repos/main"));
        secret(&root.join("owner.token"), OWNER_TOKEN);
        secret(&root.join("worker.token"), WORKER_TOKEN);
        let mut made = Self {
            folder,
            port,
            base,
            variables: setup.variables.clone(),
            gate_variables: setup.gate_variables.clone(),
            worker_variables: setup.worker_variables.clone(),
            gate: None,
            workers: Vec::new(),
        };
        made.write("gate.json", &made.gate_config(setup));
        made.write("worker.json", &made.worker_config(setup));
        made.start_gate();
        made
    }

    /// The registered repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path("repos/main")
    }

    /// The head of `main`, which every task is based on.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// A path in the throwaway folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the Gate and waits until it answers.
    pub(crate) fn start_gate(&mut self) {
        let child = self.spawn("__gate", "gate.json", "gate.log", &self.gate_variables);
        self.gate = Some(child);
        let url = self.address();
        wait_until("the Gate listens", || {
            std::net::TcpStream::connect(&url).is_ok()
        });
    }

    /// Where the Gate listens.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The process id of the Gate.
    pub(crate) fn gate_id(&self) -> u32 {
        self.gate.as_ref().expect("a Gate runs").id()
    }

    /// Whether the Worker that was started last has ended.
    pub(crate) fn worker_has_ended(&mut self) -> bool {
        let worker = self.workers.last_mut().expect("a Worker was started");
        worker.try_wait().unwrap().is_some()
    }

    /// Ends the Gate at once, as a power loss would.
    pub(crate) fn kill_gate(&mut self) {
        let mut gate = self.gate.take().expect("a Gate runs");
        gate.kill().unwrap();
        gate.wait().unwrap();
    }

    /// Starts a Worker and returns its process id.
    pub(crate) fn start_worker(&mut self) -> u32 {
        let own = &self.worker_variables;
        let child = self.spawn("__worker", "worker.json", "worker.log", own);
        let id = child.id();
        self.workers.push(child);
        id
    }

    /// Ends the Worker at once.
    pub(crate) fn kill_worker(&mut self) {
        let mut worker = self.workers.pop().expect("a Worker runs");
        worker.kill().unwrap();
        worker.wait().unwrap();
    }

    /// Asks the Worker to drain and returns its exit code.
    pub(crate) fn drain_worker(&mut self) -> Option<i32> {
        let mut worker = self.workers.pop().expect("a Worker runs");
        signal("-TERM", worker.id());
        let status = wait_for("the Worker has drained", || worker.try_wait().unwrap());
        status.code()
    }

    /// Runs `forge WORDS` and returns code, stdout and stderr.
    pub(crate) fn forge(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.client(words).output().unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// Starts `forge WORDS` with its standard output in a file of the throwaway folder.
    pub(crate) fn forge_into(&self, words: &[&str], name: &str) -> Child {
        let file = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(self.path(name))
            .unwrap();
        self.client(words).stdout(file).spawn().unwrap()
    }

    /// Starts `forge WORDS` with its standard error in a file of the throwaway folder.
    pub(crate) fn forge_talking_into(&self, words: &[&str], name: &str) -> Child {
        let mut options = fs::OpenOptions::new();
        let file = options.create_new(true).write(true);
        let file = file.open(self.path(name)).unwrap();
        let mut command = self.client(words);
        command.stdout(Stdio::null()).stderr(file).spawn().unwrap()
    }

    fn client(&self, words: &[&str]) -> Command {
        let mut command = Command::new(FORGE);
        command
            .args(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("FORGE_GATE_URL", format!("http://127.0.0.1:{}", self.port))
            .env("FORGE_OWNER_TOKEN", OWNER_TOKEN)
            .stdin(Stdio::null());
        command
    }

    /// Submits a coding task and returns the job's id.
    pub(crate) fn submit(&self, instruction: &str, checks: &[Vec<&str>]) -> String {
        let checks: Vec<String> = checks
            .iter()
            .map(|check| json!(check).to_string())
            .collect();
        let mut all = vec![
            "submit",
            "--format",
            "json",
            "--repository",
            "main",
            "--base",
            self.base(),
        ];
        all.extend(["--instruction", instruction]);
        for check in &checks {
            all.extend(["--check-json", check]);
        }
        let (code, out, err) = self.forge(&all);
        assert_eq!(code, 0, "{out}{err}");
        let job: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        job["id"].as_str().unwrap().to_owned()
    }

    /// The job object.
    pub(crate) fn job(&self, id: &str) -> Value {
        let (code, out, err) = self.forge(&["status", "--format", "json", id]);
        assert!(code == 0 || code == 1, "{out}{err}");
        serde_json::from_str(out.lines().next().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    }

    /// Waits until the job's status is one of `wanted` and returns the job.
    pub(crate) fn wait_for_status(&self, id: &str, wanted: &[&str]) -> Value {
        let mut last = Value::Null;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            last = self.job(id);
            if wanted.contains(&last["status"].as_str().unwrap_or_default()) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the job never became {wanted:?}: {last}\n{}", self.logs());
    }

    /// The attempts and evidence of a terminal job.
    pub(crate) fn result(&self, id: &str) -> Value {
        let (code, out, err) = self.forge(&["result", "--format", "json", id]);
        assert!(code == 0 || code == 1, "{out}{err}");
        serde_json::from_str(out.lines().next().unwrap()).unwrap()
    }

    /// Runs git in the registered repository.
    pub(crate) fn git(&self, words: &[&str]) -> String {
        git(&self.repository(), words)
    }

    /// Everything that the programs said.
    pub(crate) fn logs(&self) -> String {
        let mut all = String::new();
        for name in ["gate.log", "worker.log"] {
            let text = fs::read_to_string(self.path(name)).unwrap_or_default();
            let _ = write!(all, "== {name}\n{text}");
        }
        all
    }

    fn write(&self, name: &str, value: &Value) {
        fs::write(self.path(name), value.to_string()).unwrap();
    }

    fn spawn(&self, role: &str, config: &str, log: &str, own: &[(&'static str, String)]) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(log))
            .unwrap();
        Command::new(FORGE)
            .arg(role)
            .arg("--config")
            .arg(self.path(config))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("CANARY", "canary-environment-77")
            .envs(
                self.variables
                    .iter()
                    .chain(own)
                    .map(|(name, value)| (name, self.placed(value))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Puts the throwaway folder in.
    fn placed(&self, text: &str) -> String {
        text.replace("@FOLDER@", &self.folder.path().to_string_lossy())
    }

    fn gate_config(&self, setup: &Setup) -> Value {
        let environment = names(setup);
        let execution = |plugin: &str| {
            json!({
                "plugin_id": plugin, "environment": environment, "plugin_timeout": setup.plugin_timeout,
                "check_timeout": "20s", "git_timeout": "20s", "cleanup_timeout": "10s",
                "plugin_output_bytes": 1_048_576, "check_output_bytes": 2048, "git_output_bytes": 1_048_576
            })
        };
        json!({
            "version": 1,
            "listen": format!("127.0.0.1:{}", self.port),
            "database": self.path("gate/gate.db"),
            "owner_token_file": self.path("owner.token"),
            "recovery_interval": "200ms",
            "lease_poll_interval": "100ms",
            "default_pool": "coding",
            "lifecycle": {"lease_ttl": setup.lease_ttl, "retry_base": setup.retry_base, "max_attempts": 3},
            "default_execution": execution("text"),
            "workers": [{"id": "worker-1", "pool": "coding", "token_file": self.path("worker.token"), "concurrency": 1}],
            "repositories": [{"id": "main", "default_branch": "main", "worker_pool": "coding", "execution": execution("edit")}]
        })
    }

    fn worker_config(&self, setup: &Setup) -> Value {
        let mut edit = words(&[FORGE, "__exec-plugin", "--"]);
        edit.extend(setup.command.iter().map(|word| self.placed(word)));
        if let Some(plugin) = &setup.plugin {
            edit.clone_from(plugin);
        }
        json!({
            "version": 1,
            "gate_url": format!("ws://127.0.0.1:{}", self.port),
            "id": "worker-1",
            "token_file": self.path("worker.token"),
            "heartbeat_interval": "500ms",
            "concurrency": 1,
            "repository_roots": [self.path("repos")],
            "worktree_root": self.path("trees"),
            "runtime_root": self.path("runtime"),
            "repositories": [{"id": "main", "path": self.path("repos/main")}],
            "plugins": [
                {"id": "text", "argv": [FORGE, "__ref-plugin"]},
                {"id": "edit", "argv": edit}
            ],
            "environment_allowlist": names(setup),
            "check_environment_allowlist": ["PATH"],
            "ceilings": {
                "plugin_timeout": "60s", "check_timeout": "60s", "git_timeout": "60s", "cleanup_timeout": "60s",
                "plugin_output_bytes": 1_048_576, "check_output_bytes": 1_048_576, "git_output_bytes": 1_048_576
            }
        })
    }
}

impl Drop for Appliance {
    fn drop(&mut self) {
        for mut child in self.workers.drain(..).chain(self.gate.take()) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The variables that the workspace plugin gets.
fn names(setup: &Setup) -> Vec<&'static str> {
    let more = setup.variables.iter().map(|(name, _)| *name);
    ["PATH"].into_iter().chain(more).collect()
}

/// Owned words.
pub(crate) fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Sends a signal to one process that the test started.
pub(crate) fn signal(name: &str, id: u32) {
    let done = Command::new("kill")
        .arg(name)
        .arg(id.to_string())
        .status()
        .unwrap();
    assert!(done.success());
}

/// Waits until `ready`, or fails naming `what`.
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    wait_for(what, || ready().then_some(()));
}

/// Waits until there is a value, or fails naming `what`.
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(value) = ready() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

/// The ids of living processes (zombies left out) whose command line contains `text`.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(text) {
            found.push(id);
        }
    }
    found
}

fn secret(path: &Path, text: &str) {
    fs::write(path, format!("{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

//! The folder of a run: tokens, a repository for each Worker, configurations, logs.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::faults::{LEASE_TTL_MS, Target, WORKERS};
use crate::random::Random;

/// Slots of each Worker.
pub(crate) const SLOTS: u16 = 3;

/// What a coding job's command does: it leaves processes behind that outlive it, one of them in a
/// session of its own, and writes the job's key.
const COMMAND: &str = "read -r pause key; \
    sleep 3600 >/dev/null 2>&1 & setsid sleep 3600 >/dev/null 2>&1 & \
    printf '%s\\n' \"$key\" > answer.txt; sleep \"$pause\"";

/// The folder, and what was made in it.
#[derive(Debug)]
pub(crate) struct Place {
    folder: tempfile::TempDir,
    /// Where the Gate listens.
    pub(crate) port: u16,
    /// The token of the owner.
    pub(crate) token: String,
    /// The commit that every coding job starts from.
    pub(crate) base: String,
}

impl Place {
    /// Makes all of it.
    pub(crate) fn make(programs: &Path, random: &mut Random) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("forge-soak-")
            .tempdir()
            .context("cannot make a folder")?;
        let mut place = Self {
            folder,
            port: free_port(random)?,
            token: secret()?,
            base: String::new(),
        };
        fs_err::create_dir(place.path("gate"))?;
        place.base = place.repositories()?;
        place.write_secret("owner.token", &place.token)?;
        for index in 0..WORKERS {
            for name in ["trees", "runtime", "state"] {
                fs_err::create_dir_all(place.of_worker(index, name))?;
                private(&place.of_worker(index, name))?;
            }
            place.write_secret(&format!("worker-{}.token", index + 1), &secret()?)?;
        }
        for name in ["gate", "worker-1", "worker-2"] {
            private(&place.path(name))?;
        }
        place.write("gate.json", &place.gate())?;
        for index in 0..WORKERS {
            let name = format!("{}.json", Target::Worker(index));
            place.write(&name, &place.worker(index, programs))?;
        }
        Ok(place)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the part of a Worker.
    pub(crate) fn of_worker(&self, index: usize, name: &str) -> PathBuf {
        self.path(&Target::Worker(index).to_string()).join(name)
    }

    /// The repository of a Worker.
    pub(crate) fn repository(&self, index: usize) -> PathBuf {
        self.of_worker(index, "repositories/main.git")
    }

    /// Leaves the folder for a look at it.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// One commit, known to every Worker's own clone.
    fn repositories(&self) -> Result<String> {
        let origin = self.path("origin");
        fs_err::create_dir(&origin)?;
        git(&origin, &["init", "-q", "-b", "main", "."])?;
        for number in 0..20 {
            let name = format!("file-{number}.txt");
            fs_err::write(origin.join(name), "some text\n".repeat(100))?;
        }
        git(&origin, &["add", "."])?;
        git(&origin, &["commit", "-q", "-m", "base"])?;
        for index in 0..WORKERS {
            let target = self.repository(index);
            fs_err::create_dir_all(self.of_worker(index, "repositories"))?;
            let target = target.to_string_lossy();
            git(&origin, &["clone", "-q", "--bare", ".", &target])?;
        }
        git(&origin, &["rev-parse", "HEAD"])
    }

    fn write(&self, name: &str, value: &Value) -> Result<()> {
        Ok(fs_err::write(self.path(name), value.to_string())?)
    }

    fn write_secret(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        fs_err::write(&path, text)?;
        Ok(fs_err::set_permissions(
            &path,
            std::fs::Permissions::from_mode(0o600),
        )?)
    }

    fn gate(&self) -> Value {
        let execution = |plugin: &str| {
            json!({
                "plugin_id": plugin, "environment": ["PATH"], "plugin_timeout": "60s",
                "check_timeout": "60s", "git_timeout": "60s", "cleanup_timeout": "10s",
                "plugin_output_bytes": 1_048_576, "check_output_bytes": 2048,
                "git_output_bytes": 1_048_576
            })
        };
        let workers: Vec<Value> = (0..WORKERS)
            .map(|index| {
                let id = Target::Worker(index).to_string();
                json!({
                    "token_file": self.path(&format!("{id}.token")),
                    "id": id, "pool": "all", "concurrency": SLOTS,
                })
            })
            .collect();
        json!({
            "version": 1,
            "listen": format!("127.0.0.1:{}", self.port),
            "database": self.path("gate/gate.db"),
            "owner_token_file": self.path("owner.token"),
            "recovery_interval": "500ms",
            "lease_poll_interval": "100ms",
            "default_pool": "all",
            // A lost attempt counts; nothing here may fail for having been killed too often.
            "lifecycle": {
                "lease_ttl": format!("{LEASE_TTL_MS}ms"), "retry_base": "20ms", "max_attempts": 100
            },
            "default_execution": execution("text"),
            "workers": workers,
            "repositories": [{
                "id": "main", "default_branch": "main", "worker_pool": "all",
                "execution": execution("edit")
            }]
        })
    }

    fn worker(&self, index: usize, programs: &Path) -> Value {
        let id = Target::Worker(index).to_string();
        let ceilings = json!({
            "plugin_timeout": "2m", "check_timeout": "2m", "git_timeout": "2m",
            "cleanup_timeout": "1m", "plugin_output_bytes": 1_048_576,
            "check_output_bytes": 1_048_576, "git_output_bytes": 1_048_576
        });
        json!({
            "version": 1,
            "gate_url": format!("ws://127.0.0.1:{}", self.port),
            "token_file": self.path(&format!("{id}.token")),
            "id": id,
            "heartbeat_interval": "400ms",
            "concurrency": SLOTS,
            "repository_roots": [self.of_worker(index, "repositories")],
            "worktree_root": self.of_worker(index, "trees"),
            "runtime_root": self.of_worker(index, "runtime"),
            "state_dir": self.of_worker(index, "state"),
            "repositories": [{"id": "main", "path": self.repository(index)}],
            "plugins": [
                {"id": "text", "argv": [programs.join("forge-ref-plugin")]},
                {"id": "edit", "argv": [programs.join("forge-exec-plugin"), "--", "/bin/sh", "-c", COMMAND]}
            ],
            "environment_allowlist": ["PATH"],
            "check_environment_allowlist": ["PATH"],
            // How much room this machine has is not what is judged here.
            "min_free_bytes": 0,
            "ceilings": ceilings
        })
    }
}

/// Runs git, apart from this machine's configuration, and returns its output.
pub(crate) fn git(folder: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Soak",
            "-c",
            "user.email=soak@example.invalid",
        ])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .context("cannot start git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git {} failed: {}", words.join(" "), said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// A port that no outgoing connection of this machine is given: a Worker that dials a Gate that
/// is away would otherwise meet itself sooner or later, and keep the port.
fn free_port(random: &mut Random) -> Result<u16> {
    let range = fs_err::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let lowest = range
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u16>().ok())
        .unwrap_or(32_768);
    for _ in 0..1000 {
        let below = u64::from(lowest.saturating_sub(10_000).max(1));
        let port = u16::try_from(10_000 + random.below(below)).unwrap_or(10_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port below {lowest}");
}

fn private(path: &Path) -> Result<()> {
    Ok(fs_err::set_permissions(
        path,
        std::fs::Permissions::from_mode(0o700),
    )?)
}

fn secret() -> Result<String> {
    let (first, second) = (getrandom::u64()?, getrandom::u64()?);
    Ok(format!("{first:016x}{second:016x}"))
}

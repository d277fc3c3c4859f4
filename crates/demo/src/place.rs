//! The throwaway state: one private folder with tokens, configuration, database and work trees.

use std::path::PathBuf;

use bounded::{EnvName, Hex32};
use cli_shell::env;
use safe_fs::PrivateTempDir;
use serde_json::{Value, json};

use crate::error::DemoError;
use crate::project::Project;

/// The ids that the configurations and the task share.
pub(crate) const REPOSITORY: &str = "demo";
const POOL: &str = "demo";
const PLUGIN: &str = "agent";

/// The folder with everything that goes away again.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PrivateTempDir,
    /// The program that all parts are.
    pub(crate) program: PathBuf,
}

impl Place {
    /// Makes the folder, with nothing in it.
    pub(crate) fn empty(program: PathBuf) -> Result<Self, DemoError> {
        let root = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        // Links on the way to it are the user's business; below it there are none.
        let root = fs_err::canonicalize(&root).unwrap_or(root);
        let folder =
            PrivateTempDir::new_in(&root, "forge-demo-").map_err(|source| DemoError::State {
                what: "make",
                source,
            })?;
        Ok(Self { folder, program })
    }

    /// Makes the folder with what a Gate and a Worker need.
    pub(crate) fn make(program: PathBuf) -> Result<Self, DemoError> {
        let place = Self::empty(program)?;
        for name in ["gate", "worktrees", "runtime", "repositories"] {
            place.folder(name)?;
        }
        for name in ["owner.token", "worker.token"] {
            place.write(name, &format!("{}\n", random()?))?;
        }
        Ok(place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self, name: &str) -> Result<(), DemoError> {
        safe_fs::private_dir(&self.path(name)).map_err(|source| DemoError::State {
            what: "make",
            source,
        })
    }

    /// Writes a file that only this user can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, DemoError> {
        self.write_with(name, text, 0o600)
    }

    /// Writes a script that only this user can read and run.
    pub(crate) fn write_script(&self, name: &str, text: &str) -> Result<PathBuf, DemoError> {
        self.write_with(name, text, 0o700)
    }

    fn write_with(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf, DemoError> {
        let path = self.path(name);
        safe_fs::write_atomic(&path, text.as_bytes(), mode).map_err(|source| DemoError::State {
            what: "write",
            source,
        })?;
        Ok(path)
    }

    /// Leaves the folder where it is.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Removes the folder with everything in it.
    pub(crate) fn remove(self) -> Result<(), DemoError> {
        self.folder.close().map_err(|source| DemoError::State {
            what: "remove",
            source,
        })
    }

    /// Writes the Gate's configuration; port 0 lets the system choose.
    pub(crate) fn write_gate_config(
        &self,
        listen: &str,
        project: &Project,
        variables: &[EnvName],
    ) -> Result<PathBuf, DemoError> {
        let execution = json!({
            "plugin_id": PLUGIN,
            "environment": names(variables),
            "plugin_timeout": "15m",
            "check_timeout": "10m",
            "git_timeout": "1m",
            "cleanup_timeout": "10s",
            "plugin_output_bytes": 1_048_576,
            "check_output_bytes": 1_048_576,
            "git_output_bytes": 16_777_216,
        });
        let config = json!({
            "version": 1,
            "listen": listen,
            "database": self.path("gate/gate.db"),
            "owner_token_file": self.path("owner.token"),
            "recovery_interval": "1s",
            "lease_poll_interval": "100ms",
            "default_pool": POOL,
            "lifecycle": {"lease_ttl": "15s", "retry_base": "1s", "max_attempts": 2},
            "default_execution": execution,
            "workers": [{
                "id": "worker-1",
                "pool": POOL,
                "token_file": self.path("worker.token"),
                "concurrency": 1,
            }],
            "repositories": [{
                "id": REPOSITORY,
                "default_branch": project.branch,
                "worker_pool": POOL,
                "execution": execution,
            }],
        });
        self.write("gate.json", &pretty(&config))
    }

    /// Writes the Worker's configuration for a Gate that listens.
    pub(crate) fn write_worker_config(
        &self,
        address: &str,
        project: &Project,
        variables: &[EnvName],
    ) -> Result<PathBuf, DemoError> {
        let program = self.program.display().to_string();
        let mut argv = vec![program, "__exec-plugin".to_owned(), "--".to_owned()];
        argv.extend(project.agent.iter().cloned());
        let config = json!({
            "version": 1,
            "gate_url": format!("ws://{address}"),
            "id": "worker-1",
            "token_file": self.path("worker.token"),
            "heartbeat_interval": "2s",
            "concurrency": 1,
            "repository_roots": [project.repository],
            "worktree_root": self.path("worktrees"),
            "runtime_root": self.path("runtime"),
            "repositories": [{"id": REPOSITORY, "path": project.repository}],
            "plugins": [{"id": PLUGIN, "argv": argv}],
            "environment_allowlist": names(variables),
            "check_environment_allowlist": names(variables),
            "ceilings": {
                "plugin_timeout": "15m",
                "check_timeout": "10m",
                "git_timeout": "1m",
                "cleanup_timeout": "10s",
                "plugin_output_bytes": 1_048_576,
                "check_output_bytes": 1_048_576,
                "git_output_bytes": 16_777_216,
            },
        });
        self.write("worker.json", &pretty(&config))
    }
}

/// Thirty-two random hex digits.
pub(crate) fn random() -> Result<String, DemoError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| DemoError::Random {
        reason: error.to_string(),
    })?;
    Ok(Hex32::from_bytes(bytes).to_string())
}

fn names(variables: &[EnvName]) -> Vec<String> {
    let mut names = vec!["PATH".to_owned()];
    for name in variables.iter().map(ToString::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn pretty(config: &Value) -> String {
    format!("{config:#}\n")
}

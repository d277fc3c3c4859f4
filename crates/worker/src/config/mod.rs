//! What a Worker is told: the configuration file, and what the host adds to it.
//!
//! [`WorkerConfig`] is the file alone, judged without looking at anything else; [`Host`] is the
//! same after every path, secret, certificate and variable that it names has been looked up.

mod decode;
mod live;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use bounded::EnvName;
use forge_domain::{ExecutionLimits, PluginId, RepositoryId, WorkerId};
use forge_plugin_protocol::Capability;
use tls_files::Transport;
use url::Url;

pub use live::Host;
pub use paths::HostPath;

use crate::WorkerError;

/// The longest time that jobs get to finish after the first signal, unless the file says so.
pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// What must be free where the Worker writes before it takes a lease, unless the file says so.
pub const DEFAULT_MIN_FREE_BYTES: u64 = 256 << 20;

/// How many workspaces are made ahead for each repository in use, unless the file says so.
const DEFAULT_PREPARED_WORKSPACES: u16 = 1;

/// A configuration file that has been judged on its own.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Where the Gate is, and how it may be reached.
    pub gate: GateAddress,
    /// The name of this Worker at its Gate.
    pub id: WorkerId,
    /// Where the token comes from.
    pub token: TokenSource,
    /// How often a lease is renewed.
    pub heartbeat_interval: Duration,
    /// The number of slots, 1 to 64.
    pub concurrency: u16,
    /// Folders that hold registered repositories.
    pub repository_roots: Vec<HostPath>,
    /// Where workspaces are made.
    pub worktree_root: HostPath,
    /// Where the private folders of checks and plugins are made.
    pub runtime_root: HostPath,
    /// The registered repositories.
    pub repositories: BTreeMap<RepositoryId, HostPath>,
    /// The registered plugins.
    pub plugins: BTreeMap<PluginId, PluginEntry>,
    /// Variables that a policy may hand to a plugin.
    pub environment_allowlist: BTreeSet<EnvName>,
    /// Those of them that a policy may hand to a check.
    pub check_environment_allowlist: BTreeSet<EnvName>,
    /// The most that a policy may ask for.
    pub ceilings: ExecutionLimits,
    /// How long jobs get to finish after the first signal.
    pub drain_timeout: Duration,
    /// The git program, if it is not the one in `PATH`.
    pub git_executable: Option<HostPath>,
    /// How many workspaces are made ahead for each repository that is in use.
    pub prepared_workspaces: u16,
    /// Where undelivered results are kept, if not in a folder of its own in `worktree_root`.
    pub state_dir: Option<HostPath>,
    /// What must be free in `worktree_root`, `runtime_root` and `state_dir` before a lease is
    /// taken; 0 asks for nothing.
    pub min_free_bytes: u64,
}

/// Where the Gate is.
#[derive(Debug, Clone)]
pub struct GateAddress {
    /// `ws://` or `wss://`, a host, perhaps a port; path and query are replaced on connect.
    pub url: Url,
    /// Certificates of the authority that signed the Gate's, if it is a private one.
    pub ca_file: Option<HostPath>,
    /// How the connection is protected; a plain one leaves this machine by the file's word only.
    pub transport: Transport,
}

/// Where the token comes from: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// An environment variable of this name.
    Env(EnvName),
    /// A file.
    File(HostPath),
}

/// One registered plugin.
#[derive(Debug, Clone)]
pub struct PluginEntry {
    /// The program, absolute, and its arguments.
    pub argv: Vec<String>,
    /// What the plugin may be offered, if it is less than everything.
    pub capabilities: Option<Vec<Capability>>,
}

impl WorkerConfig {
    /// Reads and judges the file alone: no secret, no variable, no other file.
    ///
    /// # Errors
    /// The file cannot be read, is not strict JSON, or a field breaks a rule; the message names
    /// file, field and reason.
    pub fn load(path: &Path) -> Result<Self, WorkerError> {
        Ok(cli_shell::config::load(path, decode::config)?)
    }
}

//! The Worker: leases jobs, prepares workspaces, runs plugins and checks, makes candidates.
//!
//! One supervisor a slot holds one connection to the Gate (`slot`); a session carries out one
//! lease at a time and keeps it alive (`session`). What it carries out (`attempt`) may outlive
//! the connection, and its result the process (`results`); the work itself (`runner`) knows
//! nothing of sockets. The Worker opens connections and accepts none; it never fetches, pushes or
//! clones over a network; it sends no byte that a plugin or check printed.

mod acceptance;
mod activity;
mod attempt;
mod backoff;
mod checks;
mod cli;
mod coding;
mod config;
mod disk_guard;
mod error;
mod evidence;
mod examine;
mod execution;
mod kept;
mod lease_clock;
mod link;
mod place;
mod plugin;
mod plugin_identity;
mod ready_workspaces;
mod removals;
mod results;
mod run;
mod runner;
mod runtime_dir;
mod session;
mod shutdown;
mod slot;
mod stop;
mod sweep;
mod websocket;

pub use cli::{command, main_from};
pub use config::{
    DEFAULT_DRAIN_TIMEOUT, DEFAULT_MIN_FREE_BYTES, GateAddress, Host, HostPath, PluginEntry,
    TokenSource, WorkerConfig,
};
pub use error::WorkerError;
pub use examine::examine;

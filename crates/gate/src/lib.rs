//! The control server: queue, leases, evidence and the Worker link over HTTP.
//!
//! A job comes in over HTTP, waits in the store, is leased to an idle slot over
//! that slot's WebSocket, and ends with what the Worker reports. All state lives
//! in the store; what is in memory, live activity for one, can be lost at any
//! time. The Gate starts no process and opens no repository: nothing of a job
//! runs here.

mod activity;
mod cli;
mod config;
mod error;
mod examine;
mod http;
mod link;
mod log;
mod metrics;
mod pools;
mod presence;
mod random;
mod serve;
mod state;
mod timekeeper;
mod tokens;
mod wake;
mod why;

pub use activity::{LiveActivity, MAX_ATTEMPTS, Performer, Recorded, StageReached};
pub use cli::{command, main_from};
pub use config::{Execution, GateConfig, Lifecycle, Listen, Repository, Tls, TokenSource, Worker};
pub use error::GateError;
pub use examine::examine;
pub use http::router;
pub use link::Pace;
pub use serve::Gate;
pub use state::{Clock, GateState};
pub use tokens::{TokenReused, Tokens};
pub use web_server::HostRules;

//! What a transport needs to be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::proxies::Proxies;

/// Whom to trust, how to get there, and how long that may take.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The authorities whose certificates are trusted.
    pub roots: Roots,
    /// Whether plain `http` may leave this machine. Who allows it should warn: everything that is
    /// sent can be read on the way, tokens too ([`crate::HttpTransport::sends_plain`]).
    pub allow_plain_http: bool,
    /// The proxies on the way.
    pub proxies: Proxies,
    /// The limits of time.
    pub times: Times,
}

/// The authorities whose certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Roots {
    /// Those of the system.
    #[default]
    System,
    /// Those in a PEM file, and no others.
    Only(PathBuf),
    /// Those of the system, if it has any, and those in a PEM file.
    SystemAnd(PathBuf),
}

/// The limits of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// For one connection: name, TCP, proxy and TLS.
    pub connect: Duration,
    /// For silence: the longest time in which nothing is sent and nothing arrives.
    pub idle: Duration,
    /// For a request whose bodies are JSON: all attempts, waits and answers.
    pub total: Duration,
    /// The same for a request that may move more than JSON: an artifact, an upload.
    pub transfer: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(30),
            transfer: Duration::from_secs(10 * 60),
        }
    }
}

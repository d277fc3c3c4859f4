//! The side of the core: events, failures, and the session.

mod session;

use std::fmt;
use std::time::Duration;

use crate::announcement::Announcement;
use crate::hook::Hook;
use crate::name::PluginName;
use crate::verdict::Verdict;

pub use session::HostSession;

/// What the core's configuration says about a plugin (seed 3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The declared name.
    pub name: PluginName,
    /// The declared hooks.
    pub hooks: Vec<Hook>,
    /// The declared determinism.
    pub deterministic: bool,
}

/// How a plugin process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for PluginExit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "ended with exit code {code}"),
            Self::Signal(signal) => write!(formatter, "was ended by signal {signal}"),
        }
    }
}

/// What a driver of the session has to know or to do.
#[derive(Debug, Clone, PartialEq)]
pub enum HostEvent {
    /// The plugin is there and what it announced fits.
    Ready(Announcement),
    /// The answer to the open request.
    Verdict(Verdict),
    /// The session is broken, at most once: kill the plugin and its descendants, ask it no more.
    Failed(Failure),
    /// Nothing more will be written: close the plugin's stdin once everything is sent.
    CloseStdin,
    /// Send SIGTERM now.
    Terminate,
    /// Send SIGKILL now.
    Kill,
    /// For the run log only; it may repeat what the plugin wrote, escaped and cut.
    Note(String),
}

/// Why a session is broken. The text is short, plain, and repeats foreign text only escaped and
/// cut, so that a receipt may hold it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// What the plugin announced is not what was declared: a configuration error whatever the
    /// plugin's failure mode says (seed 3.1, 6.2).
    #[error("{0}")]
    Misconfigured(String),
    /// It failed before `hello_ok` was accepted (seed 5).
    #[error("{0}")]
    Start(String),
    /// It failed afterwards: a violation, a time-out, an early end (seed 8).
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Misconfigured(reason) | Self::Start(reason) | Self::Broken(reason) => reason,
        }
    }
}

/// Why a request was not sent. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The message would exceed 1 MiB; the plugin gets no cut version of it.
    #[error("request too large")]
    TooLarge,
    /// The session waits for something else, or is over.
    #[error("the plugin is not waiting for a request")]
    NotIdle,
    /// The hook is not both declared and announced.
    #[error("the hook is not both declared and announced")]
    NotAnnouncedNorDeclared,
}

/// Writes a time limit as people do: whole seconds, else milliseconds.
pub(crate) fn limit(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

//! The ways a run ends without an outcome.

use forge_plugin_protocol::{FailureCategory, InvalidCapabilities};
use process_tree::StartError;

use crate::request::{ARGUMENT_BYTES, ARGUMENTS};

/// A run that has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The request itself is wrong; nothing was started.
    #[error("invalid plugin request")]
    Invalid(#[source] InvalidRequest),
    /// The plugin could not be started.
    #[error("cannot start the plugin")]
    Start(#[source] StartError),
    /// The plugin said that it failed, and ended cleanly.
    #[error("the plugin reported `{category}`{}", shown(stderr_tail))]
    Reported {
        /// What it said of the failure.
        category: FailureCategory,
        /// The last bytes that it wrote to stderr, escaped and cut; may be empty. Private to
        /// the host.
        stderr_tail: String,
    },
    /// Cancelled by the caller or by the time limit. Before the start nothing was started.
    #[error("the plugin was cancelled")]
    Cancelled,
    /// The plugin broke the protocol, or ended in a way that the protocol does not allow.
    #[error("the plugin broke the protocol: {reason}{}", shown(stderr_tail))]
    Protocol {
        /// The rule, and the bytes that broke it, escaped and cut.
        reason: String,
        /// The last bytes that it wrote to stderr, escaped and cut; may be empty. Private to
        /// the host.
        stderr_tail: String,
        /// Whether it had selected its capabilities before. One that ends before may be older
        /// than a capability of the offer.
        initialized: bool,
    },
}

fn shown(stderr_tail: &str) -> String {
    if stderr_tail.is_empty() {
        String::new()
    } else {
        format!("; end of its stderr: `{stderr_tail}`")
    }
}

/// A request that is refused before anything starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// Too few or too many arguments.
    #[error("the command has {0} arguments, must have 1 to {ARGUMENTS}")]
    ArgumentCount(usize),
    /// An argument is empty or too long.
    #[error("argument {index} of the command has {bytes} bytes, must have 1 to {ARGUMENT_BYTES}")]
    ArgumentLength {
        /// Its position, the program being 0.
        index: usize,
        /// Its length.
        bytes: usize,
    },
    /// An argument holds a NUL byte.
    #[error("argument {index} of the command holds a NUL byte")]
    ArgumentNul {
        /// Its position, the program being 0.
        index: usize,
    },
    /// The offer repeats a capability or lacks the operation's.
    #[error("the offered capabilities are invalid: {0}")]
    Offer(InvalidCapabilities),
    /// The system gave no random id.
    #[error("no random session id: {0}")]
    Id(getrandom::Error),
}

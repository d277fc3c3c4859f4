//! What a host session tells its driver, what it is told about the process, and what it comes to.

use std::fmt;

use crate::capability::Capabilities;
use crate::outcome::{FailureCategory, Outcome};
use crate::progress::Progress;
use crate::violation::ProtocolError;

/// What a driver has to do or may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// The plugin selected its capabilities; `execute` is ready to be sent.
    Initialized(Capabilities),
    /// A valid progress frame.
    Progress(Progress),
    /// Close the plugin's standard input.
    CloseStdin,
    /// Nothing more is expected from the plugin.
    Finished {
        /// The plugin may still run: end it now.
        kill: bool,
    },
}

/// How a plugin process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginExit {
    /// Exit code 0 and no descendant kept its output open.
    Success,
    /// Another exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
    /// Ended, but a descendant of it held its output open.
    OutputHeld,
}

/// What a session came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// A valid result and a clean end.
    Completed(Outcome),
    /// A valid failure frame and a clean end.
    Reported(FailureCategory),
    /// Cancelled before the session was concluded.
    Cancelled,
    /// The plugin broke the protocol.
    Broken(ProtocolError),
}

impl fmt::Display for PluginExit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => formatter.write_str("exit 0"),
            Self::Code(code) => write!(formatter, "exit {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
            Self::OutputHeld => formatter.write_str("a descendant that holds its output"),
        }
    }
}

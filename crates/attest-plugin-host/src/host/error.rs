//! Why a run does not begin.

use attest_plugin_protocol::Failure;

use crate::executable::{DigestMismatch, ExecutableError};
use crate::resolve::ResolveError;

/// Why no plugin was asked anything; the run must not begin, and the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The bytes are not those that were reviewed, whatever the failure mode.
    #[error(transparent)]
    DigestMismatch(#[from] DigestMismatch),
    /// What a plugin announced is not what was declared, whatever its failure mode.
    #[error("plugin {plugin} is misconfigured: {reason}")]
    Misconfigured {
        /// The plugin.
        plugin: String,
        /// What does not fit, as visible text.
        reason: String,
    },
    /// The command of a fail-closed plugin names no file that can be started.
    #[error("plugin {plugin} cannot be started")]
    Resolve {
        /// The plugin.
        plugin: String,
        /// What is wrong with its command.
        #[source]
        source: ResolveError,
    },
    /// The file of a fail-closed plugin cannot be opened or hashed.
    #[error("plugin {plugin} cannot be started")]
    Executable {
        /// The plugin.
        plugin: String,
        /// What is wrong with its file.
        #[source]
        source: ExecutableError,
    },
    /// The process of a fail-closed plugin did not start.
    #[error("plugin {plugin} cannot be started")]
    Spawn {
        /// The plugin.
        plugin: String,
        /// What the system says.
        #[source]
        source: process_tree::StartError,
    },
    /// A fail-closed plugin runs and does not answer `hello` as it should.
    #[error("plugin {plugin} failed at its start: {reason}")]
    Hello {
        /// The plugin.
        plugin: String,
        /// What it did, as visible text.
        reason: String,
    },
    /// The run was cancelled meanwhile.
    #[error("cancelled while plugins were starting")]
    Cancelled,
}

/// Why one plugin did not start.
#[derive(Debug)]
pub(super) enum Problem {
    Resolve(ResolveError),
    Executable(ExecutableError),
    DigestMismatch(DigestMismatch),
    Spawn(process_tree::StartError),
    Hello(Failure),
    Cancelled,
}

impl Problem {
    /// Tells whether the failure mode has a say: what is tolerated under fail-open.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::Resolve(_) | Self::Executable(_) | Self::Spawn(_) => true,
            Self::Hello(failure) => !matches!(failure, Failure::Misconfigured(_)),
            Self::DigestMismatch(_) | Self::Cancelled => false,
        }
    }

    /// Says it in a few words without a path, for a receipt.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Resolve(error) => error.reason().to_owned(),
            Self::Executable(error) => error.reason().to_owned(),
            Self::DigestMismatch(_) => "the digest is not the declared one".to_owned(),
            Self::Spawn(error) => refused(error).to_owned(),
            Self::Hello(failure) => failure.reason().to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
        }
    }

    /// Says it in full, for the run log.
    pub(super) fn in_full(&self) -> String {
        match self {
            Self::Resolve(error) => error.to_string(),
            Self::Executable(error) => error.to_string(),
            Self::DigestMismatch(error) => error.to_string(),
            Self::Spawn(error) => match std::error::Error::source(error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
            Self::Hello(_) | Self::Cancelled => self.reason(),
        }
    }

    pub(super) fn of(self, plugin: String) -> StartError {
        match self {
            Self::Resolve(source) => StartError::Resolve { plugin, source },
            Self::Executable(source) => StartError::Executable { plugin, source },
            Self::DigestMismatch(error) => StartError::DigestMismatch(error),
            Self::Spawn(source) => StartError::Spawn { plugin, source },
            Self::Hello(Failure::Misconfigured(reason)) => {
                StartError::Misconfigured { plugin, reason }
            }
            Self::Hello(Failure::Start(reason) | Failure::Broken(reason)) => {
                StartError::Hello { plugin, reason }
            }
            Self::Cancelled => StartError::Cancelled,
        }
    }
}

fn refused(error: &process_tree::StartError) -> &'static str {
    use process_tree::StartError as E;
    match error {
        E::NotFound { .. } | E::NotInPath { .. } => "command not found",
        E::MissingInterpreter { .. } => "the interpreter of the command does not exist",
        E::PermissionDenied { .. } => "command is not executable",
        E::NotExecutable { .. } => "command is in no format that this system runs",
        E::Busy { .. } => "command is open for writing",
        E::WorkingDirectory { .. } => "the workspace cannot be used as working directory",
        _ => "the system refused to start it",
    }
}

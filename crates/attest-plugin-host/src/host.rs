//! All plugins of one run: started, asked one after another, ended together.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use attest_plugin_protocol::{Hook, Payload};
use attest_receipt::receipt::PluginRecord;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use crate::declare::Plugins;
use crate::executable::{DigestMismatch, ExecutableError};
use crate::log::RunLog;
use crate::resolve::{ResolveError, SearchPath};

/// What a host needs beside the declarations.
#[derive(Clone)]
pub struct HostOptions {
    /// The workspace, absolute; also where plugins run.
    pub workspace: PathBuf,
    /// The version that plugins are told.
    pub attest_version: String,
    /// Where bare commands are looked up; also the plugins' `PATH`.
    pub search: SearchPath,
    /// What watches over a plugin's process.
    pub wrapper: Wrapper,
    /// Where findings, notes and the plugins' stderr go.
    pub log: Arc<dyn RunLog>,
    /// Ends everything at once.
    pub cancel: CancellationToken,
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions")
            .field("workspace", &self.workspace)
            .field("attest_version", &self.attest_version)
            .finish_non_exhaustive()
    }
}

/// Why no plugin was asked anything; the run must not begin, and the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The bytes are not those that were reviewed, whatever the failure mode.
    #[error(transparent)]
    DigestMismatch(#[from] DigestMismatch),
    /// What a plugin announced is not what was declared, whatever its failure mode.
    #[error("plugin {plugin} is misconfigured: it {reason}")]
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
    #[error("plugin {plugin} failed at its start: it {reason}")]
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

/// Whether the run may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may.
    Go,
    /// A plugin said no: exit code 1.
    Denied {
        /// The plugin.
        plugin: String,
        /// Its findings, as visible text.
        reason: String,
    },
    /// A fail-closed plugin did not answer: exit code 2.
    Failed {
        /// The plugin.
        plugin: String,
        /// What it did, as visible text.
        reason: String,
    },
    /// The run was cancelled; nobody said anything.
    Cancelled,
}

/// The running plugins of one invocation. Dropping it kills them with all their descendants.
#[derive(Debug)]
pub struct Host {
    _options: HostOptions,
}

impl Host {
    /// Starts and greets every declared plugin, one after another in the order of the file.
    ///
    /// # Errors
    /// See [`StartError`]; no plugin runs any more.
    pub async fn start(_plugins: &Plugins, options: HostOptions) -> Result<Self, StartError> {
        Ok(Self { _options: options })
    }

    /// Asks every plugin that serves the hook, one at a time, until one stops the run.
    pub async fn ask(
        &mut self,
        _hook: Hook,
        _payload: &mut dyn FnMut(bool) -> Payload,
    ) -> Answer {
        Answer::Go
    }

    /// Tells whether a plugin that is asked after steps wants to see what they wrote.
    #[must_use]
    pub fn wants_output(&self) -> bool {
        false
    }

    /// What is recorded about every declared plugin over the whole invocation, sorted by name.
    #[must_use]
    pub fn records(&self) -> Vec<PluginRecord> {
        Vec::new()
    }

    /// What would be recorded if the build that ends now were all of the invocation, sorted by
    /// name; the next build begins. [`Host::records`] is not changed by this.
    pub fn end_build(&mut self) -> Vec<PluginRecord> {
        Vec::new()
    }

    /// Ends all plugins, all at once. Repeating it does nothing.
    pub async fn shutdown(&mut self) {}
}

//! What a plugin is made of: handlers, and the capabilities that follow from them.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use forge_plugin_protocol::Capability;

use crate::failure::chain;
use crate::serve::{self, ServeError};
use crate::{Context, Edit, Failure, WorkspaceTask};

/// The exit code after a broken protocol, and after anything else that leaves no answer.
const BROKEN: u8 = 2;

/// Features that the kit takes part in, in the order in which it selects them.
const FEATURES: [Capability; 4] = [
    Capability::Progress,
    Capability::Cancel,
    Capability::CommitSubject,
    Capability::AgentReport,
];

pub(crate) type TextHandler = Box<dyn FnOnce(String, &Context) -> Result<String, Failure> + Send>;
pub(crate) type WorkspaceHandler =
    Box<dyn FnOnce(WorkspaceTask, &Context) -> Result<Edit, Failure> + Send>;

/// Serves one `text` operation on standard input and output: a whole `main`.
pub fn serve_text(
    handler: impl FnOnce(String, &Context) -> Result<String, Failure> + Send + 'static,
) -> ExitCode {
    Plugin::new("plugin").text(handler).serve()
}

/// Serves one `workspace_edit` operation on standard input and output: a whole `main`.
pub fn serve_workspace(
    handler: impl FnOnce(WorkspaceTask, &Context) -> Result<Edit, Failure> + Send + 'static,
) -> ExitCode {
    Plugin::new("plugin").workspace(handler).serve()
}

/// A plugin: its name, its handlers, and what it takes part in.
#[must_use = "a plugin does nothing until it is served"]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) text: Option<TextHandler>,
    pub(crate) workspace: Option<WorkspaceHandler>,
    features: Vec<Capability>,
}

impl Plugin {
    /// Makes a plugin that can do nothing yet. The name stands in front of its messages.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: None,
            workspace: None,
            features: FEATURES.to_vec(),
        }
    }

    /// Adds the operation `text`: input in, output out, each of at most 65,536 bytes.
    pub fn text(
        mut self,
        handler: impl FnOnce(String, &Context) -> Result<String, Failure> + Send + 'static,
    ) -> Self {
        self.text = Some(Box::new(handler));
        self
    }

    /// Adds the operation `workspace_edit`.
    pub fn workspace(
        mut self,
        handler: impl FnOnce(WorkspaceTask, &Context) -> Result<Edit, Failure> + Send + 'static,
    ) -> Self {
        self.workspace = Some(Box::new(handler));
        self
    }

    /// Takes part in these features only; without it, in `progress` and `cancel`, and with a
    /// workspace handler also in `commit_subject` and `agent_report`. Operations in the list count
    /// for nothing: handlers decide on them.
    pub fn features(mut self, features: impl IntoIterator<Item = Capability>) -> Self {
        self.features = features
            .into_iter()
            .filter(|feature| !feature.is_operation())
            .collect();
        self
    }

    /// Serves one operation on standard input and output, and returns the code to exit with.
    ///
    /// Return it from `main` at once: a handler that did not stop when it was cancelled may still
    /// be running, and ends with the process.
    #[must_use = "the process must end with this code"]
    pub fn serve(self) -> ExitCode {
        let name = self.name.clone();
        match self.serve_on(io::stdin(), io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&name, &chain(&error));
                ExitCode::from(BROKEN)
            }
        }
    }

    /// Serves one operation on any pair of streams, for tests.
    ///
    /// # Errors
    /// The host broke the protocol or went away. A failed operation is no error.
    pub fn serve_on(
        self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> Result<(), ServeError> {
        serve::serve(self, input, output)
    }

    /// Returns what the plugin can do, in the order in which it selects from an offer.
    pub(crate) fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities = Vec::new();
        capabilities.extend(self.text.as_ref().map(|_| Capability::Text));
        capabilities.extend(self.workspace.as_ref().map(|_| Capability::WorkspaceEdit));
        let edits = self.workspace.is_some();
        let useful = |feature: &&Capability| match feature {
            // Both are fields of the result of an edit.
            Capability::CommitSubject | Capability::AgentReport => edits,
            Capability::Text
            | Capability::WorkspaceEdit
            | Capability::Progress
            | Capability::Cancel => true,
        };
        capabilities.extend(self.features.iter().filter(useful));
        capabilities
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            features: _,
            text: _,
            workspace: _,
        } = self;
        formatter
            .debug_struct("Plugin")
            .field("name", name)
            .field("capabilities", &self.capabilities())
            .finish_non_exhaustive()
    }
}

/// Tells people what the host is not told.
pub(crate) fn complain(name: &str, message: &dyn fmt::Display) {
    // Without anyone to read standard error there is nobody to tell.
    drop(writeln!(io::stderr(), "{name}: {message}"));
}

//! What a workspace handler gets and what it gives back.

use std::path::PathBuf;
use std::time::Duration;

/// A workspace to edit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WorkspaceTask {
    /// The absolute path of the workspace.
    pub workspace: PathBuf,
    /// What to do in it: 1 to 65,536 bytes.
    pub instruction: String,
    /// How long the host will wait.
    pub timeout: Duration,
}

/// What a handler says about its edit. The edit itself is what it left in the workspace.
///
/// Both parts are optional, and neither is sent to a host that did not ask for it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Edit {
    pub(crate) commit_subject: Option<String>,
    pub(crate) report: Option<(String, Vec<String>)>,
}

impl Edit {
    /// Says nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Proposes a commit subject: one trimmed line of 1 to 256 bytes without control or format
    /// characters.
    #[must_use]
    pub fn commit_subject(mut self, subject: impl Into<String>) -> Self {
        self.commit_subject = Some(subject.into());
        self
    }

    /// Reports on the edit: a summary of up to 1,024 bytes and 1 to 12 changes of up to 256 bytes
    /// each, all of them trimmed, not empty, and without control or format characters.
    #[must_use]
    pub fn report<C: Into<String>>(
        mut self,
        summary: impl Into<String>,
        changes: impl IntoIterator<Item = C>,
    ) -> Self {
        self.report = Some((
            summary.into(),
            changes.into_iter().map(Into::into).collect(),
        ));
        self
    }
}

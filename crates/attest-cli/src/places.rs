//! Where things are: the workspace, and the keys and trust in it.

use std::path::{Path, PathBuf};

use clap::Args;

/// Which folder is the workspace.
#[derive(Debug, Clone, Args)]
pub(crate) struct Workspace {
    /// The workspace, with `.attest` in it [default: the current folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl Workspace {
    /// Returns the folder, whether or not it is there.
    pub(crate) fn path(&self) -> &Path {
        self.workspace.as_deref().unwrap_or(Path::new("."))
    }
}

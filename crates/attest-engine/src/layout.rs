//! Where a workspace keeps its state.

use std::path::{Path, PathBuf};

/// A workspace, and the folder with its receipts, cache and ledger.
#[derive(Debug, Clone)]
pub struct State {
    workspace: PathBuf,
    folder: PathBuf,
}

impl State {
    /// Names the workspace and its state folder; nothing is looked at.
    #[must_use]
    pub fn new(workspace: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            folder: folder.into(),
        }
    }

    /// Returns the folder to which declared paths are relative.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the folder of the receipts.
    #[must_use]
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    /// Returns the folder of the cache.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    /// Returns the folder of the causal ledger.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.folder.join("causal_ledger")
    }
}

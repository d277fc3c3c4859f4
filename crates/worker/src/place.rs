//! Where a job works: its files, and the private folder beside them.

use git_workspace::{Base, Git, GitError, Workspace};

use crate::config::Host;
use crate::runtime_dir::RuntimeDir;

/// The folders of one job.
///
/// The order of the fields matters: the workspace keeps its git directory in the folder.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) runtime: RuntimeDir,
}

impl Place {
    /// Makes a place with the files of a base.
    pub(crate) async fn make(git: &Git, host: &Host, base: &Base) -> Result<Self, GitError> {
        let runtime = RuntimeDir::make(&host.runtime_root).await?;
        let workspace = git
            .prepare(base, &host.worktree_root, runtime.path())
            .await?;
        Ok(Self { workspace, runtime })
    }

    /// Whether nobody has touched it since it was made.
    pub(crate) async fn is_as_made(&self) -> bool {
        self.runtime.is_whole() && self.workspace.is_as_made().await
    }

    /// Gives the folders names under which nothing looks for them any more. Comes back in any
    /// case, so that it can be removed.
    pub(crate) async fn put_aside(mut self) -> (Option<Self>, Result<(), GitError>) {
        let renamed = tokio::task::spawn_blocking(move || {
            let workspace = self.workspace.put_aside();
            let runtime = self.runtime.put_aside();
            (self, workspace.and(runtime.map_err(GitError::from)))
        });
        match renamed.await {
            Ok((place, done)) => (Some(place), done),
            Err(error) => (None, Err(lost(error))),
        }
    }

    /// Removes the workspace, then what it was made in.
    pub(crate) async fn remove(self) -> Result<(), GitError> {
        let Self { workspace, runtime } = self;
        let removed = workspace.remove().await;
        let closed = tokio::task::spawn_blocking(move || runtime.close()).await;
        removed?;
        Ok(closed.map_err(lost)??)
    }
}

fn lost(error: tokio::task::JoinError) -> GitError {
    GitError::Io {
        action: "remove the folder of a job",
        source: std::io::Error::other(error),
    }
}

//! What a plugin left, recorded as a tree; and the proof that the checks left it as it was.

use bounded::{GitSha, text::visible_bytes};

use crate::{
    GitError, Workspace, WorkspaceFault, head,
    private_git::PrivateGit,
    submodules,
    workspace::{blocking, identity, index_bytes, parse_sha},
};

/// How many changed paths an error names.
const NAMED_PATHS: usize = 5;

/// What a workspace held at one moment, as a tree that only the workspace knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    tree: GitSha,
    changed: bool,
}

impl Snapshot {
    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &GitSha {
        &self.tree
    }

    /// Whether the tree differs from that of the base. Ignored files do not count.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changed
    }
}

impl Workspace {
    /// Records what the plugin left. The folder has to be the one it was given, and HEAD of its
    /// `.git` at the base; ignored files are left out, and so is `.git` itself.
    ///
    /// # Errors
    ///
    /// [`GitError::InvalidWorkspace`] where no candidate can be made of it. A nested repository
    /// with a commit spoils the workspace for good.
    pub async fn snapshot(&mut self) -> Result<Snapshot, GitError> {
        self.check_intact().await?;
        let add = self.private.call("add").work_tree(self.path()).arg("--all");
        if let Err(error) = self.git.run(add).await {
            return Err(match (&error, self.nested_repository().await) {
                (GitError::Failed { .. }, Ok(Some(fault))) => fault.into(),
                _ => error,
            });
        }
        let command = "write-tree";
        let tree = parse_sha(command, &self.git.run(self.private.call(command)).await?)?;
        // Only now: writing the tree may write the index once more.
        let (facts, sealed) = self.read_index().await?;
        if let Err(fault) = submodules::check_none_added(&self.facts.links, &facts.links) {
            self.spoiled = Some(fault.clone());
            return Err(fault.into());
        }
        self.sealed = Some((tree, sealed));
        Ok(Snapshot {
            tree,
            changed: tree != self.base.tree,
        })
    }

    /// Proves that the files are still those of the snapshot, the latest one of this workspace.
    /// Writes nothing. Ignored files may come and go.
    ///
    /// # Errors
    ///
    /// [`GitError::ChecksMutated`] names the first paths that differ; faults as for
    /// [`snapshot`](Self::snapshot).
    pub async fn verify_unchanged(&self, snapshot: &Snapshot) -> Result<(), GitError> {
        self.check_intact().await?;
        let command = "ls-files";
        let differing = self.private.call(command).work_tree(self.path()).args([
            "-z",
            "--modified",
            "--deleted",
            "--others",
            "--exclude-standard",
        ]);
        let differing = self.git.run(differing).await?;
        let mut paths: Vec<_> = differing
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .collect();
        // A deleted file is listed as modified too.
        paths.dedup();
        if !paths.is_empty() {
            return Err(GitError::ChecksMutated {
                paths: name_paths(&paths),
            });
        }
        self.check_sealed(snapshot).await
    }

    /// Proves that the index is the one whose tree the snapshot is, to the byte.
    async fn check_sealed(&self, snapshot: &Snapshot) -> Result<(), GitError> {
        let (index, sealed) = (self.private.index(), self.sealed);
        let found = blocking(move || Ok(index_bytes(&index)?.map(|bytes| blake3::hash(&bytes))));
        if sealed == Some((snapshot.tree, found.await?)) {
            return Ok(());
        }
        Err(GitError::ChecksMutated {
            paths: format!(
                "the index, which no longer is that of tree {}",
                snapshot.tree
            ),
        })
    }

    /// Checks, without git, all that has to hold before git may look at the workspace.
    async fn check_intact(&self) -> Result<(), GitError> {
        if let Some(fault) = &self.spoiled {
            return Err(fault.clone().into());
        }
        let (folder, index) = (self.path().to_owned(), self.private.index());
        let (expected, base, links) = (self.identity, self.base.commit, self.facts.links.clone());
        blocking(move || {
            if identity(&folder) != Some(expected) {
                return Err(WorkspaceFault::Replaced.into());
            }
            head::check(&folder, &base)?;
            submodules::check_empty(&folder, &links)?;
            PrivateGit::remove_stale_lock(&index)
        })
        .await
    }

    /// Finds a repository that git refuses to add, because it has no commit yet.
    async fn nested_repository(&self) -> Result<Option<WorkspaceFault>, GitError> {
        let call = self.private.call("ls-files").work_tree(self.path()).args([
            "-z",
            "--others",
            "--exclude-standard",
        ]);
        let untracked = self.git.run(call).await?;
        let nested = untracked
            .split(|byte| *byte == 0)
            .find_map(|path| path.strip_suffix(b"/"));
        Ok(nested.map(|path| WorkspaceFault::NestedRepository {
            path: visible_bytes(path),
        }))
    }
}

fn name_paths(paths: &[&[u8]]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED_PATHS)
        .map(|path| format!("`{}`", visible_bytes(path)))
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = paths
        .len()
        .checked_sub(NAMED_PATHS)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

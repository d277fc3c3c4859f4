//! A workspace: the files of a base in a private folder, and what became of them.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use bounded::{GitSha, text::visible_bytes};
use safe_fs::PrivateTempDir;

use crate::{
    Base, Git, GitError, WorkspaceFault,
    base::unexpected,
    head,
    index::{self, Facts, ObjectName},
    leftovers::WORKTREE_PREFIX,
    plugin_git,
    private_git::PrivateGit,
    submodules,
};

/// An index larger than this has more than some ten million entries.
const INDEX_BYTES: u64 = 2 << 30;

/// How many changed paths an error names.
const NAMED_PATHS: usize = 5;

/// The files of a base in a private folder, with a git directory outside of it.
///
/// Dropping it removes both, but blocks while it does; call [`remove`](Self::remove).
#[derive(Debug)]
pub struct Workspace {
    pub(crate) git: Git,
    pub(crate) base: Base,
    pub(crate) private: PrivateGit,
    folder: PrivateTempDir,
    /// Device and inode of the folder.
    identity: (u64, u64),
    /// The index of the base.
    facts: Facts,
    /// The contents that the latest snapshot has and the base has not.
    pub(crate) added: Vec<ObjectName>,
    /// What makes it unusable for good: git would enter a nested repository that its index names.
    spoiled: Option<WorkspaceFault>,
}

/// What a workspace held at one moment, as a tree in the repository.
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

impl Git {
    /// Makes a workspace with the files of `base`: a folder with a random name in
    /// `worktree_root`, and its git directory in `runtime_dir`. Nothing depends on a task yet,
    /// so this can be done before there is one.
    ///
    /// # Errors
    ///
    /// Objects are missing (a partial clone is not completed from afar), or a limit was hit.
    pub async fn prepare(
        &self,
        base: &Base,
        worktree_root: &Path,
        runtime_dir: &Path,
    ) -> Result<Workspace, GitError> {
        let (root, runtime, wanted) = (
            worktree_root.to_owned(),
            runtime_dir.to_owned(),
            base.clone(),
        );
        let (private, folder, identity) = blocking(move || {
            let folder = PrivateTempDir::new_in(&root, WORKTREE_PREFIX)?;
            let identity = identity(folder.path()).ok_or(WorkspaceFault::Replaced)?;
            Ok((PrivateGit::create(&wanted, &runtime)?, folder, identity))
        })
        .await?;
        let mut workspace = Workspace {
            git: self.clone(),
            base: base.clone(),
            private,
            folder,
            identity,
            facts: Facts::default(),
            added: Vec::new(),
            spoiled: None,
        };
        workspace.check_out().await?;
        workspace.equip(plugin_git::create).await?;
        Ok(workspace)
    }
}

impl Workspace {
    /// The folder with the files.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The commit it was made of.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Sets the limits and the cancellation of what follows, for a workspace made ahead of time.
    pub fn set_git(&mut self, git: Git) {
        self.git = git;
    }

    /// Brings a workspace that nobody has touched since [`Git::prepare`] to another base of the
    /// same repository, at the cost of what differs.
    ///
    /// # Errors
    ///
    /// As [`Git::prepare`]; the workspace is of no use then.
    pub async fn move_to(&mut self, base: &Base) -> Result<(), GitError> {
        if base.repository != self.base.repository {
            return Err(GitError::NotARepository {
                path: base.repository.path().to_owned(),
                reason: "the workspace belongs to another one",
            });
        }
        self.base = base.clone();
        self.private.set_head(base)?;
        self.check_out().await?;
        self.equip(plugin_git::update).await
    }

    /// Records what the plugin left. The folder has to be the one it was given, and HEAD of its
    /// `.git` at the base; ignored files are left out, and so is `.git` itself.
    ///
    /// # Errors
    ///
    /// [`GitError::InvalidWorkspace`] where no candidate can be made of it. A nested repository
    /// with a commit spoils the workspace for good.
    pub async fn snapshot(&mut self) -> Result<Snapshot, GitError> {
        self.check_intact().await?;
        let add = self
            .private
            .call("add")
            .config("core.fsync=committed,-loose-object")
            .work_tree(self.path())
            .arg("--all");
        if let Err(error) = self.git.run(add).await {
            return Err(match (&error, self.nested_repository().await) {
                (GitError::Failed { .. }, Ok(Some(fault))) => fault.into(),
                _ => error,
            });
        }
        let answer = self.git.run(self.private.call("write-tree")).await?;
        let tree = parse_sha("write-tree", &answer)?;
        // Only now: writing the tree may write the index once more.
        let facts = self.read_index().await?;
        if let Err(fault) = submodules::check_none_added(&self.facts.links, &facts.links) {
            self.spoiled = Some(fault.clone());
            return Err(fault.into());
        }
        self.added = facts.blobs.difference(&self.facts.blobs).copied().collect();
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
        let (differing, tree) = tokio::join!(
            self.git.run(differing),
            self.git.run(self.private.call("write-tree"))
        );
        let differing = differing?;
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
        let tree = parse_sha("write-tree", &tree?)?;
        if tree != snapshot.tree {
            return Err(GitError::ChecksMutated {
                paths: format!("tree {tree}, not {}", snapshot.tree),
            });
        }
        Ok(())
    }

    /// Removes the folder and its git directory. Links in it are removed, never followed.
    ///
    /// # Errors
    ///
    /// What could not be removed; the rest is gone.
    pub async fn remove(self) -> Result<(), GitError> {
        let Self {
            folder, private, ..
        } = self;
        blocking(move || {
            let (folder, private) = (folder.close(), private.close());
            folder?;
            private
        })
        .await
    }

    async fn check_out(&mut self) -> Result<(), GitError> {
        let call = self.private.call("read-tree").work_tree(self.path()).args([
            "-u",
            "--reset",
            self.base.commit.as_str(),
        ]);
        self.git.run(call).await?;
        self.facts = self.read_index().await?;
        Ok(())
    }

    async fn equip(
        &self,
        equip: impl FnOnce(&Base, &Path, &Path) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), GitError> {
        let (base, folder, index) = (
            self.base.clone(),
            self.path().to_owned(),
            self.private.index(),
        );
        blocking(move || {
            equip(&base, &folder, &index).map_err(GitError::io("write the workspace's own `.git`"))
        })
        .await
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

    /// Reads what git has just written into the index, and sees to it that git compares the
    /// content of every file next time where sizes and times would not tell enough.
    async fn read_index(&self) -> Result<Facts, GitError> {
        let path: PathBuf = self.private.index();
        blocking(move || {
            let bytes = match safe_fs::read_bounded(&path, INDEX_BYTES) {
                Ok(bytes) => bytes,
                // Git writes no index for a base without files.
                Err(error) if error.is_not_found() => return Ok(Facts::default()),
                Err(error) => return Err(error.into()),
            };
            let written = fs_err::metadata(&path)
                .map_err(GitError::io("examine the index"))?
                .mtime();
            let facts = index::facts(&bytes, written)
                .ok_or_else(|| unexpected("add", b"an index of an unknown format"))?;
            if facts.may_hide_edits {
                // Git trusts no entry that is younger than its index.
                fs_err::OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .and_then(|index| {
                        index
                            .file()
                            .set_modified(UNIX_EPOCH + Duration::from_secs(1))
                    })
                    .map_err(GitError::io("date back the index"))?;
            }
            Ok(facts)
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

/// Runs what blocks on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| GitError::Io {
            action: "finish file work",
            source: std::io::Error::other(error),
        })?
}

pub(crate) fn parse_sha(command: &'static str, answer: &[u8]) -> Result<GitSha, GitError> {
    std::str::from_utf8(answer.trim_ascii_end())
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| unexpected(command, answer))
}

/// Device and inode of a folder that is no link.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs_err::symlink_metadata(path).ok()?;
    found.is_dir().then(|| (found.dev(), found.ino()))
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

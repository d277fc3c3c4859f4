//! A workspace: the files of a base in a private folder, and what became of them.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use bounded::GitSha;
use safe_fs::PrivateTempDir;

use crate::{
    Base, Git, GitError, WorkspaceFault,
    base::unexpected,
    head,
    index::{self, Facts},
    plugin_git,
    private_git::{self, PrivateGit},
    untouched,
};

/// What the names of workspace folders begin with.
pub const WORKTREE_PREFIX: &str = "forge-worktree-";

/// What the names of folders begin with that only wait for their removal.
pub const REMOVED_PREFIX: &str = "forge-removed-";

/// An index larger than this has more than some ten million entries.
const INDEX_BYTES: u64 = 2 << 30;

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
    pub(crate) identity: (u64, u64),
    /// The index of the base.
    pub(crate) facts: Facts,
    /// The latest snapshot: its tree, and the index that git made it of.
    pub(crate) sealed: Option<(GitSha, Option<blake3::Hash>)>,
    /// What makes it unusable for good: git would enter a nested repository that its index names.
    pub(crate) spoiled: Option<WorkspaceFault>,
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
            sealed: None,
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

    /// Tells whether the workspace still is as it was made: every file the one that git wrote,
    /// nothing beside them, both git directories whole, and the operator's own ignore rules and
    /// attributes as they were. For one that has waited; another is to be made where it is not.
    pub async fn is_as_made(&self) -> bool {
        let (folder, private) = (self.path().to_owned(), self.private.path().to_owned());
        let (index, identity_then, base) = (self.private.index(), self.identity, self.base.clone());
        let looked = blocking(move || {
            Ok(identity(&folder) == Some(identity_then)
                && PrivateGit::is_whole(&private)
                && private_git::has_current_info(&base, &private)?
                && plugin_git::is_as_made(&base, &folder)
                && head::check(&folder, &base.commit).is_ok()
                && untouched::is_untouched(&folder, index_bytes(&index)?.as_deref()))
        });
        looked.await.unwrap_or(false)
    }

    /// Brings a workspace that [is as it was made](Self::is_as_made) to another base of the same
    /// repository, at the cost of what differs.
    ///
    /// # Errors
    ///
    /// As [`Git::prepare`], or [`GitError::CannotMove`]; the workspace is of no use then.
    pub async fn move_to(&mut self, base: &Base) -> Result<(), GitError> {
        if base.repository != self.base.repository {
            return Err(GitError::CannotMove {
                reason: "it belongs to another repository",
            });
        }
        self.base = base.clone();
        PrivateGit::remove_stale_lock(&self.private.index())?;
        self.private.set_base(base)?;
        let attributes = std::mem::take(&mut self.facts.attributes);
        self.check_out().await?;
        if attributes != self.facts.attributes {
            // Git would leave files as they are that the new rules write in another way.
            return Err(GitError::CannotMove {
                reason: "the bases differ in their attributes",
            });
        }
        self.equip(plugin_git::update).await
    }

    /// Gives the folder another random name, under which nothing looks for it any more. What is
    /// left to do is [`remove`](Self::remove), at any time.
    ///
    /// # Errors
    ///
    /// The operating system refuses. A folder that is gone is fine.
    pub fn put_aside(&mut self) -> Result<(), GitError> {
        Ok(self.folder.put_aside(REMOVED_PREFIX)?)
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
        (self.facts, _) = self.read_index().await?;
        self.sealed = None;
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

    /// Reads what git has just written into the index, and sees to it that git compares the
    /// content of every file next time where sizes and times would not tell enough.
    pub(crate) async fn read_index(&self) -> Result<(Facts, Option<blake3::Hash>), GitError> {
        let path: PathBuf = self.private.index();
        blocking(move || {
            let Some(bytes) = index_bytes(&path)? else {
                return Ok((Facts::default(), None));
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
            Ok((facts, Some(blake3::hash(&bytes))))
        })
        .await
    }
}

/// Reads an index; git writes none for a base without files. Blocks.
pub(crate) fn index_bytes(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    match safe_fs::read_bounded(path, INDEX_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
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
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs_err::symlink_metadata(path).ok()?;
    found.is_dir().then(|| (found.dev(), found.ino()))
}

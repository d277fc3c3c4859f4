//! The candidate: one commit on top of the base, and a ref of its own that keeps it.

use std::{
    fmt,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use bounded::{AuthorEmail, AuthorName, CommitSubject, GitSha, Hex32, text::visible_bytes};

use crate::{
    GitError, Snapshot, Workspace,
    base::unexpected,
    git::{Call, failure},
    quarantine,
    workspace::{blocking, parse_sha},
};

/// Below here are all refs that this crate ever writes.
const PREFIX: &str = "refs/agent-forge/candidates/";

/// The file of a ref holds one name of an object.
const REF_BYTES: u64 = 128;

const COMMITTER_NAME: &str = "Agent Forge";
const COMMITTER_EMAIL: &str = "forge@example.invalid";

/// The name of a candidate's ref: `refs/agent-forge/candidates/<job>/<attempt>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CandidateRef {
    job: Hex32,
    attempt: Hex32,
}

impl CandidateRef {
    /// Names the ref of one attempt of a job.
    #[must_use]
    pub fn new(job: Hex32, attempt: Hex32) -> Self {
        Self { job, attempt }
    }
}

impl fmt::Display for CandidateRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}/{}", self.job, self.attempt)
    }
}

/// Whom a commit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: AuthorName,
    /// The address.
    pub email: AuthorEmail,
}

/// The commit of a candidate, whole in the repository and on the disk; without a ref nobody knows
/// of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft {
    commit: GitSha,
}

impl Draft {
    /// The commit.
    #[must_use]
    pub fn commit(&self) -> &GitSha {
        &self.commit
    }
}

impl Workspace {
    /// Makes the commit of the latest snapshot, with the base as its only parent. The author is
    /// `author` or Agent Forge, the committer always Agent Forge, the message the subject alone.
    /// Nothing is signed, no hook and no editor runs. Of the workspace it reads nothing, so that
    /// it may run beside [`verify_unchanged`](Self::verify_unchanged).
    ///
    /// # Errors
    ///
    /// [`GitError::NoChanges`], or what git says. A commit without a ref stays unreachable, and
    /// the repository's own housekeeping removes it.
    pub async fn draft(
        &self,
        snapshot: &Snapshot,
        subject: &CommitSubject,
        author: Option<&Identity>,
    ) -> Result<Draft, GitError> {
        if !snapshot.changed() {
            return Err(GitError::NoChanges);
        }
        let commit = self.commit_tree(snapshot, subject, author).await?;
        let (from, to) = (self.private.objects(), self.base.repository.objects());
        let copied = self.base.shared.is_some();
        blocking(move || {
            quarantine::release(&from, &to, copied)
                .map_err(GitError::io("store the objects of the candidate"))
        })
        .await?;
        self.prove_whole(&commit, snapshot).await?;
        Ok(Draft { commit })
    }

    /// Creates `name`, which must not exist, for the commit.
    ///
    /// # Errors
    ///
    /// [`GitError::CandidateExists`], or what git says.
    pub async fn publish(&self, draft: &Draft, name: &CandidateRef) -> Result<GitSha, GitError> {
        let commit = draft.commit;
        self.create_ref(&commit, name).await?;
        match self.held(name).await? {
            Some(held) if held == commit.as_str() => Ok(commit),
            held => Err(GitError::CandidateMismatch {
                name: *name,
                found: held.unwrap_or_default(),
            }),
        }
    }

    /// Does both, for a caller that has nothing to do in between.
    ///
    /// # Errors
    ///
    /// As [`draft`](Self::draft) and [`publish`](Self::publish).
    pub async fn commit(
        &self,
        snapshot: &Snapshot,
        subject: &CommitSubject,
        author: Option<&Identity>,
        name: &CandidateRef,
    ) -> Result<GitSha, GitError> {
        let draft = self.draft(snapshot, subject, author).await?;
        self.publish(&draft, name).await
    }

    async fn commit_tree(
        &self,
        snapshot: &Snapshot,
        subject: &CommitSubject,
        author: Option<&Identity>,
    ) -> Result<GitSha, GitError> {
        let (author_name, author_email) = author
            .map_or((COMMITTER_NAME, COMMITTER_EMAIL), |author| {
                (author.name.as_str(), author.email.as_str())
            });
        let command = "commit-tree";
        let call = self
            .private
            .call(command)
            .args([snapshot.tree().as_str(), "-p", self.base.commit.as_str()])
            .args(["-F", "-"])
            .config("i18n.commitEncoding=utf-8")
            .env("GIT_AUTHOR_NAME", author_name)
            .env("GIT_AUTHOR_EMAIL", author_email)
            .env("GIT_COMMITTER_NAME", COMMITTER_NAME)
            .env("GIT_COMMITTER_EMAIL", COMMITTER_EMAIL)
            .stdin(format!("{subject}\n"));
        parse_sha(command, &self.git.run(call).await?)
    }

    /// Asks the repository alone, which proves that it has the objects too.
    async fn prove_whole(&self, commit: &GitSha, snapshot: &Snapshot) -> Result<(), GitError> {
        let (tree, base) = (snapshot.tree(), self.base.commit);
        let command = "cat-file";
        let call = Call::new(command, Some(self.base.repository.common_dir()))
            .arg("--batch-check=%(objectname) %(objecttype)")
            .stdin(format!("{commit}\n{commit}^{{tree}}\n{commit}^\n"));
        let found = self.git.run(call).await?;
        if found == format!("{commit} commit\n{tree} tree\n{base} commit\n").as_bytes() {
            Ok(())
        } else {
            Err(unexpected(command, &found))
        }
    }

    /// Creates the ref. The lock that a killed predecessor left on it is removed, see
    /// [`StaleLock`].
    async fn create_ref(&self, commit: &GitSha, name: &CandidateRef) -> Result<(), GitError> {
        let command = "update-ref";
        let stale = StaleLock::find(self.base.repository.common_dir(), name);
        for last in [stale.is_none(), true] {
            let call = Call::new(command, Some(self.base.repository.common_dir()))
                .arg("--stdin")
                .stdin(format!("create {name} {commit}\n"));
            let captured = self.git.capture(call).await?;
            if captured.exit.is_success() {
                return Ok(());
            }
            if self.held(name).await?.is_some() {
                return Err(GitError::CandidateExists { name: *name });
            }
            let removed = !last && stale.as_ref().is_some_and(StaleLock::remove);
            if !removed {
                let common_dir = self.base.repository.common_dir();
                let lock = lock_in_the_way(common_dir, name);
                return Err(lock.unwrap_or_else(|| failure(command, &captured)));
            }
        }
        Ok(())
    }

    /// The commit that the ref holds.
    async fn held(&self, name: &CandidateRef) -> Result<Option<String>, GitError> {
        let name = name.to_string();
        let file = self.base.repository.common_dir().join(&name);
        // A file of its own is what git has just made; anything else is asked of git.
        let read = blocking(move || Ok(safe_fs::read_bounded(&file, REF_BYTES).ok())).await?;
        if let Some(held) = read
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .filter(|held| held.trim_end().parse::<GitSha>().is_ok())
        {
            return Ok(Some(held.trim_end().to_owned()));
        }
        let call = Call::new("for-each-ref", Some(self.base.repository.common_dir()))
            .arg("--format=%(refname) %(objectname)")
            .arg(&name);
        let answer = self.git.run(call).await?;
        // The pattern also matches refs below a folder of that name.
        let held = answer
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "));
        Ok(held.map(visible_bytes))
    }
}

/// The error for a lock that git has waited for in vain: of this ref, or of all refs where they are
/// kept in tables.
fn lock_in_the_way(common_dir: &Path, name: &CandidateRef) -> Option<GitError> {
    [
        format!("{name}.lock"),
        "reftable/tables.list.lock".to_owned(),
    ]
    .into_iter()
    .map(|lock| common_dir.join(lock))
    .find(|lock| fs_err::symlink_metadata(lock).is_ok())
    .map(|lock| GitError::Locked { name: *name, lock })
}

/// The lock file of a candidate's ref, left by a git that was killed.
///
/// Two things together say that no live process holds it: only this attempt ever writes that ref,
/// and the very same file was there before our git began and after it had waited in vain.
struct StaleLock {
    path: PathBuf,
    identity: (u64, u64, i64, i64),
}

impl StaleLock {
    fn find(common_dir: &Path, name: &CandidateRef) -> Option<Self> {
        let path = common_dir.join(format!("{name}.lock"));
        let identity = Self::identity(&path)?;
        Some(Self { path, identity })
    }

    /// Removes it if it is still the same file.
    fn remove(&self) -> bool {
        Self::identity(&self.path) == Some(self.identity) && fs_err::remove_file(&self.path).is_ok()
    }

    fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
        let found = fs_err::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked() -> (tempfile::TempDir, CandidateRef, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let name = CandidateRef::new(Hex32::from_bytes([1; 16]), Hex32::from_bytes([2; 16]));
        let path = dir.path().join(format!("{name}.lock"));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "").unwrap();
        (dir, name, path)
    }

    #[test]
    fn r44_a_lock_that_has_not_changed_is_removed() {
        let (dir, name, path) = locked();
        let lock = StaleLock::find(dir.path(), &name).unwrap();
        assert!(lock.remove());
        assert!(!path.exists());
        assert!(!lock.remove());
    }

    #[test]
    fn r44_a_lock_that_somebody_took_meanwhile_is_left_alone() {
        let (dir, name, path) = locked();
        let lock = StaleLock::find(dir.path(), &name).unwrap();
        fs_err::write(path.with_extension("new"), "").unwrap();
        fs_err::rename(path.with_extension("new"), &path).unwrap();
        assert!(!lock.remove());
        assert!(path.exists());
        assert!(StaleLock::find(&dir.path().join("elsewhere"), &name).is_none());
    }
}

//! The candidate: one commit on top of the base, and a ref of its own that keeps it.

use std::{fmt, path::PathBuf};

use bounded::{AuthorEmail, AuthorName, CommitSubject, GitSha, Hex32, text::visible_bytes};

use crate::{
    GitError, Snapshot, Workspace, durable,
    git::{Call, failure},
    workspace::{blocking, parse_sha},
};

/// Below here are all refs that this crate ever writes.
const PREFIX: &str = "refs/agent-forge/candidates/";

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

impl Workspace {
    /// Commits the latest snapshot with the base as its only parent, and creates `name` for it, which
    /// must not exist. The author is `author` or Agent Forge, the committer always Agent Forge,
    /// the message the subject alone. Nothing is signed, no hook and no editor runs.
    ///
    /// # Errors
    ///
    /// [`GitError::NoChanges`], [`GitError::CandidateExists`], or what git says. Without a ref
    /// the commit stays unreachable, and the repository's own housekeeping removes it.
    pub async fn commit(
        &self,
        snapshot: &Snapshot,
        subject: &CommitSubject,
        author: Option<&Identity>,
        name: &CandidateRef,
    ) -> Result<GitSha, GitError> {
        if !snapshot.changed() {
            return Err(GitError::NoChanges);
        }
        let base = self.base.commit;
        let (objects, added) = (self.base.repository.objects(), self.added.clone());
        let synced = blocking(move || {
            durable::sync_objects(&objects, &added)
                .map_err(GitError::io("synchronise the objects of the candidate"))
        });
        let (author_name, author_email) = author
            .map_or((COMMITTER_NAME, COMMITTER_EMAIL), |author| {
                (author.name.as_str(), author.email.as_str())
            });
        let call = self
            .private
            .call("commit-tree")
            .args([snapshot.tree().as_str(), "-p", base.as_str(), "-F", "-"])
            .config("i18n.commitEncoding=utf-8")
            .env("GIT_AUTHOR_NAME", author_name)
            .env("GIT_AUTHOR_EMAIL", author_email)
            .env("GIT_COMMITTER_NAME", COMMITTER_NAME)
            .env("GIT_COMMITTER_EMAIL", COMMITTER_EMAIL)
            .stdin(format!("{subject}\n"));
        let (synced, commit) = tokio::join!(synced, self.git.run(call));
        synced?;
        let commit = parse_sha("commit-tree", &commit?)?;
        self.create_ref(&commit, name).await?;

        // Asked of the repository alone, this proves that it has the objects too.
        let expected = format!("{commit} commit {} {base}", snapshot.tree());
        match self.held(name).await? {
            Some(held) if held == expected => Ok(commit),
            held => Err(GitError::CandidateMismatch {
                name: *name,
                found: held.unwrap_or_default(),
            }),
        }
    }

    async fn create_ref(&self, commit: &GitSha, name: &CandidateRef) -> Result<(), GitError> {
        for last in [false, true] {
            let command = "update-ref";
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
            if last || !self.remove_stale_lock(name).await? {
                return Err(failure(command, &captured));
            }
        }
        Ok(())
    }

    /// Removes the lock file of the candidate's ref. Only this attempt ever writes that ref, and
    /// only once, so whoever left the lock is dead.
    async fn remove_stale_lock(&self, name: &CandidateRef) -> Result<bool, GitError> {
        let lock: PathBuf = self
            .base
            .repository
            .common_dir()
            .join(format!("{name}.lock"));
        blocking(move || match fs_err::remove_file(lock) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(GitError::Io {
                action: "remove a stale lock of the candidate ref",
                source,
            }),
        })
        .await
    }

    /// What the ref holds: commit, kind, tree and parents.
    async fn held(&self, name: &CandidateRef) -> Result<Option<String>, GitError> {
        let name = name.to_string();
        let call = Call::new("for-each-ref", Some(self.base.repository.common_dir()))
            .arg("--format=%(refname) %(objectname) %(objecttype) %(tree) %(parent)")
            .arg(&name);
        let answer = self.git.run(call).await?;
        // The pattern also matches refs below a folder of that name.
        let held = answer
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "));
        Ok(held.map(visible_bytes))
    }
}

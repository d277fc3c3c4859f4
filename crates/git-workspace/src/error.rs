//! Why git work was refused or failed; a text of git itself is quoted with controls made visible.

use std::{io, path::PathBuf, time::Duration};

use bounded::{BranchName, GitSha};
use process_tree::{CaptureError, StartError};
use safe_fs::SafeFsError;

use crate::CandidateRef;

/// Why git work was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The path names no git repository.
    #[error("`{}` is not a git repository: {reason}", path.display())]
    NotARepository {
        /// The path as it was given.
        path: PathBuf,
        /// What is missing or wrong.
        reason: &'static str,
    },
    /// The repository names its objects by SHA-256.
    #[error("`{}` uses the object format `{format}`; only sha1 repositories are supported", path.display())]
    ObjectFormat {
        /// The repository.
        path: PathBuf,
        /// Its format, as git calls it.
        format: String,
    },
    /// The repository has no object of that name.
    #[error("`{}` has no commit {base}; fetch it there first", repository.display())]
    BaseMissing {
        /// The repository.
        repository: PathBuf,
        /// The missing commit.
        base: GitSha,
    },
    /// The object exists but is something else.
    #[error("{base} in `{}` is a {kind}, not a commit", repository.display())]
    BaseNotACommit {
        /// The repository.
        repository: PathBuf,
        /// The object.
        base: GitSha,
        /// What it is, as git calls it.
        kind: String,
    },
    /// The repository has no such branch.
    #[error("`{}` has no branch `{branch}`", repository.display())]
    BranchMissing {
        /// The repository.
        repository: PathBuf,
        /// The missing branch.
        branch: BranchName,
    },
    /// The commit exists but the branch does not contain it.
    #[error("commit {base} is not an ancestor of branch `{branch}` in `{}`", repository.display())]
    BaseNotOnBranch {
        /// The repository.
        repository: PathBuf,
        /// The commit.
        base: GitSha,
        /// The branch.
        branch: BranchName,
    },
    /// The commit is there, but what belongs to it cannot be read.
    #[error(
        "`{}` is damaged or incomplete at {base}: {detail}; look at it with `git fsck` there",
        repository.display()
    )]
    Damaged {
        /// The repository.
        repository: PathBuf,
        /// The commit that was asked for.
        base: GitSha,
        /// What is missing, or what git says, with controls made visible.
        detail: String,
    },
    /// A workspace made ahead cannot serve another base.
    #[error("the workspace cannot be moved to another base: {reason}")]
    CannotMove {
        /// Why.
        reason: &'static str,
    },
    /// A revision names no commit.
    #[error("`{revision}` names no commit in `{}`", repository.display())]
    UnknownRevision {
        /// The repository.
        repository: PathBuf,
        /// What was asked for.
        revision: String,
    },
    /// A text cannot be used as an argument for git.
    #[error("`{value}` cannot be used as {what}: {reason}")]
    UnusableArgument {
        /// What it was meant to be.
        what: &'static str,
        /// The text, with controls made visible.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No candidate can be made of what is in the workspace.
    #[error("invalid workspace")]
    InvalidWorkspace(#[from] WorkspaceFault),
    /// The checks changed files that belong to the candidate.
    #[error("the checks changed the workspace: {paths}")]
    ChecksMutated {
        /// The first paths that differ, with controls made visible.
        paths: String,
    },
    /// The snapshot equals the base, so that there is nothing to commit.
    #[error("the workspace has no changes")]
    NoChanges,
    /// The ref of the candidate is taken.
    #[error("candidate ref `{name}` exists already")]
    CandidateExists {
        /// The ref.
        name: CandidateRef,
    },
    /// Another process holds a lock, or has left it.
    #[error(
        "candidate ref `{name}` is locked by `{}`; if no git runs in that repository, remove the file",
        lock.display()
    )]
    Locked {
        /// The ref.
        name: CandidateRef,
        /// The lock.
        lock: PathBuf,
    },
    /// What git stored is not what was asked for.
    #[error("candidate ref `{name}` does not hold the commit that was made: {found}")]
    CandidateMismatch {
        /// The ref.
        name: CandidateRef,
        /// What the repository says it holds.
        found: String,
    },
    /// The installed git lacks what the hardening relies on.
    #[error("git {found} is too old; {needed} or newer is needed")]
    GitTooOld {
        /// The version found.
        found: String,
        /// The oldest version that is accepted.
        needed: &'static str,
    },
    /// The search path holds no git.
    #[error("no executable `git` in the absolute entries of PATH `{path}`; install git")]
    GitNotFound {
        /// The path that was searched.
        path: String,
    },
    /// Git could not be started.
    #[error("cannot run git")]
    Start(#[source] StartError),
    /// Git ran longer than the policy allows and was killed.
    #[error("`git {command}` did not end within {after:?}")]
    Timeout {
        /// The git command.
        command: &'static str,
        /// The limit.
        after: Duration,
    },
    /// Git wrote more than the policy allows and was killed.
    #[error("`git {command}` wrote more than {limit} bytes")]
    OutputLimit {
        /// The git command.
        command: &'static str,
        /// The limit for stdout and stderr together.
        limit: u64,
    },
    /// The work was cancelled.
    #[error("git work was cancelled")]
    Cancelled,
    /// The end of git cannot be told.
    #[error("`git {command}` was lost")]
    Lost {
        /// The git command.
        command: &'static str,
        /// Why.
        #[source]
        source: Box<CaptureError>,
    },
    /// Git itself says no.
    #[error("`git {command}` failed ({status}): {stderr}")]
    Failed {
        /// The git command.
        command: &'static str,
        /// Its exit code or signal.
        status: String,
        /// The end of what it wrote to stderr, with controls made visible.
        stderr: String,
    },
    /// Git answered in a way that this version does not know.
    #[error("`git {command}` answered unexpectedly: {answer}")]
    UnexpectedAnswer {
        /// The git command.
        command: &'static str,
        /// Its answer, with controls made visible.
        answer: String,
    },
    /// A private folder could not be made, read or removed.
    #[error("cannot use the folders of the workspace")]
    Files(#[from] SafeFsError),
    /// A file could not be read or written.
    #[error("failed to {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The answer of the operating system, which names the path.
        #[source]
        source: io::Error,
    },
}

impl GitError {
    /// Tells whether the task itself is at fault: it names a repository, branch or base that
    /// cannot serve. Such a task fails in the same way whenever it is tried.
    #[must_use]
    pub fn is_invalid_task(&self) -> bool {
        matches!(
            self,
            Self::NotARepository { .. }
                | Self::ObjectFormat { .. }
                | Self::BaseMissing { .. }
                | Self::BaseNotACommit { .. }
                | Self::BranchMissing { .. }
                | Self::BaseNotOnBranch { .. }
        )
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

/// What a plugin left in a workspace so that no candidate can be made of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceFault {
    /// The folder itself is gone or another one.
    #[error("its folder was removed or replaced")]
    Replaced,
    /// The plugin's own `.git` is not the folder that it was given.
    #[error("its `.git` was removed or replaced; a plugin edits files and leaves `.git` in place")]
    GitDirReplaced,
    /// The plugin committed, or switched to another commit.
    #[error(
        "HEAD of its `.git` is no longer at base {base} ({found}); a plugin edits files and makes no commits"
    )]
    HeadMoved {
        /// The commit it has to be at.
        base: GitSha,
        /// What HEAD says, with controls made visible.
        found: String,
    },
    /// A git repository inside the workspace would be added as a link to a commit that nobody has.
    #[error("`{path}` is a git repository of its own; remove its `.git` or ignore it")]
    NestedRepository {
        /// The folder, relative to the workspace, with controls made visible.
        path: String,
    },
    /// Files were put where the base has a submodule, whose content is never part of a candidate.
    #[error(
        "`{path}` is a submodule, which is not checked out here, and files in it cannot become part of a candidate"
    )]
    SubmoduleFilled {
        /// The folder, relative to the workspace, with controls made visible.
        path: String,
    },
}

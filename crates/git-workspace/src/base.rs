//! Proves that a base can serve: a commit of this repository that its default branch contains.

use std::path::Path;

use bounded::{BranchName, GitSha, text::visible_bytes};
use process_tree::Captured;

use crate::{
    Git, GitError, Repository,
    git::{Call, failure, quoted},
};

/// A commit of a repository, proved to be on the branch that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub(crate) repository: Repository,
    pub(crate) commit: GitSha,
    pub(crate) tree: GitSha,
    /// The repository's `core.sharedRepository`, so that others can still write beside us.
    pub(crate) shared: Option<String>,
}

impl Base {
    /// The commit.
    #[must_use]
    pub fn commit(&self) -> &GitSha {
        &self.commit
    }

    /// The tree of the commit.
    #[must_use]
    pub fn tree(&self) -> &GitSha {
        &self.tree
    }

    /// The repository that holds it.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }
}

impl Git {
    /// Proves that `base` is a commit in `repository` and an ancestor of (or equal to) the tip of
    /// `refs/heads/<branch>`. Changes nothing.
    ///
    /// # Errors
    ///
    /// Each way to be wrong has its own variant; see [`GitError::is_invalid_task`].
    pub async fn check_base(
        &self,
        repository: &Path,
        base: &GitSha,
        branch: &BranchName,
    ) -> Result<Base, GitError> {
        let repository = Repository::open(repository)?;
        let (proved, contained) = tokio::join!(
            self.commit_and_tree(&repository, base),
            self.contains(&repository, base, branch)
        );
        let tree = proved?;
        if !contained? {
            return Err(self.why_not_contained(repository, base, branch).await?);
        }
        let shared = self.shared_repository(&repository).await?;
        Ok(Base {
            repository,
            commit: *base,
            tree,
            shared,
        })
    }

    async fn commit_and_tree(
        &self,
        repository: &Repository,
        base: &GitSha,
    ) -> Result<GitSha, GitError> {
        let command = "cat-file";
        let call = Call::new(command, Some(repository.common_dir()))
            .arg("--batch-check=%(objectname) %(objecttype)")
            .stdin(format!("{base}\n{base}^{{tree}}\n"));
        let captured = self.capture(call).await?;
        if !captured.exit.is_success() {
            let error = self.object_format(repository).await;
            return Err(error.unwrap_or_else(|| failure(command, &captured)));
        }
        let text = String::from_utf8_lossy(&captured.stdout);
        let mut lines = text
            .lines()
            .map(|line| line.split_once(' ').unwrap_or((line, "")));
        let (first, second) = (
            lines.next().unwrap_or_default(),
            lines.next().unwrap_or_default(),
        );
        match (first, second) {
            ((name, "commit"), (tree, "tree")) if name == base.as_str() => tree
                .parse()
                .map_err(|_| unexpected(command, &captured.stdout)),
            ((name, "commit"), _) if name == base.as_str() => Err(damaged(
                repository,
                base,
                complaint(&captured).unwrap_or_else(|| "its tree is missing".to_owned()),
            )),
            ((name, kind @ ("tag" | "tree" | "blob")), _) if name == base.as_str() => {
                Err(GitError::BaseNotACommit {
                    repository: repository.path().to_owned(),
                    base: *base,
                    kind: kind.to_owned(),
                })
            }
            _ => Err(self.why_missing(repository, base, &captured).await),
        }
    }

    /// The error for a commit that git does not find: with a complaint of git it may well be there.
    async fn why_missing(
        &self,
        repository: &Repository,
        base: &GitSha,
        captured: &Captured,
    ) -> GitError {
        if let Some(error) = self.object_format(repository).await {
            return error;
        }
        match complaint(captured) {
            Some(complaint) => damaged(repository, base, complaint),
            None => GitError::BaseMissing {
                repository: repository.path().to_owned(),
                base: *base,
            },
        }
    }

    async fn contains(
        &self,
        repository: &Repository,
        base: &GitSha,
        branch: &BranchName,
    ) -> Result<bool, GitError> {
        let command = "for-each-ref";
        let full_name = format!("refs/heads/{branch}");
        let call = Call::new(command, Some(repository.common_dir())).args([
            "--format=%(refname)",
            "--contains",
            base.as_str(),
            &full_name,
        ]);
        let captured = self.capture(call).await?;
        if !captured.exit.is_success() {
            return Err(failure(command, &captured));
        }
        // The pattern also matches refs below a folder of that name.
        Ok(captured
            .stdout
            .split(|byte| *byte == b'\n')
            .any(|line| line == full_name.as_bytes()))
    }

    async fn why_not_contained(
        &self,
        repository: Repository,
        base: &GitSha,
        branch: &BranchName,
    ) -> Result<GitError, GitError> {
        let full_name = format!("refs/heads/{branch}");
        let call = Call::new("for-each-ref", Some(repository.common_dir()))
            .args(["--format=%(refname)", &full_name]);
        let answer = self.run(call).await?;
        let exists = answer
            .split(|byte| *byte == b'\n')
            .any(|line| line == full_name.as_bytes());
        let (repository, branch) = (repository.path().to_owned(), branch.clone());
        Ok(if exists {
            GitError::BaseNotOnBranch {
                repository,
                base: *base,
                branch,
            }
        } else {
            GitError::BranchMissing { repository, branch }
        })
    }

    /// The error for a repository whose objects have other names, if it is one.
    async fn object_format(&self, repository: &Repository) -> Option<GitError> {
        let call = Call::new("rev-parse", Some(repository.common_dir()))
            .arg("--show-object-format=storage");
        let answer = self.run(call).await.ok()?;
        let format = visible_bytes(answer.trim_ascii());
        (format != "sha1").then(|| GitError::ObjectFormat {
            path: repository.path().to_owned(),
            format,
        })
    }

    /// Asks for `core.sharedRepository`, but only where the configuration mentions it at all.
    async fn shared_repository(&self, repository: &Repository) -> Result<Option<String>, GitError> {
        let config = safe_fs::read_bounded(&repository.common_dir().join("config"), 1 << 20)
            .unwrap_or_default()
            .to_ascii_lowercase();
        let name = b"sharedrepository";
        if !config.windows(name.len()).any(|window| window == name) {
            return Ok(None);
        }
        let call = Call::new("config", Some(repository.common_dir())).args([
            "--local",
            "--get",
            "core.sharedRepository",
        ]);
        let captured = self.capture(call).await?;
        let value = String::from_utf8_lossy(captured.stdout.trim_ascii()).into_owned();
        Ok((captured.exit.is_success() && !value.is_empty()).then_some(value))
    }
}

fn damaged(repository: &Repository, base: &GitSha, detail: String) -> GitError {
    GitError::Damaged {
        repository: repository.path().to_owned(),
        base: *base,
        detail,
    }
}

/// What git says of a file that it cannot use, although it goes on without it.
fn complaint(captured: &Captured) -> Option<String> {
    let complains = captured
        .stderr
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"error: ") || line.starts_with(b"fatal: "));
    complains.then(|| quoted(&captured.stderr))
}

pub(crate) fn unexpected(command: &'static str, answer: &[u8]) -> GitError {
    GitError::UnexpectedAnswer {
        command,
        answer: visible_bytes(answer),
    }
}

//! Local repositories, through the hardened git: revisions, candidates, differences.
//!
//! An interrupt ends git too; nothing is left running.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bounded::GitSha;
use cli_shell::env;
use git_workspace::{CandidateRef, Git, GitError, GitLimits, Repository};
use tokio_util::sync::CancellationToken;

use crate::error::ClientError;

/// What `ssh` and `https` sources may need of the operator's environment.
const FETCH_VARIABLES: [&str; 4] = ["HOME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO"];

const LIMITS: GitLimits = GitLimits {
    timeout: Duration::from_secs(10 * 60),
    output_bytes: 64 * 1024 * 1024,
};

/// Returns the commit that a revision names.
pub(crate) async fn resolve(repository: &Path, revision: &str) -> Result<GitSha, ClientError> {
    let what = format!("cannot find `{}`", cli_shell::visible(revision));
    run(repository, what, async |git, path| {
        git.resolve(&path, revision).await
    })
    .await
}

/// Fetches a candidate under its own ref and returns the commit that it names.
pub(crate) async fn fetch(
    into: &Path,
    from: &str,
    reference: &CandidateRef,
) -> Result<GitSha, ClientError> {
    let what = format!("cannot fetch `{reference}`");
    let variables = env::pick(FETCH_VARIABLES);
    run(into, what, async |git, path| {
        let from = source(from);
        git.fetch_candidate(&path, &from, reference, &variables)
            .await
    })
    .await
}

/// Returns what changes from one commit to another.
pub(crate) async fn diff(
    repository: &Path,
    base: &GitSha,
    candidate: &GitSha,
) -> Result<Vec<u8>, ClientError> {
    let what = format!("cannot compare {base} with {candidate}");
    run(repository, what, async |git, path| {
        git.diff(&path, base, candidate).await
    })
    .await
}

/// Makes a path absolute, and leaves an address alone.
fn source(from: &str) -> OsString {
    if from.contains("://") {
        return from.into();
    }
    absolute(Path::new(from)).into()
}

async fn run<T, F>(
    repository: &Path,
    what: String,
    work: impl FnOnce(Git, PathBuf) -> F,
) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, GitError>>,
{
    let failed = |source: GitError| ClientError::Repository {
        what,
        repository: repository.to_owned(),
        source: Box::new(source),
    };
    let search_path = env::var_os("PATH").unwrap_or_default();
    let cancel = CancellationToken::new();
    let found = Git::find(&search_path)
        .and_then(|git| Repository::discover(repository).map(|top| (git, top)));
    let (git, top) = match found {
        Ok((git, top)) => (git.with_limits(LIMITS).with_cancel(cancel.clone()), top),
        Err(error) => return Err(failed(error)),
    };
    let work = work(git, top.path().to_owned());
    tokio::pin!(work);
    let outcome = tokio::select! {
        outcome = &mut work => outcome,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            work.await
        }
    };
    outcome.map_err(failed)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

//! Git as the demonstration uses it: to make its own repository and to prove what came out.
//!
//! Commands in a user's repository only read; nobody's configuration, hooks or pager take part.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use cli_shell::{env, visible_lines};
use process_tree::{Capture, Spec, capture_direct};
use tokio_util::sync::CancellationToken;

use crate::error::DemoError;

const TIMEOUT: Duration = Duration::from_secs(60);
const OUTPUT_BYTES: u64 = 16 * 1024 * 1024;

const AUTHOR: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Forge Demo"),
    ("GIT_AUTHOR_EMAIL", "demo@example.invalid"),
    ("GIT_COMMITTER_NAME", "Forge Demo"),
    ("GIT_COMMITTER_EMAIL", "demo@example.invalid"),
];

/// Runs git in a folder and returns what it printed, without the last line end.
pub(crate) async fn git(folder: &Path, words: &[&str]) -> Result<String, DemoError> {
    // The user named this very folder, so its owner may be somebody else.
    let mut safe = OsString::from("safe.directory=");
    safe.push(folder);
    let mut argv = git_safety::command_line(Path::new("git"), [safe]);
    argv.extend(words.iter().map(OsString::from));
    let search_path = env::var_os("PATH").unwrap_or_default();
    let spec = Spec::new(argv)
        .env([("PATH", git_safety::absolute_entries(&search_path))])
        .env(git_safety::ENVIRONMENT.iter().copied())
        .env(AUTHOR)
        .cwd(folder);
    let command = words.first().copied().unwrap_or_default().to_owned();
    let captured = capture_direct(
        spec,
        Capture::new(TIMEOUT, OUTPUT_BYTES),
        &CancellationToken::new(),
    )
    .await
    .map_err(|source| DemoError::Git {
        command: command.clone(),
        source,
    })?;
    if !captured.exit.is_success() {
        let stderr = String::from_utf8_lossy(&captured.stderr);
        return Err(DemoError::GitFailed {
            command,
            stderr: visible_lines(stderr.trim()),
        });
    }
    let text = String::from_utf8_lossy(&captured.stdout);
    Ok(text.trim_end_matches('\n').to_owned())
}

/// What of a repository must be the same before and after: its refs but ours, its head, its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Untouched {
    refs: String,
    head: String,
    status: String,
}

impl Untouched {
    pub(crate) async fn of(repository: &Path) -> Result<Self, DemoError> {
        let refs = git(repository, &["for-each-ref"]).await?;
        let refs = refs
            .lines()
            .filter(|line| !line.contains("\trefs/agent-forge/"));
        let head = git(repository, &["rev-parse", "HEAD"]).await?;
        let bare = git(repository, &["rev-parse", "--is-bare-repository"]).await?;
        let status = if bare == "true" {
            String::new()
        } else {
            git(repository, &["status", "--porcelain=v2", "--branch"]).await?
        };
        Ok(Self {
            refs: refs.collect::<Vec<_>>().join("\n"),
            head,
            status,
        })
    }

    /// Compares with a later look.
    pub(crate) fn prove(&self, later: &Self) -> Result<(), DemoError> {
        if self == later {
            return Ok(());
        }
        let what = "branches, head and files of the repository";
        let parts = |state: &Self| format!("{} {}", state.head, state.status.replace('\n', "; "));
        Err(DemoError::Broken {
            what,
            expected: parts(self),
            found: parts(later),
        })
    }
}

//! The one place that runs git: what it may read is named here, everything else is shut.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use bounded::text::visible_bytes;
use process_tree::{Capture, CaptureError, Captured, Spec, capture_direct};
use tokio_util::sync::CancellationToken;

use crate::GitError;

/// The oldest git whose environment variables cover all that is shut here.
const OLDEST: (&str, [u32; 2]) = ("2.32", [2, 32]);

/// How much of git's stderr an error quotes.
const QUOTED_BYTES: usize = 2048;

/// What the private git directories need beside [`git_safety::SETTINGS`]. A repository's own
/// configuration cannot name a program that is run by the commands used here.
const CONFIG: &[&str] = &[
    "core.safecrlf=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "index.version=2",
    "index.sparse=false",
    "commit.gpgSign=false",
    "advice.addEmbeddedRepo=false",
    // Large files go into packs at once, a piece at a time, so that they need no memory; the
    // repository's own repacking compresses them better.
    "core.bigFileThreshold=32m",
    "pack.compression=1",
    // A candidate that was reported must survive a power loss.
    "core.fsync=committed",
    // With refs in tables all jobs of a repository need one lock, for a moment each.
    "reftable.lockTimeout=2000",
];

/// The limits of each single run of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitLimits {
    /// The time that one run may take.
    pub timeout: Duration,
    /// How many bytes one run may write to stdout and stderr together.
    pub output_bytes: u64,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            output_bytes: 16 << 20,
        }
    }
}

/// A git program, the limits of its runs and what cancels them.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    search_path: OsString,
    limits: GitLimits,
    cancel: CancellationToken,
}

impl Git {
    /// Uses the program at an absolute path. The absolute entries of `search_path` become git's
    /// `PATH`, the only variable of the caller's environment that git sees.
    pub fn new(program: impl Into<PathBuf>, search_path: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.into(),
            search_path: git_safety::absolute_entries(search_path.as_ref()),
            limits: GitLimits::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Finds git in the absolute entries of a `PATH` value.
    ///
    /// # Errors
    ///
    /// [`GitError::GitNotFound`].
    pub fn find(search_path: &OsStr) -> Result<Self, GitError> {
        git_safety::find(search_path)
            .map(|program| Self::new(program, search_path))
            .ok_or_else(|| GitError::GitNotFound {
                path: visible_bytes(search_path.as_encoded_bytes()),
            })
    }

    /// Sets the limits of each run.
    #[must_use]
    pub fn with_limits(mut self, limits: GitLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what cancels running and later runs.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Asks for the version, such as `2.47.3`, and refuses one that is too old.
    ///
    /// # Errors
    ///
    /// [`GitError::GitTooOld`], or git cannot be run.
    pub async fn version(&self) -> Result<String, GitError> {
        let answer = self.run(Call::new("version", None)).await?;
        let unexpected = || GitError::UnexpectedAnswer {
            command: "version",
            answer: visible_bytes(&answer),
        };
        let text = std::str::from_utf8(&answer).map_err(|_| unexpected())?;
        let version = text.split_whitespace().nth(2).ok_or_else(unexpected)?;
        let numbers: Vec<u32> = version
            .split('.')
            .map_while(|number| number.parse().ok())
            .take(2)
            .collect();
        if numbers.len() < 2 {
            return Err(unexpected());
        }
        let (needed, oldest) = OLDEST;
        if numbers.as_slice() < oldest.as_slice() {
            return Err(GitError::GitTooOld {
                found: version.to_owned(),
                needed,
            });
        }
        Ok(version.to_owned())
    }

    /// Runs git and returns its stdout; a nonzero exit code is an error.
    pub(crate) async fn run(&self, call: Call) -> Result<Vec<u8>, GitError> {
        let command = call.command;
        let captured = self.capture(call).await?;
        if captured.exit.is_success() {
            Ok(captured.stdout)
        } else {
            Err(failure(command, &captured))
        }
    }

    /// Runs git and returns its output, however it exited.
    pub(crate) async fn capture(&self, call: Call) -> Result<Captured, GitError> {
        let command = call.command;
        let mut capture = Capture::new(self.limits.timeout, self.limits.output_bytes);
        capture.stdin = call.stdin.clone();
        let spec = self.spec(call);
        capture_direct(spec, capture, &self.cancel)
            .await
            .map_err(|error| match error {
                CaptureError::Start(error) => GitError::Start(error),
                CaptureError::Timeout { after, .. } => GitError::Timeout { command, after },
                CaptureError::OutputLimit { limit, .. } => GitError::OutputLimit { command, limit },
                CaptureError::Cancelled => GitError::Cancelled,
                other => GitError::Lost {
                    command,
                    source: Box::new(other),
                },
            })
    }

    fn spec(&self, call: Call) -> Spec {
        let further = CONFIG.iter().map(|value| OsString::from(*value));
        let mut argv = git_safety::command_line(&self.program, further.chain(call.config));
        if let Some(git_dir) = call.git_dir {
            argv.push(joined("--git-dir=", &git_dir));
        }
        if let Some(work_tree) = call.work_tree {
            argv.push(joined("--work-tree=", &work_tree));
        }
        argv.push(call.command.into());
        argv.extend(call.arguments);
        Spec::new(argv)
            .env([("PATH", self.search_path.clone())])
            .env(git_safety::ENVIRONMENT.iter().copied())
            .env(call.env)
            // Nothing is looked up relative to here, and it cannot be replaced by a plugin.
            .cwd("/")
    }
}

/// One run of git.
#[derive(Debug)]
pub(crate) struct Call {
    command: &'static str,
    git_dir: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    config: Vec<OsString>,
    arguments: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
}

impl Call {
    pub(crate) fn new(command: &'static str, git_dir: Option<&Path>) -> Self {
        Self {
            command,
            git_dir: git_dir.map(Path::to_owned),
            work_tree: None,
            config: Vec::new(),
            arguments: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
        }
    }

    pub(crate) fn work_tree(mut self, work_tree: &Path) -> Self {
        self.work_tree = Some(work_tree.to_owned());
        self
    }

    pub(crate) fn config(mut self, value: impl Into<OsString>) -> Self {
        self.config.push(value.into());
        self
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }
}

/// The error for a run that ended with a nonzero exit code.
pub(crate) fn failure(command: &'static str, captured: &Captured) -> GitError {
    GitError::Failed {
        command,
        status: captured.exit.status.to_string(),
        stderr: quoted(&captured.stderr),
    }
}

/// The end of what git wrote to stderr, with controls made visible.
pub(crate) fn quoted(stderr: &[u8]) -> String {
    let stderr = stderr.trim_ascii();
    let from = stderr.len().saturating_sub(QUOTED_BYTES);
    bounded::text::visible_lines(&String::from_utf8_lossy(
        stderr.get(from..).unwrap_or_default(),
    ))
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

//! Which step of the demonstration failed.

use std::path::PathBuf;

use cli_shell::CliError;
use forge_client::ClientError;
use git_workspace::GitError;
use process_tree::{CaptureError, StartError};
use safe_fs::SafeFsError;
use thiserror::Error;

/// Why the demonstration did not reach its end.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    /// The throwaway state cannot be made or removed.
    #[error("cannot {what} the throwaway state")]
    State {
        what: &'static str,
        #[source]
        source: SafeFsError,
    },
    /// A file of the throwaway state cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The machine gives no random bytes.
    #[error("the machine gives no random bytes: {reason}")]
    Random { reason: String },
    /// The running program cannot be found.
    #[error("cannot find the running program")]
    Program {
        #[source]
        source: std::io::Error,
    },
    /// The user's repository cannot be used.
    #[error("cannot use the repository")]
    Repository {
        #[source]
        source: GitError,
    },
    /// The user's repository has no branch checked out.
    #[error("repository `{}` has no branch checked out", path.display())]
    NoBranch { path: PathBuf },
    /// The user's repository has no commit to start from.
    #[error("repository `{}` has no commit to start from", path.display())]
    NoCommit { path: PathBuf },
    /// The user's agent is not there.
    #[error("cannot find the program `{program}`")]
    NoAgent { program: String },
    /// Git could not be run.
    #[error("cannot run `git {command}`")]
    Git {
        command: String,
        #[source]
        source: CaptureError,
    },
    /// Git was run and failed.
    #[error("`git {command}` failed: {stderr}")]
    GitFailed { command: String, stderr: String },
    /// The test of the throwaway repository cannot be run.
    #[error("cannot run the test on the base")]
    Check {
        #[source]
        source: CaptureError,
    },
    /// A part of the appliance cannot be started.
    #[error("cannot start the {name}")]
    Start {
        name: &'static str,
        #[source]
        source: StartError,
    },
    /// A part of the appliance ended early.
    #[error("the {name} ended before it was asked to: {how}")]
    Ended { name: &'static str, how: String },
    /// A part of the appliance did not do its first step in time.
    #[error("the {name} did not {what} within {seconds} s")]
    Late {
        name: &'static str,
        what: &'static str,
        seconds: u64,
    },
    /// The Gate could not be asked.
    #[error("step `{step}` failed")]
    Client {
        step: &'static str,
        #[source]
        source: ClientError,
    },
    /// A fact that the demonstration shows does not hold.
    #[error("{what}: expected {expected}, found {found}")]
    Broken {
        what: &'static str,
        expected: String,
        found: String,
    },
    /// The job ended without success.
    #[error("the job ended as `{status}`")]
    Job { status: String },
    /// A command that is shown could not be run to its end.
    #[error("cannot run `{line}`")]
    Command {
        line: String,
        #[source]
        source: CaptureError,
    },
    /// A command that is shown did something else than it should have.
    #[error("`{line}`: expected {expected}, found {found}; it says: {said}")]
    Otherwise {
        line: String,
        expected: String,
        found: String,
        said: String,
    },
    /// The registry could not be sent bytes.
    #[error("cannot send bytes to the registry")]
    Upload {
        #[source]
        source: std::io::Error,
    },
    /// A file of the throwaway state cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl From<DemoError> for CliError {
    fn from(error: DemoError) -> Self {
        let hint = match &error {
            DemoError::NoBranch { .. } => Some("check a branch out, for example `git switch main`"),
            DemoError::Repository { .. } => {
                Some("`--repo` takes a git repository with at least one commit")
            }
            _ => None,
        };
        let error = match error {
            DemoError::Client { step, source } => {
                Self::from(source).because(format!("step `{step}` failed"))
            }
            error @ DemoError::Job { .. } => Self::no(error),
            error => Self::operation(error),
        };
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

//! What came of a wrapped command and of its receipt, told apart.

use std::path::{Path, PathBuf};

use attest_receipt::receipt::Receipt;
use process_tree::StartError;
use safe_fs::SafeFsError;
use serde::Serialize;
use tree_manifest::ManifestError;

use crate::hooks::{Stop, StopKind};
use crate::output::Secrets;
use crate::run::{Changes, RunError};
use crate::step::not_started;
use crate::told::told;

/// The code of a command that cannot be started, as shells tell it.
const NOT_STARTED: i32 = 127;
/// The code of an interrupted command, as shells tell it.
const INTERRUPTED: i32 = 130;

/// What came of a wrapped command.
#[derive(Debug, Default)]
pub struct WrapOutcome {
    /// How the command ended; none if it did not run to its end.
    pub code: Option<i32>,
    /// The receipt as it was written.
    pub receipt: Option<Receipt>,
    /// Where it was written.
    pub path: Option<PathBuf>,
    /// Why there is no receipt, or who is against it.
    pub failure: Option<Failure>,
    /// What the report must not hold.
    secrets: Secrets,
}

/// Why a command has no receipt, or one that somebody is against.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// What was asked for makes no sense; nothing was started.
    #[error("{0}")]
    Usage(String),
    /// A declared input or output is missing or cannot be hashed.
    #[error("attestation failed: {}", told(.0))]
    Files(ManifestError),
    /// What the receipt would say was read is not what is there now.
    #[error(
        "attestation failed: wrapped command modified its own declared inputs while running{0}"
    )]
    InputsChanged(Changes),
    /// The command cannot be started.
    #[error("failed to execute command: {}", not_started(.0))]
    NotStarted(StartError),
    /// Somebody who was asked is against it.
    #[error("{0}")]
    Stopped(Stop),
    /// It was interrupted.
    #[error("interrupted; everything that ran was ended, and no receipt was written")]
    Cancelled,
    /// Something around the command could not be done.
    #[error("{}", told(.0))]
    Failed(RunError),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl WrapOutcome {
    pub(super) fn hiding(secrets: Secrets) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// Returns the exit code: that of the command if it failed, whatever became of the receipt.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self.code {
            Some(code) if code != 0 => code,
            _ => self.failure.as_ref().map_or(0, Failure::exit_code),
        }
    }

    /// Returns what became of command and receipt, for programs.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            build_exit_code: self.code,
            evidence_status: match self.receipt {
                Some(_) => "produced",
                None => "failed",
            },
            receipt: self.path.clone(),
            error: self
                .failure
                .as_ref()
                .map(|failure| self.secrets.replace(&failure.to_string())),
        }
    }
}

impl Failure {
    /// Returns the exit code where the command itself did not fail.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Files(_) | Self::InputsChanged(_) => 1,
            Self::NotStarted(_) => NOT_STARTED,
            Self::Stopped(stop) if stop.kind == StopKind::Denied => 1,
            Self::Cancelled => INTERRUPTED,
            Self::Failed(error) if error.is_no() => 1,
            Self::Usage(_) | Self::Stopped(_) | Self::Failed(_) => 2,
        }
    }
}

/// What became of command and receipt, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How the command ended; null if it did not.
    pub build_exit_code: Option<i32>,
    /// `produced` or `failed`
    pub evidence_status: &'static str,
    /// The receipt.
    pub receipt: Option<PathBuf>,
    /// Why there is none, or who is against it.
    pub error: Option<String>,
}

impl Report {
    /// Writes the report as a whole; a file that is there is replaced.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub fn write(&self, path: &Path) -> Result<(), SafeFsError> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        safe_fs::write_target(path, &bytes, 0o644)
    }
}

//! Why a run has no receipt.

use std::path::PathBuf;

use tree_manifest::ManifestError;

use super::Changes;
use crate::hooks::{Stop, StopKind};
use crate::layout::LayoutError;
use crate::step::StepError;

/// Says why a run has no receipt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The workspace or its state folder cannot be used.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The pipeline file cannot be read.
    #[error("cannot read the pipeline `{}`", path.display())]
    PipelineFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Plugins are declared that nobody here would ask.
    #[error("plugins are declared in `{}`, and this caller asks none", path.display())]
    PluginsDeclared {
        /// The declaration.
        path: PathBuf,
    },
    /// A declared input or output is not there: an honest no.
    #[error("step '{step}': {problem}")]
    Missing {
        /// The step.
        step: String,
        /// Which.
        problem: ManifestError,
    },
    /// A declared input or output cannot be hashed.
    #[error("step '{step}': its files cannot be hashed")]
    Hashing {
        /// The step.
        step: String,
        /// Which, and why.
        #[source]
        source: ManifestError,
    },
    /// What the receipt would say was read is not what is there now.
    #[error(
        "step '{step}' modified its own declared inputs while running (before {before}, after {after}); the receipt could not describe what was built{changes}"
    )]
    InputsChanged {
        /// The step.
        step: String,
        /// The hash before it ran.
        before: String,
        /// The hash after it ran.
        after: String,
        /// Which files differ.
        changes: Changes,
    },
    /// The working directory of a step is missing or not in the workspace.
    #[error("step '{step}': working_dir '{directory}' {why}")]
    WorkingDirectory {
        /// The step.
        step: String,
        /// As declared.
        directory: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A step's command did not run.
    #[error("step '{step}'")]
    Step {
        /// The step.
        step: String,
        /// The cause.
        #[source]
        source: StepError,
    },
    /// A step's capsule cannot be used.
    #[error("step '{step}'")]
    Capsule {
        /// The step.
        step: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody who was asked stopped the run before it had a step to record.
    #[error("{0}{then}no step was recorded, so there is no receipt", then = .0.then())]
    Stopped(Stop),
    /// A secret would stand in the receipt.
    #[error(
        "the value of secret `{name}` stands in {place} (`{text}`), which cannot be replaced: there is no receipt"
    )]
    Secret {
        /// The variable.
        name: String,
        /// Where in the receipt.
        place: String,
        /// What stands there, without the value.
        text: String,
    },
    /// The signing key cannot be used.
    #[error("cannot load the signing key")]
    Key(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The receipt is there, and nobody stamped its signature.
    #[error("the receipt has no timestamp, and `attest timestamp` can still add one")]
    Unstamped(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file of the state cannot be written.
    #[error("cannot write {what}")]
    Write {
        /// The thing.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No reader would accept it.
    #[error("the receipt has {bytes} bytes, and no receipt may have more than {limit}")]
    ReceiptTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Another run holds the workspace, and this one is part of it.
    #[error("a step of another run of this workspace cannot run the workspace's pipeline again")]
    Nested,
    /// It was interrupted.
    #[error("interrupted; everything that ran was ended, and no receipt was written")]
    Cancelled,
    /// Randomness, the pipeline's canonical form, and the like.
    #[error("{what}")]
    Internal {
        /// The thing.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl RunError {
    pub(super) fn hashing(step: &str, source: ManifestError) -> Self {
        let step = step.to_owned();
        match source {
            problem @ ManifestError::Missing { .. } => Self::Missing { step, problem },
            source => Self::Hashing { step, source },
        }
    }

    /// Tells whether this is an honest no (exit 1) and not a failed operation (exit 2).
    #[must_use]
    pub fn is_no(&self) -> bool {
        match self {
            Self::Missing { .. } => true,
            Self::Stopped(stop) => stop.kind == StopKind::Denied,
            _ => false,
        }
    }
}

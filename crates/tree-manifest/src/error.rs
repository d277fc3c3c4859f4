//! Why a manifest could not be made. A path in a message is shown so that it cannot forge a line.

use std::{fmt, io, path::PathBuf};

use attest_receipt::declared::DeclaredError;

/// What the declared paths are to their step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the step reads.
    Input,
    /// What the step leaves.
    Output,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// Why a manifest could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Nothing is at a declared path.
    #[error("declared {role} not found: {path}")]
    Missing {
        /// Input or output.
        role: Role,
        /// As it was declared.
        path: String,
    },
    /// A declared path that no manifest can hold.
    #[error("declared {role} `{path}` {reason}")]
    Declared {
        /// Input or output.
        role: Role,
        /// As it was declared, made safe to show.
        path: String,
        /// What is wrong with it.
        reason: DeclaredError,
    },
    /// A declared path that only a link makes reachable.
    #[error(
        "declared {role} `{path}` goes through the symlink `{link}`, and links are never followed"
    )]
    ThroughLink {
        /// Input or output.
        role: Role,
        /// As it was declared.
        path: String,
        /// The component that is a link.
        link: String,
    },
    /// A link to somewhere outside the workspace.
    #[error("symlink `{path}` leads out of the workspace (target: `{target}`)")]
    LinkEscapes {
        /// The link.
        path: String,
        /// Its target.
        target: String,
    },
    /// A link to bytes that the manifest does not cover.
    #[error(
        "symlink `{path}` leads to `{target}`, which lies under no declared path of this step; \
         declare the target or remove the link"
    )]
    LinkUndeclared {
        /// The link.
        path: String,
        /// Its target.
        target: String,
    },
    /// A name or a link's target that a line cannot hold.
    #[error("`{path}` {reason}")]
    Name {
        /// The path, made safe to show.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A FIFO, socket or device; it was not opened.
    #[error("`{path}` is a {kind}; a manifest holds only files and symlinks")]
    Special {
        /// The path.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// Something became something else, or a file did not hold still.
    #[error("`{path}` changed while it was read")]
    Changed {
        /// The path.
        path: String,
    },
    /// More than a manifest may hold.
    #[error("at `{path}` the declared paths hold more than {limit}")]
    Limit {
        /// Where the limit was passed.
        path: String,
        /// The limit in words.
        limit: String,
    },
    /// The workspace itself cannot be used.
    #[error("the workspace `{}` cannot be opened", path.display())]
    Workspace {
        /// The workspace.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file, folder or link that could not be read.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ManifestError {
    pub(crate) fn io(action: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

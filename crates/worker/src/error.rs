//! What keeps a Worker from starting. What goes wrong later belongs to a job or a connection
//! and is an outcome, not an error of the program.

use std::io;
use std::path::PathBuf;

use cli_shell::SecretError;
use cli_shell::config::ConfigError;
use forge_domain::DomainError;
use safe_fs::SafeFsError;
use thiserror::Error;
use tls_files::TlsError;

/// Why a Worker cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The configuration file is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A path that the configuration names does not fit this host.
    #[error("`{field}` names `{}`, which {problem}", path.display())]
    Path {
        /// The field of the configuration.
        field: String,
        /// The path.
        path: PathBuf,
        /// What is wrong, in words.
        problem: String,
    },
    /// The token cannot be read.
    #[error("`{field}` gives no token")]
    Token {
        /// The field of the configuration.
        field: &'static str,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// Certificates cannot be loaded.
    #[error("cannot prepare TLS for `gate_url`")]
    Tls {
        /// Why.
        #[source]
        source: TlsError,
    },
    /// The slots cannot be named.
    #[error("cannot name the slots of this Worker")]
    Slots {
        /// Why.
        #[source]
        source: DomainError,
    },
    /// No git program was found.
    #[error("no executable `git` in the PATH of the Worker; install it or set `git_executable`")]
    NoGit,
    /// Another Worker uses the same folders.
    #[error(
        "another Worker owns `{}`; give each Worker a `worktree_root` and `runtime_root` of its own",
        path.display()
    )]
    RootInUse {
        /// The root.
        path: PathBuf,
    },
    /// A root cannot be locked or swept.
    #[error("cannot take over the folder `{}`", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why.
        #[source]
        source: SafeFsError,
    },
    /// The operating system refused something that the Worker needs.
    #[error("cannot {what}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

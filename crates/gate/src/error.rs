//! Why a Gate does not start, or stops.

use std::path::PathBuf;

use cli_shell::SecretError;
use forge_domain::DomainError;
use gate_store::StoreError;

use crate::random::NoRandomness;
use crate::tokens::TokenReused;

/// The one error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// A policy of the configuration is out of bounds.
    #[error("a policy of the configuration is out of bounds")]
    Policy(#[source] DomainError),
    /// A token cannot be read.
    #[error("failed to read the token of {whose}")]
    Token {
        /// The owner or a Worker.
        whose: String,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// Two tokens are the same.
    #[error(transparent)]
    TokenReused(TokenReused),
    /// The listen address cannot be resolved or bound.
    #[error("failed to listen on `{address}`")]
    Listen {
        /// The address of the configuration.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The service manager passed something else than a listener.
    #[error("cannot use the socket of the service manager")]
    Passed(#[source] cli_shell::service::PassedSocketError),
    /// The listener would serve plain HTTP to other machines.
    #[error(
        "`{address}` can be reached from other machines and `tls` is not configured; configure `tls`, listen on loopback, or set `allow_plain_listener` if something in front of the Gate protects the connection"
    )]
    PlainListener {
        /// The address of the configuration.
        address: String,
    },
    /// The metrics would be told to other machines without a token.
    #[error(
        "`metrics_without_token` is for a listener on loopback, and `{address}` can be reached from other machines; give the scraper the owner's token instead"
    )]
    OpenMetrics {
        /// The address of the configuration.
        address: String,
    },
    /// The certificate or its key cannot be used.
    #[error("failed to load the certificate `{certificate}`", certificate = certificate.display())]
    Tls {
        /// The certificate.
        certificate: PathBuf,
        /// Why.
        #[source]
        source: Box<tls_files::TlsError>,
    },
    /// The store cannot be opened or failed while the Gate ran.
    #[error("the store failed")]
    Store(#[source] Box<StoreError>),
    /// No random number, so no new id.
    #[error("failed to make a new id")]
    Randomness(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The runtime or its signal handlers could not be set up.
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
}

impl GateError {
    /// The word under which a failed start is logged.
    #[must_use]
    pub fn startup_code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.startup_code().as_str(),
            _ => "startup_failed",
        }
    }
}

impl From<StoreError> for GateError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl From<NoRandomness> for GateError {
    fn from(error: NoRandomness) -> Self {
        Self::Randomness(Box::new(error))
    }
}

//! Why a registry does not start, or stops.

use std::path::PathBuf;

use cli_shell::SecretError;
use registry_store::StoreError;

use crate::tokens::TokensError;

/// The one error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The credentials of the bucket cannot be read.
    #[error("failed to read the credentials of the bucket")]
    Credentials(#[source] SecretError),
    /// The authorities that the bucket's certificate is judged by cannot be read.
    #[error("failed to read whom to trust for the bucket")]
    Trust(#[source] Box<tls_files::TlsError>),
    /// The folder cannot be used.
    #[error("the store failed")]
    Store(#[source] Box<StoreError>),
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
        "`{address}` can be reached from other machines and `tls` is not configured; configure `tls`, listen on loopback, or set `insecure_listen` if something in front of the registry protects the connection"
    )]
    PlainListener {
        /// The address.
        address: String,
    },
    /// The certificate or its key cannot be used.
    #[error("failed to load the certificate `{}`", certificate.display())]
    Tls {
        /// The certificate.
        certificate: PathBuf,
        /// Why.
        #[source]
        source: Box<tls_files::TlsError>,
    },
    /// No random number, so no new request id.
    #[error("failed to ask for randomness")]
    Randomness(#[source] std::io::Error),
    /// The runtime or its signal handlers could not be set up.
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

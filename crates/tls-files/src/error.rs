//! What can be wrong with certificates, keys and addresses.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why TLS cannot be set up, or an address not be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is longer than any certificate chain or key.
    #[error("`{}` is longer than {limit} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A private key can be read by everybody.
    #[error("private key `{}` is accessible to all users; take that right away", path.display())]
    KeyExposed {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no PEM block of the kind that is needed.
    #[error("`{}` holds no {what} in PEM form", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A PEM block is damaged.
    #[error("`{}` holds a damaged {what}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was read.
        what: &'static str,
        /// Where and why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key are no pair, or of a kind that is not supported.
    #[error("cannot use certificate `{}` with key `{}`", certificate.display(), key.display())]
    Pair {
        /// The certificate chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// A certificate cannot be a root of trust.
    #[error("cannot trust the certificates in `{}`", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The system has no trusted roots.
    #[error("the system has no trusted root certificates; name a CA file instead")]
    NoSystemRoots,
    /// The cryptography does not offer a protocol version.
    #[error("cannot configure TLS")]
    Configuration {
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// An address would send secrets in clear text over a network.
    #[error("refusing plain `{scheme}://` to `{host}`, which is not this machine")]
    PlainRefused {
        /// The scheme of the address.
        scheme: String,
        /// Its host.
        host: String,
    },
    /// An address has a scheme that is no HTTP or WebSocket.
    #[error("`{scheme}://` is not one of http, https, ws, wss")]
    Scheme {
        /// The scheme of the address.
        scheme: String,
    },
}

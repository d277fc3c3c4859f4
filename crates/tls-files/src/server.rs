//! The server side: a certificate and key from files that may be replaced while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::error::TlsError;
use crate::pem::{self, Fingerprint};

/// A server's certificate and key, always the newest good pair.
///
/// Clones share the pair: a reload through one is seen by all. Connections that are already open
/// keep the certificate that they started with.
#[derive(Debug, Clone)]
pub struct ServerTls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    /// The files as they were at the last attempt, good or bad.
    seen: [Fingerprint; 2],
}

impl ServerTls {
    /// Reads a certificate chain (the server's own first) and its private key.
    ///
    /// # Errors
    /// A file cannot be read, is damaged, the key is open to all users, or they are no pair.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        // Before the content, so that a change in between is seen at the next look.
        let seen = [pem::fingerprint(certificate)?, pem::fingerprint(key)?];
        let config = read(certificate, key)?;
        Ok(Self {
            shared: Arc::new(Shared {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
                current: Mutex::new(Current { config, seen }),
            }),
        })
    }

    /// Returns what accepts one connection with the newest good pair.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current().config))
    }

    /// Reads the files again if they were replaced or written since the last look.
    ///
    /// Returns whether a new pair is in force. Meant to be called by a ticker every few seconds;
    /// it reads file metadata only when nothing changed.
    ///
    /// # Errors
    /// The files changed and cannot be used: the old pair stays in force. The same bad files are
    /// reported once, not at every look.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let Shared {
            certificate, key, ..
        } = &*self.shared;
        let seen = [pem::fingerprint(certificate)?, pem::fingerprint(key)?];
        if self.current().seen == seen {
            return Ok(false);
        }
        let config = read(certificate, key);
        let mut current = self.current();
        current.seen = seen;
        current.config = config?;
        Ok(true)
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Current> {
        // Every write under this lock is whole, so a poisoned one holds a usable pair.
        let lock = self.shared.current.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = pem::certificates(certificate)?;
    let private = pem::private_key(key)?;
    let mut config = ServerConfig::builder_with_provider(crate::client::provider())
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Configuration { source })?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|source| TlsError::Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

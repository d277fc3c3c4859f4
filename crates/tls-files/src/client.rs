//! The client side: whom to trust.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use crate::error::TlsError;
use crate::pem;

/// Makes client configurations; there is no way to make one that verifies nothing.
#[derive(Debug, Clone, Copy)]
pub struct ClientTls;

impl ClientTls {
    /// Trusts the system's roots, or with a file only the authorities in it.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or holds no certificate; or the system has no roots.
    pub fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
        let roots = match ca_file {
            Some(path) => private_roots(path)?,
            None => system_roots()?,
        };
        trusting(roots)
    }

    /// Trusts the authorities in a file beside those of the system, if it has any.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or holds no certificate.
    pub fn system_and(ca_file: &Path) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = private_roots(ca_file)?;
        match system_roots() {
            Ok(system) => roots.extend(system.roots),
            Err(TlsError::NoSystemRoots) => {}
            Err(error) => return Err(error),
        }
        trusting(roots)
    }

    /// Trusts nobody, so that every handshake fails: for a client that will speak plainly to this
    /// machine only and should not spend time on reading roots.
    ///
    /// # Errors
    /// The cryptography offers no protocol version.
    pub fn trust_nobody() -> Result<Arc<ClientConfig>, TlsError> {
        trusting(RootCertStore::empty())
    }
}

fn trusting(roots: RootCertStore) -> Result<Arc<ClientConfig>, TlsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Configuration { source })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn private_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(path)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Authority {
                path: path.to_owned(),
                source,
            })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(reason = %error, "cannot read some of the system's root certificates");
    }
    let mut roots = RootCertStore::empty();
    // Systems carry roots that the verifier cannot use; the rest serves.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(TlsError::NoSystemRoots);
    }
    Ok(roots)
}

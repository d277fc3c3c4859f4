//! Bounded reading of PEM files.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::TlsError;

/// The longest accepted PEM file, in bytes.
pub(crate) const FILE_BYTES: u64 = 1024 * 1024;

/// What tells one state of a file from another: device, inode, length, modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([i128; 5]);

pub(crate) fn fingerprint(path: &Path) -> Result<Fingerprint, TlsError> {
    let metadata = fs_err::metadata(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Fingerprint([
        metadata.dev().into(),
        metadata.ino().into(),
        metadata.size().into(),
        metadata.mtime().into(),
        metadata.mtime_nsec().into(),
    ]))
}

/// Reads a chain of at least one certificate.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let what = "certificate";
    let bytes = read(path)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem {
            path: path.to_owned(),
            what,
            source,
        })?;
    if chain.is_empty() {
        return Err(TlsError::Empty {
            path: path.to_owned(),
            what,
        });
    }
    Ok(chain)
}

/// Reads a private key that is not open to everybody.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let what = "private key";
    let metadata = fs_err::metadata(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(TlsError::KeyExposed {
            path: path.to_owned(),
        });
    }
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|source| match source {
        rustls::pki_types::pem::Error::NoItemsFound => TlsError::Empty {
            path: path.to_owned(),
            what,
        },
        source => TlsError::Pem {
            path: path.to_owned(),
            what,
            source,
        },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)
        .and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| TlsError::Read {
            path: path.to_owned(),
            source,
        })?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(TlsError::TooLong {
            path: path.to_owned(),
            limit: FILE_BYTES,
        });
    }
    Ok(bytes)
}

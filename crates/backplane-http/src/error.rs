//! What can be wrong before a request, and what the layers below say of one that failed.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use backplane_client::{Fault, TransportError};
use bounded::text::{head, visible};
use tls_files::TlsError;

/// How much of a cause is shown; a certificate may hold any number of names.
const LONGEST_CAUSE: usize = 512;

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The authorities cannot be read.
    #[error("cannot set up TLS")]
    Tls(#[from] TlsError),
    /// A proxy's address is none.
    #[error(
        "{name} is not the address of a proxy that can be used: `http://` or `https://`, a host and a port"
    )]
    Proxy {
        /// The variable that it is usually in.
        name: &'static str,
    },
    /// The HTTP client cannot be made.
    #[error("cannot set up the HTTP client: {cause}")]
    Client {
        /// The innermost cause.
        cause: String,
    },
}

/// Why a file cannot keep what there is of a download.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It cannot be read or written.
    #[error("cannot keep the beginning of a download in `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is a link, a folder or another special file.
    #[error("`{}` is in the way: it is no regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to another download that is going on.
    #[error("`{}` is in use by another download", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is somebody's file.
    #[error("`{}` is in the way: it is not the beginning of a download", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

/// Says what failed in connecting, sending or reading.
pub(crate) fn of_reqwest(error: &reqwest::Error, origin: &str) -> TransportError {
    let cause = innermost(error);
    if is_tls(error) {
        return TransportError::new(Fault::Tls, format!("no TLS with {origin}: {cause}"));
    }
    if error.is_timeout() {
        let message = format!("no connection to {origin} in time");
        return TransportError::new(Fault::TimedOut, message);
    }
    if error.is_connect() {
        let message = format!("no connection to {origin}: {cause}");
        return TransportError::new(Fault::Unreachable, message);
    }
    if error.is_builder() {
        return TransportError::new(Fault::Refused, "the request cannot be sent");
    }
    let message = format!("the connection to {origin} broke: {cause}");
    TransportError::new(Fault::Unreachable, message)
}

/// The innermost cause: the layers above it only say that there is one.
pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    visible(head(&cause.to_string(), LONGEST_CAUSE))
}

/// Tells whether TLS itself failed. An I/O error hides what it carries from `source`.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    let carried = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    carried.is_some_and(|inner| is_tls(inner)) || error.source().is_some_and(is_tls)
}

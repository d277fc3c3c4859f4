//! Why there is no token. No message has an address with a password in it: none is accepted.

use attest_timestamp::{MAX_RESPONSE_BYTES, ResponseError, TokenError};
use tls_files::TlsError;

/// Why a text is no address of an authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is no URL.
    #[error("is not a URL: {0}")]
    Syntax(String),
    /// It is not protected, or of another protocol.
    #[error("cannot be used: {0}")]
    Scheme(String),
    /// It has a name or a password in it, which would get into logs.
    #[error("has a name or password in it, which is not supported")]
    Password,
    /// It has a part that is never sent.
    #[error("has a `#` part, which is never sent")]
    Fragment,
    /// It is too long.
    #[error("is longer than 2048 characters")]
    TooLong,
}

/// Why an authority gave no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The request cannot be made.
    #[error("cannot make the request")]
    Request(#[source] TokenError),
    /// There is no runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    /// The system's roots cannot be read.
    #[error("cannot set up TLS")]
    Tls(#[source] Box<TlsError>),
    /// The client cannot be made.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
    /// No connection, or it was lost, or it took too long.
    #[error("cannot reach the timestamp authority at {url}: {cause}")]
    Network {
        /// The authority.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// It answers with another status than 200.
    #[error("the timestamp authority at {url} answered with status {status}{hint}")]
    Status {
        /// The authority.
        url: String,
        /// The status.
        status: u16,
        /// What that may mean.
        hint: &'static str,
    },
    /// It answers with something else.
    #[error("the timestamp authority at {url} answered with {found}, not with a timestamp reply")]
    ContentType {
        /// The authority.
        url: String,
        /// The type, safe to show.
        found: String,
    },
    /// It sends too much.
    #[error(
        "the timestamp authority at {url} sent more than {MAX_RESPONSE_BYTES} bytes, which no token has"
    )]
    TooLong {
        /// The authority.
        url: String,
    },
    /// It answers with no, or with nonsense.
    #[error("the timestamp authority at {url} gave no token")]
    Response {
        /// The authority.
        url: String,
        /// What it said.
        #[source]
        source: ResponseError,
    },
}

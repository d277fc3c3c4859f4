//! The seam to the network: what a transport is asked, what it answers, what it has to enforce.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strict_json::Object;

use crate::auth::Header;

/// The longest JSON, sent or received.
pub const MAX_JSON_BYTES: usize = 4 * 1024 * 1024;

/// Carries a request to the provider and brings the answer.
///
/// The client checks what it can see; the rest is the transport's duty:
///
/// - **TLS**: certificates are verified; plain `http` goes to this machine alone unless an operator
///   says otherwise.
/// - **Time**: connecting, waiting and reading have limits, and all attempts share one deadline.
/// - **Size**: no more than [`Request::answer_limit`] bytes are read, counted after any decoding and
///   whatever a length header says. Of the body of a failed status no more than
///   [`Request::refusal_limit`] bytes are read, which mostly is none; a longer one, or one that
///   breaks off, is left empty.
/// - **Cancellation**: `cancel` is looked at before sending, while waiting and while reading.
/// - **Redirects**: none is followed, or those that [`crate::Redirects`] allows; a header that
///   [`Header::is_credential`] goes to no other origin ever. One that is not followed is
///   [`Fault::Redirect`], or an answer with its status.
/// - **Encoding**: an artifact comes as its stored bytes; a content encoding is undone or refused.
///
/// A function of the same form is a transport.
pub trait Transport {
    /// Sends one request and returns when its answer is complete.
    fn send(&self, request: &Request, cancel: &dyn Cancel) -> Result<Answer, TransportError>;
}

impl<F> Transport for F
where
    F: Fn(&Request, &dyn Cancel) -> Result<Answer, TransportError>,
{
    fn send(&self, request: &Request, cancel: &dyn Cancel) -> Result<Answer, TransportError> {
        self(request, cancel)
    }
}

/// Tells whether the caller still wants the answer. A token of any runtime can be one.
pub trait Cancel: Send + Sync {
    /// Returns whether to stop; once it is true, it stays so.
    fn is_cancelled(&self) -> bool;
}

/// Is never cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Never;

impl Cancel for Never {
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Cancel for AtomicBool {
    fn is_cancelled(&self) -> bool {
        self.load(Ordering::Acquire)
    }
}

/// The methods that a request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// `DELETE`
    Delete,
    /// `GET`
    Get,
    /// `PATCH`
    Patch,
    /// `POST`
    Post,
    /// `PUT`
    Put,
}

impl Method {
    /// Returns the name as HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Get => "GET",
            Self::Patch => "PATCH",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// Tells whether doing it twice is the same as doing it once.
    pub fn is_idempotent(self) -> bool {
        matches!(self, Self::Delete | Self::Get | Self::Put)
    }
}

/// One request, ready to be sent. `Debug` shows no header's value and no body.
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) answer_limit: usize,
    pub(crate) refusal_limit: usize,
}

impl Request {
    /// Returns the method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the whole URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the headers; no name occurs twice.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// Returns the body, if there is one.
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Returns how many bytes of the answer's body are read at most; one more is a fault.
    pub fn answer_limit(&self) -> usize {
        self.answer_limit
    }

    /// Returns how many bytes of a failure's body are read at most: none, unless the caller asked
    /// why ([`crate::Call::asking_why`]). What is longer is no fault; the body is then empty.
    pub fn refusal_limit(&self) -> usize {
        self.refusal_limit
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.as_ref().map(Vec::len))
            .field("answer_limit", &self.answer_limit)
            .field("refusal_limit", &self.refusal_limit)
            .finish()
    }
}

/// What came back.
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: Body,
    /// How long the provider asks to wait before the next attempt ([`crate::retry_after`]).
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// Makes an answer that asks for no wait.
    pub fn new(status: u16, body: Body) -> Self {
        Self {
            status,
            body,
            retry_after: None,
        }
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

/// The body of an answer. It has no `Debug` that shows it.
pub enum Body {
    /// As it came.
    Bytes(Vec<u8>),
    /// Read by the transport already.
    Object(Object),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Object(_) => f.write_str("Object(hidden)"),
        }
    }
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No connection, or one that broke.
    Unreachable,
    /// The other side's certificate is not trusted, or TLS is not to be had.
    Tls,
    /// The time was up.
    TimedOut,
    /// The answer was longer than the limit.
    TooLong,
    /// A redirect that is not followed.
    Redirect,
    /// The answer is not in the form that was asked for: a part, or a content encoding.
    Answer,
    /// The caller cancelled.
    Cancelled,
    /// The transport does not send this, for instance plain `http` over a network.
    Refused,
}

impl Fault {
    /// Tells whether the next attempt could go better.
    pub fn is_temporary(self) -> bool {
        match self {
            Self::Unreachable | Self::TimedOut => true,
            Self::Tls
            | Self::TooLong
            | Self::Redirect
            | Self::Answer
            | Self::Cancelled
            | Self::Refused => false,
        }
    }
}

/// A transport's own account of a failure. It never quotes a body or a header's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    fault: Fault,
    message: String,
}

impl TransportError {
    /// Says what failed; the message fits behind "failed: ".
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self {
            fault,
            message: message.into(),
        }
    }

    /// Returns the kind of the failure.
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

//! Answers: JSON objects with the version of the protocol, and errors of one shape for everything
//! that can go wrong.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry_store::{StoreError, WireCode};
use serde::Serialize;

use crate::log;

/// The version that every object names.
pub(crate) const PROTOCOL_VERSION: &str = "1";
/// The longest message, in bytes: what it quotes may be anything.
const MAX_MESSAGE: usize = 2048;

/// A JSON answer, which nobody may keep.
pub(crate) fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let mut body = strict_json::to_line(value);
    body.push(b'\n');
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An object with the version of the protocol in front.
#[derive(Debug, Serialize)]
pub(crate) struct Versioned<'a, T> {
    protocol_version: &'static str,
    #[serde(flatten)]
    inner: &'a T,
}

impl<'a, T> Versioned<'a, T> {
    pub(crate) const fn of(inner: &'a T) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            inner,
        }
    }
}

/// The word of an error for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Timeout,
    Conflict,
    IntegrityMismatch,
    /// 409 for what would change a yanked release.
    ReleaseYanked,
    /// 410 for a channel that leads to one.
    ReleaseGone,
    PreconditionFailed,
    LimitExceeded,
    /// 431 for a head that is too long.
    HeadTooLarge,
    UnsupportedMediaType,
    RangeNotSatisfiable,
    InvalidPackage,
    ReceiptMismatch,
    TooManyRequests,
    Internal,
    TemporarilyUnavailable,
}

impl Code {
    /// The word, the status, and whether the same request may succeed later.
    const fn facts(self) -> (&'static str, StatusCode, bool) {
        match self {
            Self::InvalidRequest => ("invalid_request", StatusCode::BAD_REQUEST, false),
            Self::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED, false),
            Self::Forbidden => ("forbidden", StatusCode::FORBIDDEN, false),
            Self::NotFound => ("not_found", StatusCode::NOT_FOUND, false),
            Self::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, false),
            Self::Timeout => ("timeout", StatusCode::REQUEST_TIMEOUT, true),
            Self::Conflict => ("conflict", StatusCode::CONFLICT, false),
            Self::IntegrityMismatch => ("integrity_mismatch", StatusCode::CONFLICT, false),
            Self::ReleaseYanked => ("release_yanked", StatusCode::CONFLICT, false),
            Self::ReleaseGone => ("release_yanked", StatusCode::GONE, false),
            Self::PreconditionFailed => (
                "precondition_failed",
                StatusCode::PRECONDITION_FAILED,
                false,
            ),
            Self::LimitExceeded => ("limit_exceeded", StatusCode::PAYLOAD_TOO_LARGE, false),
            Self::HeadTooLarge => (
                "limit_exceeded",
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                false,
            ),
            Self::UnsupportedMediaType => (
                "unsupported_media_type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                false,
            ),
            Self::RangeNotSatisfiable => (
                "range_not_satisfiable",
                StatusCode::RANGE_NOT_SATISFIABLE,
                false,
            ),
            Self::InvalidPackage => ("invalid_package", StatusCode::UNPROCESSABLE_ENTITY, false),
            Self::ReceiptMismatch => ("receipt_mismatch", StatusCode::UNPROCESSABLE_ENTITY, false),
            Self::TooManyRequests => ("too_many_requests", StatusCode::TOO_MANY_REQUESTS, true),
            Self::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR, false),
            Self::TemporarilyUnavailable => (
                "temporarily_unavailable",
                StatusCode::SERVICE_UNAVAILABLE,
                true,
            ),
        }
    }
}

/// The word of an error, kept beside a response for the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedCode(pub(crate) &'static str);

/// A refusal on its way to the client.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: Code,
    message: String,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            headers: Vec::new(),
        }
    }

    /// What the client sent makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// What is asked for is not here.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// A failure of ours: the log knows more than the client.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        log::internal(error);
        Self::failed()
    }

    /// A failure that was logged already.
    pub(crate) fn failed() -> Self {
        Self::new(
            Code::Internal,
            "the request failed at the registry; its log says why",
        )
    }

    /// No token, or none that is known.
    pub(crate) fn unauthorized() -> Self {
        let message = "a valid token is needed: `authorization: Bearer TOKEN`";
        Self::new(Code::Unauthorized, message)
            .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Everything is in use; a little later it will not be.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(Code::TooManyRequests, message)
            .with(header::RETRY_AFTER, HeaderValue::from_static("2"))
    }

    #[cfg(test)]
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// Adds a header to the answer.
    pub(crate) fn with(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// What the store refused, in its words; what it failed at, in none of them.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match error.wire() {
            WireCode::InvalidRequest => Code::InvalidRequest,
            WireCode::NotFound => Code::NotFound,
            WireCode::Conflict => Code::Conflict,
            WireCode::IntegrityMismatch => Code::IntegrityMismatch,
            WireCode::ReleaseYanked { gone: false } => Code::ReleaseYanked,
            WireCode::ReleaseYanked { gone: true } => Code::ReleaseGone,
            WireCode::LimitExceeded => Code::LimitExceeded,
            WireCode::InvalidPackage => Code::InvalidPackage,
            WireCode::ReceiptMismatch => Code::ReceiptMismatch,
            WireCode::TemporarilyUnavailable => Code::TemporarilyUnavailable,
            WireCode::Internal => return Self::internal(&error),
        };
        if !error.is_refusal() {
            log::internal(&error);
        }
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body<'a> {
            protocol_version: &'a str,
            error: Inner<'a>,
        }
        #[derive(Serialize)]
        struct Inner<'a> {
            code: &'a str,
            message: &'a str,
            retryable: bool,
        }
        let (code, status, retryable) = self.code.facts();
        let body = Body {
            protocol_version: PROTOCOL_VERSION,
            error: Inner {
                code,
                message: bounded::text::head(&self.message, MAX_MESSAGE),
                retryable,
            },
        };
        let mut response = json(status, &body);
        response.headers_mut().extend(self.headers);
        response.extensions_mut().insert(LoggedCode(code));
        response
    }
}

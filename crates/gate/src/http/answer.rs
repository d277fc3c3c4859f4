//! Answers: JSON with one line feed behind it, and errors that tell the client
//! what it may know. Older routes keep their older shapes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gate_store::StoreError;
use serde::Serialize;

use crate::state::Refusal;

/// A JSON answer.
pub(crate) fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let mut body = strict_json::to_forge_frame(value);
    body.push(b'\n');
    let mut response = (status, body).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A refusal on its way to the client.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// `{"error":{"code","message"}}`
    Coded {
        /// The status.
        status: StatusCode,
        /// A word for programs.
        code: &'static str,
        /// A sentence for people.
        message: String,
    },
    /// `{"error":TEXT}`, with a reason where that helps.
    Plain {
        /// The status.
        status: StatusCode,
        /// The text that clients know.
        error: &'static str,
        /// What to change.
        reason: Option<String>,
    },
    /// `{"message":TEXT}`
    Message {
        /// The status.
        status: StatusCode,
        /// The text that clients know.
        message: &'static str,
    },
    /// No or wrong token.
    Unauthorized,
}

impl ApiError {
    pub(crate) fn coded(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::Coded {
            status,
            code,
            message: message.into(),
        }
    }

    pub(crate) fn job_not_found() -> Self {
        Self::coded(StatusCode::NOT_FOUND, "job_not_found", "no job has this id")
    }

    /// What the client sent makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::coded(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// A failure of ours; the log knows more.
    pub(crate) fn failed() -> Self {
        let message = "the request failed at the Gate; its log says why";
        Self::coded(StatusCode::INTERNAL_SERVER_ERROR, "request_failed", message)
    }
}

/// What the routes with coded errors say to a refusal of the store.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let Refusal::Store(error) = refusal else {
            return Self::failed();
        };
        let conflict = |code| Self::coded(StatusCode::CONFLICT, code, error.to_string());
        match &error {
            StoreError::JobNotFound => Self::job_not_found(),
            StoreError::JobTerminal { .. } => conflict("job_terminal"),
            StoreError::NotRetryable { .. } => conflict("job_not_retryable"),
            StoreError::IdempotencyConflict => conflict("idempotency_conflict"),
            StoreError::InvalidCursor => {
                Self::coded(StatusCode::BAD_REQUEST, "invalid_cursor", error.to_string())
            }
            _ => conflict("refused"),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Coded {
            error: Inner,
        }
        #[derive(Serialize)]
        struct Inner {
            code: &'static str,
            message: String,
        }
        #[derive(Serialize)]
        struct Plain {
            error: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        }
        #[derive(Serialize)]
        struct Message {
            message: &'static str,
        }
        match self {
            Self::Coded {
                status,
                code,
                message,
            } => json(
                status,
                &Coded {
                    error: Inner { code, message },
                },
            ),
            Self::Plain {
                status,
                error,
                reason,
            } => json(status, &Plain { error, reason }),
            Self::Message { status, message } => json(status, &Message { message }),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized\n").into_response(),
        }
    }
}

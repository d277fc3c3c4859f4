//! What can be wrong with a message or with its place in the conversation.
//! The Gate never sends these texts; they are for its log and for the Worker's.

use forge_domain::DomainError;
use strict_json::{FieldError, JsonError};

/// A message that ends the connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The bytes are not one strict JSON object within the size limit.
    #[error("message is not one JSON object")]
    Json(#[source] JsonError),
    /// A field is missing, unknown, of the wrong type or out of bounds.
    #[error("`{kind}` message is not valid")]
    Field {
        /// The type the message names, or `untyped`.
        kind: &'static str,
        /// The field and the reason.
        #[source]
        source: FieldError,
    },
    /// The type is none that this direction knows.
    #[error("message type `{0}` is not known in this direction")]
    UnknownType(String),
    /// The fields of the message contradict each other.
    #[error("`{kind}` message contradicts itself: {reason}")]
    Contradiction {
        /// The type of the message.
        kind: &'static str,
        /// What does not go together.
        reason: String,
    },
    /// The message is well formed but has no place at this point.
    #[error("`{kind}` message has no place here: {reason}")]
    OutOfPlace {
        /// The type of the message.
        kind: &'static str,
        /// What was expected.
        reason: &'static str,
    },
    /// The message names a job, attempt or Worker that is not the current one.
    #[error("`{kind}` message names another {what}")]
    WrongTarget {
        /// The type of the message.
        kind: &'static str,
        /// `job`, `attempt` or `worker`.
        what: &'static str,
    },
    /// The message uses an extension that was not agreed on.
    #[error("`{0}` was not negotiated")]
    NotNegotiated(&'static str),
    /// The number of an activity is not the next one, or its stage is not later.
    #[error("`activity` message does not go strictly forward")]
    Backwards(#[source] DomainError),
    /// The other side ended the conversation with an `error` message.
    #[error("the Gate refused the last message")]
    Refused,
    /// A value of our own is too large to be sent.
    #[error("message of {bytes} bytes is larger than {limit}")]
    TooLarge {
        /// Size of the frame.
        bytes: usize,
        /// Largest size that passes.
        limit: usize,
    },
}

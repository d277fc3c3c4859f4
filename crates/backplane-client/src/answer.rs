//! Reads what came back, strictly, and says nothing of its content when it is refused.

use digest_text::Sha256Text;
use strict_json::{JsonError, Layout, Limits, Object, parse_object};

use crate::error::{AnswerError, ClientError};
use crate::transport::{Answer, Body, MAX_JSON_BYTES};

/// How deep an answer may be nested.
const DEPTH: usize = 128;

/// Returns the object of a successful answer with all of its members, known or not.
pub(crate) fn object(answer: Answer) -> Result<Object, ClientError> {
    if !(200..300).contains(&answer.status) {
        let status = answer.status;
        return Err(ClientError::HttpStatus { status });
    }
    match answer.body {
        Body::Object(object) => Ok(object),
        Body::Bytes(bytes) => Ok(parse(&bytes)?),
    }
}

fn parse(bytes: &[u8]) -> Result<Object, AnswerError> {
    let limits = Limits {
        bytes: MAX_JSON_BYTES,
        depth: DEPTH,
    };
    // The reader's own words may quote a key, which is the provider's text.
    parse_object(bytes, &limits, Layout::Spaced).map_err(|error| match error {
        JsonError::TooLong { limit, .. } => AnswerError::TooLong { limit },
        JsonError::NotAnObject { found } => AnswerError::NotAnObject { found },
        error => AnswerError::NotJson {
            offset: error.offset(),
        },
    })
}

/// Returns the bytes of a file. Nothing but status 200 has the whole of it.
pub(crate) fn bytes(answer: Answer, limit: usize) -> Result<Vec<u8>, ClientError> {
    if answer.status != 200 {
        let status = answer.status;
        return Err(ClientError::HttpStatus { status });
    }
    let Body::Bytes(bytes) = answer.body else {
        return Err(AnswerError::NotBytes.into());
    };
    if bytes.len() > limit {
        return Err(AnswerError::TooLong { limit }.into());
    }
    Ok(bytes)
}

/// Returns the bytes of an artifact once they are known to be those that were asked for.
pub(crate) fn artifact(
    answer: Answer,
    expected: Sha256Text,
    limit: usize,
) -> Result<Vec<u8>, ClientError> {
    let bytes = bytes(answer, limit)?;
    let actual = Sha256Text::of(&bytes);
    if actual != expected {
        return Err(ClientError::DigestMismatch { expected, actual });
    }
    Ok(bytes)
}

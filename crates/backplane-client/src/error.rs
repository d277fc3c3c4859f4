//! What can go wrong. No variant holds bytes that a provider sent, a token or a header's value.

use agent_plugin::Diagnostic;
use digest_text::{DigestError, Sha256Text};
use plugin_archive::ArchiveError;

use crate::refusal::Refusal;
use crate::transport::TransportError;

/// Says why an operation of the client gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The base URL is none to ask under.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A header cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The path of a request is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// What to resolve, or which page to get, is not said well.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The digest is not written as digests are.
    #[error("the artifact's digest {0}")]
    Digest(#[from] DigestError),
    /// A body to send is longer than allowed.
    #[error("the body of the request has {actual} bytes, more than the {limit} allowed")]
    BodyTooLong {
        /// Bytes that are allowed.
        limit: usize,
        /// Bytes that it has.
        actual: usize,
    },
    /// The provider of headers failed.
    #[error("cannot get the headers that authorize a request")]
    Provider(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// No answer came.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The answer has a status that is no success; its body was thrown away.
    #[error("the provider answered with status {status}")]
    HttpStatus {
        /// The status.
        status: u16,
    },
    /// The provider refused a change and the caller had asked why ([`crate::Call::asking_why`]).
    #[error("the provider refused it: {0}")]
    Refused(Refusal),
    /// The answer is a success that cannot be used.
    #[error("the provider's answer {0}")]
    Answer(#[from] AnswerError),
    /// The bytes are not those that were asked for; nothing of them was unpacked.
    #[error("the artifact has the digest {actual}, not {expected}")]
    DigestMismatch {
        /// What was asked for.
        expected: Sha256Text,
        /// What came.
        actual: Sha256Text,
    },
    /// The bytes are those that were asked for, and no archive that is unpacked.
    #[error("the artifact cannot be unpacked")]
    Archive(#[from] ArchiveError),
    /// The archive holds no package that loads.
    #[error("the artifact holds no valid package ({} findings)", found.len())]
    Rejected {
        /// Everything that was found.
        found: Vec<Diagnostic>,
    },
}

/// Says why a text is no base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is no URL.
    #[error("the base URL is not a URL: {reason}")]
    Syntax {
        /// What the parser says.
        reason: String,
    },
    /// It has a space, a backslash or a control character, which parsers of URLs mend silently.
    #[error("the base URL must not hold spaces, backslashes or control characters")]
    Character,
    /// The scheme is neither `https` nor `http`.
    #[error("the base URL must start with `https://` or `http://`")]
    Scheme,
    /// It holds a user name or a password, which would end up in logs.
    #[error("the base URL must not hold a user name or a password")]
    Password,
    /// It has a query, even an empty one.
    #[error("the base URL must not have a query")]
    Query,
    /// It has a fragment, even an empty one.
    #[error("the base URL must not have a fragment")]
    Fragment,
    /// It is, or a URL under it would be, longer than allowed.
    #[error("the URL has more than {limit} bytes")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
    },
}

/// Says why a header is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name is no token of HTTP.
    #[error("a header's name is not a token of HTTP")]
    Name,
    /// The value has a line break, another control character or is too long.
    #[error("the value of the header `{name}` cannot be sent")]
    Value {
        /// The header, in lower case.
        name: String,
    },
    /// The header belongs to the client or to the transport.
    #[error("the header `{name}` is set by the client or its transport alone")]
    Reserved {
        /// The header, in lower case.
        name: String,
    },
    /// Two pairs have the same name, or a pair that of the token's header.
    #[error("the header `{name}` is given twice")]
    Twice {
        /// The header, in lower case.
        name: String,
    },
    /// There are too many.
    #[error("more than {limit} headers")]
    TooMany {
        /// How many are allowed.
        limit: usize,
    },
    /// The token is empty or holds what a header's value cannot.
    #[error("the token must be visible ASCII without spaces, 1 to {limit} characters")]
    Token {
        /// How long it may be.
        limit: usize,
    },
}

/// Says why a path of a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It does not start with `/`.
    #[error("a request's path must start with `/`")]
    NotAbsolute,
    /// It has `//`, which could name another origin.
    #[error("a request's path must not hold `//`")]
    EmptySegment,
    /// It has a segment `.` or `..`, written plainly or with `%2e`.
    #[error("a request's path must not hold `.` or `..`")]
    Traversal,
    /// It has `?`.
    #[error("a request's path must not have a query")]
    Query,
    /// It has `#`.
    #[error("a request's path must not have a fragment")]
    Fragment,
    /// It has `\`, plainly or as `%5c`.
    #[error("a request's path must not hold a backslash")]
    Backslash,
    /// It has `%2f`, which some servers take for `/`.
    #[error("a request's path must not hold an encoded `/`")]
    EncodedSlash,
    /// It has a `%` without two hexadecimal digits behind it.
    #[error("a request's path holds a `%` without two hexadecimal digits")]
    Percent,
    /// It has a control character, plainly or encoded.
    #[error("a request's path must not hold control characters")]
    Control,
    /// The URL would be longer than allowed.
    #[error("the URL of a request has more than {limit} bytes")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
    },
}

/// Says why nothing can be resolved, or no page be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Nothing is given.
    #[error("expected a plugin id, a release id or a channel")]
    Nothing,
    /// A value is empty.
    #[error("`{name}` must not be empty")]
    Empty {
        /// The name of the query.
        name: &'static str,
    },
    /// The URL would be longer than allowed.
    #[error("the URL of the query has more than {limit} bytes")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
    },
}

/// Says why a successful answer is not used; fits behind "the provider's answer".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is longer than allowed.
    #[error("has more than {limit} bytes")]
    TooLong {
        /// Bytes that are allowed.
        limit: usize,
    },
    /// It is JSON of another kind.
    #[error("is {found}, not an object")]
    NotAnObject {
        /// The kind of the value.
        found: &'static str,
    },
    /// It is no JSON, or JSON that no two readers would agree on.
    #[error("is not strict JSON{}", at(*offset))]
    NotJson {
        /// The byte at which it goes wrong, where there is one.
        offset: Option<usize>,
    },
    /// A decoded object came where bytes were asked for.
    #[error("is a decoded object, not the bytes of a file")]
    NotBytes,
    /// It confirms another artifact than the one that was sent.
    #[error("is about another artifact than the one that was sent")]
    OtherArtifact,
}

fn at(offset: Option<usize>) -> String {
    offset.map_or_else(String::new, |offset| format!(" at byte {offset}"))
}

//! Why a change was refused, for callers that asked: a code of a closed list, with our own words.
//!
//! The body of a failure stays closed to everybody else. Who publishes has to know whether a package,
//! a version or a right was the reason; so a call that changes something may ask, and gets what fits
//! the registry's documented object and nothing else. The provider's own sentence is cut, made visible
//! and kept apart: no `Display` and no `Debug` shows it, and one that repeats a credential is dropped.

use std::fmt;

use bounded::text;
use strict_json::{FieldError, Layout, Limits, Object, parse_object};

use crate::auth::Header;

/// How many bytes of a refusal are read.
pub const MAX_REFUSAL_BYTES: usize = 16 * 1024;

/// How deep a refusal may be nested.
const DEPTH: usize = 8;

/// How many bytes of the provider's sentence are kept.
const LONGEST_SENTENCE: usize = 1024;

/// Makes the list of codes and what each one means.
macro_rules! codes {
    ($($variant:ident $text:literal $words:literal,)*) => {
        /// The codes with which a registry of ours refuses. The list is closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RefusalCode {
            $(#[doc = concat!("`", $text, "`: ", $words)] $variant,)*
        }

        impl RefusalCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the code as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Says in our own words what it means.
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" "the request is not one that the registry knows",
    Unauthorized "unauthorized" "no token, or one that the registry does not know",
    Forbidden "forbidden" "the token lacks the right to do this",
    NotFound "not_found" "there is no such plugin, release or artifact",
    MethodNotAllowed "method_not_allowed" "this cannot be done there",
    Timeout "timeout" "the request did not arrive in time",
    Conflict "conflict" "something else stands there already",
    IntegrityMismatch "integrity_mismatch" "the bytes that arrived do not have the digest they were sent under",
    ReleaseYanked "release_yanked" "the release is yanked",
    LimitExceeded "limit_exceeded" "it is larger than the registry takes",
    UnsupportedMediaType "unsupported_media_type" "the registry does not take content of this type",
    RangeNotSatisfiable "range_not_satisfiable" "the part that was asked for does not exist",
    InvalidPackage "invalid_package" "the artifact holds no valid package",
    ReceiptMismatch "receipt_mismatch" "the receipt does not name this artifact",
    TooManyRequests "too_many_requests" "too many requests at a time",
    Internal "internal" "the registry failed",
    TemporarilyUnavailable "temporarily_unavailable" "the registry cannot do it at the moment",
}

/// What a provider said when it refused a change.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    status: u16,
    code: RefusalCode,
    sentence: Option<String>,
}

impl Refusal {
    /// Reads the body of a failure; what is not the documented object gives nothing.
    pub(crate) fn read(status: u16, body: &[u8], sent: &[Header]) -> Option<Self> {
        let limits = Limits {
            bytes: MAX_REFUSAL_BYTES,
            depth: DEPTH,
        };
        let object = parse_object(body, &limits, Layout::Spaced).ok()?;
        let (code, message) = members(object).ok()?;
        let code = RefusalCode::ALL.iter().find(|it| it.as_str() == code)?;
        let sentence = text::head(&message, LONGEST_SENTENCE);
        let shown = !sentence.is_empty() && !repeats_a_credential(&message, sent);
        Some(Self {
            status,
            code: *code,
            sentence: shown.then(|| text::visible(sentence)),
        })
    }

    /// Returns the status of HTTP.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the code.
    pub fn code(&self) -> RefusalCode {
        self.code
    }

    /// Returns the provider's own sentence: cut, with every hidden character made visible. It is
    /// foreign text, fit to be shown to the person who asked and to be put in no log.
    pub fn sentence(&self) -> Option<&str> {
        self.sentence.as_deref()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, code, .. } = self;
        write!(f, "{} (`{}`, status {status})", code.words(), code.as_str())
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

/// Returns the code and the message; members that nobody knows may come with later registries.
fn members(object: Object) -> Result<(String, String), FieldError> {
    let mut outer = object.fields("");
    let version = outer.text("protocol_version")?;
    if version != "1" {
        return Err(FieldError::invalid("protocol_version", "is not 1"));
    }
    let mut error = outer.object("error")?;
    let read = (error.text("code")?, error.text("message")?);
    error.end_ignoring_unknown();
    outer.end_ignoring_unknown();
    Ok(read)
}

/// Tells whether a text holds what authorized the request, with or without its scheme.
fn repeats_a_credential(text: &str, sent: &[Header]) -> bool {
    sent.iter()
        .filter(|header| header.is_credential())
        .flat_map(|header| header.value().split_ascii_whitespace())
        .any(|part| !part.eq_ignore_ascii_case("bearer") && text.contains(part))
}

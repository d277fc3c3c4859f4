//! Why a token, a certificate or an answer is refused.

use jiff::Timestamp;

/// Why a certificate does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It is no certificate in DER.
    #[error("is no certificate: {0}")]
    Encoding(String),
    /// It asks for something that is not understood.
    #[error("has a critical extension that is not understood: {0}")]
    CriticalExtension(String),
    /// An extension is damaged or there twice.
    #[error("has a damaged or repeated extension: {0}")]
    Extension(&'static str),
    /// It has an algorithm that is not on the list.
    #[error("{0}")]
    Algorithm(&'static str),
    /// It may not issue.
    #[error("cannot issue the certificates of a timestamp authority: {0}")]
    NotAnIssuer(&'static str),
    /// It may not stamp.
    #[error("may not sign timestamps: {0}")]
    NotAStamper(&'static str),
}

/// Why a token does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It was not looked at.
    #[error("timestamp token has {bytes} bytes, and none may have more than {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It is not DER of the expected form.
    #[error("timestamp token is not strict DER: {0}")]
    Encoding(String),
    /// It is DER and still not such a token.
    #[error("timestamp token is malformed: {0}")]
    Malformed(&'static str),
    /// It has something that is not on the list.
    #[error("unsupported timestamp token: {0}")]
    Unsupported(&'static str),
    /// It is about something else.
    #[error("timestamp token does not cover this signature")]
    Imprint,
    /// It answers another request.
    #[error("timestamp token answers another request: its nonce differs")]
    Nonce,
    /// The signer's signature does not verify.
    #[error("timestamp token's own signature is not valid")]
    Signature,
    /// The certificate that signed does not count.
    #[error("certificate `{subject}` that signed the timestamp token {problem}")]
    Certificate {
        /// Whose it is.
        subject: String,
        /// What is wrong.
        problem: CertificateError,
    },
    /// Nobody who is pinned issued the certificate.
    #[error(
        "certificate `{subject}` that signed the timestamp token is not issued by a pinned authority but by `{issuer}`"
    )]
    NotPinned {
        /// Whose certificate it is.
        subject: String,
        /// Who issued it, by its own word.
        issuer: String,
    },
    /// A pinned name, and another's signature.
    #[error(
        "certificate `{subject}` that signed the timestamp token names pinned authority '{authority}' as its issuer, whose key did not sign it"
    )]
    NotIssued {
        /// Whose certificate it is.
        subject: String,
        /// The authority.
        authority: String,
    },
    /// The certificate did not count at the stated time.
    #[error("{whose} certificate was not valid at the stated time {time}")]
    NotValidThen {
        /// The signer's or the authority's.
        whose: &'static str,
        /// The time.
        time: Timestamp,
    },
}

/// Why an authority's answer gives no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// It was not looked at.
    #[error("the answer has {bytes} bytes, and none may have more than {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It is no answer of the protocol.
    #[error("the answer is not a timestamp response: {0}")]
    Encoding(String),
    /// The authority says no.
    #[error("the authority rejected the request: {status}{detail}")]
    Rejected {
        /// The status by name.
        status: &'static str,
        /// What else it says, made safe to show, with a separator in front.
        detail: String,
    },
    /// It says yes and sends nothing.
    #[error("the authority granted the request and sent no token")]
    NoToken,
    /// It says no and sends something.
    #[error("the authority rejected the request and sent a token")]
    Contradiction,
}

//! Why a key or a trust store is refused. No message quotes bytes of a key file.

use super::public_key::KeyId;

/// Why bytes or a text are no public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not 64 lowercase hexadecimal digits.
    #[error("a public key is 64 lowercase hexadecimal digits")]
    Hex,
    /// The bytes are the coordinate of no point of the curve.
    #[error("these 32 bytes are not an Ed25519 public key: they name no point of the curve")]
    NotAPoint,
    /// The same point has a shorter spelling, so that one key would have two ids.
    #[error("the public key is not in canonical form")]
    NotCanonical,
    /// The neutral element, for which signatures can be made up.
    #[error("the public key is weak: it is the identity, for which anybody can make signatures")]
    Identity,
    /// A point of order 2, 4 or 8.
    #[error("the public key is weak: its point has small order, so signatures can be made up")]
    SmallOrder,
    /// The document is no single PEM block with a public key of Ed25519.
    #[error("not an Ed25519 public key in PEM: {0}")]
    Pem(&'static str),
    /// The file is no certificate, or not only certificates.
    #[error("not a certificate: {0}")]
    Certificate(&'static str),
    /// The document has or seems to have a private part.
    #[error("there is private key material in it")]
    Private,
    /// The text is no key id.
    #[error("a key id is 32 lowercase hexadecimal digits")]
    Id,
    /// The text is no name for a key.
    #[error("a name of a key {0}")]
    Name(&'static str),
}

/// Why a whole trust store is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// `trust.toml` is not UTF-8, too long, or no TOML.
    #[error("invalid trust policy: {0}")]
    Syntax(String),
    /// `trust.toml` is TOML of another shape.
    #[error("invalid trust policy: {place}: {problem}")]
    Shape {
        /// Which entry and key.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An id stands twice.
    #[error("inconsistent trust policy: key id {0} appears more than once")]
    DuplicateId(KeyId),
    /// An entry has no key file.
    #[error("inconsistent trust policy: `{id}.pub`, which an entry names, is missing")]
    MissingPublicKey {
        /// The entry.
        id: KeyId,
    },
    /// What has the name of an entry's key file is no file.
    #[error("inconsistent trust policy: `{id}.pub`, which an entry names, is {found}, not a file")]
    NotAFile {
        /// The entry.
        id: KeyId,
        /// What it is, with an article.
        found: &'static str,
    },
    /// A key file is not the key of its entry.
    #[error("inconsistent trust policy: `{id}.pub` holds key {found}, not the key its name claims")]
    OtherKey {
        /// The entry.
        id: KeyId,
        /// The id of the key in the file.
        found: KeyId,
    },
    /// A key file that an entry or the old layout trusts is refused.
    #[error("`{file}` is refused")]
    Key {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: KeyError,
    },
    /// There is more in the store than a store may hold.
    #[error("a trust store has at most {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The greatest accepted number.
        limit: usize,
    },
}

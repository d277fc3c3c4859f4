//! Digests that always carry the name of their algorithm.
//!
//! `sha256:<64 hex>` and `blake3:<64 hex>`, lowercase. The bare form is refused on input and never
//! printed, so that nobody has to guess which algorithm a digest belongs to.
//!
//! ```
//! use digest_text::Sha256Text;
//!
//! let digest = Sha256Text::of(b"");
//! assert!(digest.to_string().starts_with("sha256:e3b0c442"));
//! assert_eq!(digest.to_string().parse(), Ok(digest));
//! assert!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse::<Sha256Text>().is_err());
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// Says why a text is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `{algorithm}:` followed by 64 lowercase hexadecimal digits")]
pub struct DigestError {
    algorithm: &'static str,
}

macro_rules! digest_type {
    ($(#[$doc:meta])* $name:ident, $algorithm:literal, $hash:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 32]);

        impl $name {
            /// The prefix of the text form, without the colon.
            pub const ALGORITHM: &'static str = $algorithm;

            /// Hashes bytes that are in memory.
            pub fn of(bytes: impl AsRef<[u8]>) -> Self {
                let hash: fn(&[u8]) -> [u8; 32] = $hash;
                Self(hash(bytes.as_ref()))
            }

            /// Wraps a digest that was computed elsewhere, for instance over a stream.
            pub fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Returns the raw digest.
            pub fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = DigestError;

            fn from_str(text: &str) -> Result<Self, DigestError> {
                parse(text, $algorithm).map(Self).ok_or(DigestError { algorithm: $algorithm })
            }
        }

        impl TryFrom<String> for $name {
            type Error = DigestError;

            fn try_from(text: String) -> Result<Self, DigestError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(digest: $name) -> Self {
                digest.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&format!("{}:{}", $algorithm, hex::encode(self.0)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }
    };
}

digest_type!(
    /// A SHA-256 digest, `sha256:<64 hex>`.
    Sha256Text,
    "sha256",
    |bytes| sha2::Sha256::digest(bytes).into()
);
digest_type!(
    /// A BLAKE3 digest, `blake3:<64 hex>`.
    Blake3Text,
    "blake3",
    |bytes| blake3::hash(bytes).into()
);

fn parse(text: &str, algorithm: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(algorithm)?.strip_prefix(':')?;
    // The decoder takes both cases; the wire form has one.
    if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const BLAKE3_OF_ABC: &str = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";

    #[test]
    fn known_answers() {
        assert_eq!(
            Sha256Text::of("abc").to_string(),
            format!("sha256:{SHA256_OF_ABC}")
        );
        assert_eq!(
            Blake3Text::of("abc").to_string(),
            format!("blake3:{BLAKE3_OF_ABC}")
        );
    }

    #[test]
    fn every_other_form_is_refused() {
        let upper = SHA256_OF_ABC.to_uppercase();
        let short = SHA256_OF_ABC.get(..63).unwrap();
        let bad = [
            SHA256_OF_ABC.to_owned(),
            format!("sha256:{upper}"),
            format!("SHA256:{SHA256_OF_ABC}"),
            format!("blake3:{SHA256_OF_ABC}"),
            format!("sha256-{SHA256_OF_ABC}"),
            format!("sha256:{short}"),
            format!("sha256:{SHA256_OF_ABC}0"),
            format!("sha256: {SHA256_OF_ABC}"),
            format!("sha256:{SHA256_OF_ABC}\n"),
            format!("sha256:../{SHA256_OF_ABC}"),
            "sha256:".to_owned(),
            String::new(),
        ];
        for text in bad {
            let error = text.parse::<Sha256Text>().unwrap_err();
            assert!(error.to_string().contains("`sha256:`"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn text_form_round_trips(bytes: [u8; 32]) {
            let sha256 = Sha256Text::from_bytes(bytes);
            prop_assert_eq!(sha256.to_string().parse(), Ok(sha256));
            let blake3 = Blake3Text::from_bytes(bytes);
            prop_assert_eq!(blake3.to_string().parse(), Ok(blake3));
        }
    }
}

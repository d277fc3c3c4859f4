//! What proves that a new connection may go on with an attempt.

use std::fmt;
use std::str::FromStr;

use bounded::Hex32;

/// 32 lowercase hexadecimal digits that came with a lease. Whoever knows it can take the attempt
/// over, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachToken(Hex32);

impl AttachToken {
    /// Makes a token of 16 bytes, which the caller takes from a random source.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Hex32::from_bytes(bytes))
    }

    /// Returns the text on the wire, for the wire and for keeping it only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_ref()
    }
}

impl fmt::Debug for AttachToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AttachToken(…)")
    }
}

impl FromStr for AttachToken {
    type Err = <Hex32 as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_printed() {
        let text = "0123456789abcdef0123456789abcdef";
        let token: AttachToken = text.parse().unwrap();
        assert_eq!(token.reveal(), text);
        assert!(!format!("{token:?}").contains("0123"));
        assert!("0123".parse::<AttachToken>().is_err());
    }
}

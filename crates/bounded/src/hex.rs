//! Ids in lowercase hexadecimal. They are `Copy`: ids travel everywhere.

use crate::error::BoundError;
use crate::text_type::text_traits;

macro_rules! hex_type {
    ($(#[$doc:meta])* $name:ident, $digits:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; $digits]);

        impl $name {
            /// Checks the digits and keeps them.
            pub fn new(text: impl AsRef<str>) -> Result<Self, BoundError> {
                let digits: [u8; $digits] = text
                    .as_ref()
                    .as_bytes()
                    .try_into()
                    .map_err(|_| BoundError::Hex { digits: $digits })?;
                if digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
                    Ok(Self(digits))
                } else {
                    Err(BoundError::Hex { digits: $digits })
                }
            }

            /// Writes bytes as digits, for instance random ones for a new id.
            pub fn from_bytes(bytes: [u8; $digits / 2]) -> Self {
                let mut digits = [b'0'; $digits];
                for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
                    for (digit, value) in pair.iter_mut().zip([byte >> 4, byte & 0xf]) {
                        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
                    }
                }
                Self(digits)
            }

            /// Returns the digits.
            pub fn as_str(&self) -> &str {
                // Only ASCII digits get in, so this never falls back.
                std::str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        text_traits!([] $name);
    };
}

hex_type!(
    /// An id of 32 lowercase hexadecimal digits, as the wires use.
    Hex32, 32
);
hex_type!(
    /// The full name of a git object: 40 lowercase hexadecimal digits.
    GitSha, 40
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_digits_agree() {
        let mut bytes = [0; 16];
        bytes[0] = 0x01;
        bytes[1] = 0xaf;
        bytes[15] = 0xff;
        let id = Hex32::from_bytes(bytes);
        assert_eq!(id.as_str(), "01af00000000000000000000000000ff");
        assert_eq!(Hex32::new(id.as_str()), Ok(id));
    }

    #[test]
    fn length_and_case_are_exact() {
        for bad in [
            "",
            "0",
            &"a".repeat(31),
            &"a".repeat(33),
            &"A".repeat(32),
            &"g".repeat(32),
        ] {
            assert_eq!(
                Hex32::new(bad),
                Err(BoundError::Hex { digits: 32 }),
                "{bad}"
            );
        }
        assert!(Hex32::new("a".repeat(32)).is_ok());
        assert!(GitSha::new("a".repeat(40)).is_ok());
        assert!(GitSha::new("a".repeat(39)).is_err());
        assert!(GitSha::new("é".repeat(20)).is_err());
    }
}

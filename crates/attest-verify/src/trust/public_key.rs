//! Ed25519 public keys that are worth verifying with, and the ids derived from them.

use std::fmt;

use bounded::Hex32;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{EncodePublicKey as _, PublicKeyBytes};
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Serialize, Serializer};

use super::error::KeyError;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// The id of a key: the first 16 bytes of the BLAKE3 hash of its 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(Hex32);

impl KeyId {
    /// Reads an id.
    ///
    /// # Errors
    ///
    /// The text is not 32 lowercase hexadecimal digits.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        Hex32::new(text).map(Self).map_err(|_| KeyError::Id)
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for KeyId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A public key with one spelling, whose signatures only the holder of its private half can make.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Takes 32 bytes for a key.
    ///
    /// # Errors
    ///
    /// They name no point of the curve, a point of small order (the identity is one), or a point
    /// in other than its canonical form.
    pub fn from_raw(bytes: [u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::NotAPoint)?;
        let canonical = key.to_edwards().compress().to_bytes();
        if canonical == IDENTITY {
            return Err(KeyError::Identity);
        }
        if key.is_weak() {
            return Err(KeyError::SmallOrder);
        }
        if canonical != bytes {
            return Err(KeyError::NotCanonical);
        }
        Ok(Self(key))
    }

    /// Reads the form that receipts carry.
    ///
    /// # Errors
    ///
    /// Anything but 64 lowercase digits, and what [`Self::from_raw`] refuses.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        if !attest_receipt::is_lower_hex_64(text) {
            return Err(KeyError::Hex);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| KeyError::Hex)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| KeyError::Hex)?;
        }
        Self::from_raw(bytes)
    }

    /// Reads a SubjectPublicKeyInfo in PEM: one block, with white space around it at most.
    ///
    /// # Errors
    ///
    /// Another document, another algorithm, anything that looks like a private key, and what
    /// [`Self::from_raw`] refuses.
    pub fn from_spki_pem(text: &str) -> Result<Self, KeyError> {
        // First of all, so that nobody hides one behind a block that reads well.
        if text.to_ascii_uppercase().contains("PRIVATE") {
            return Err(KeyError::Private);
        }
        let block = text.trim_ascii();
        if !block.starts_with(BEGIN) || !block.ends_with(END) {
            return Err(KeyError::Pem("it is not one block of PUBLIC KEY"));
        }
        if block.matches("-----BEGIN").count() != 1 {
            return Err(KeyError::Pem("it has more than one block"));
        }
        let bytes: PublicKeyBytes = block
            .parse()
            .map_err(|_| KeyError::Pem("the block does not hold such a key"))?;
        Self::from_raw(bytes.to_bytes())
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub fn raw(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Returns the form that receipts carry.
    #[must_use]
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.raw()).to_hex().to_string()
    }

    /// Derives the id.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        let hash = blake3::hash(self.0.as_bytes());
        let mut first = [0; 16];
        for (byte, hashed) in first.iter_mut().zip(hash.as_bytes()) {
            *byte = *hashed;
        }
        KeyId(Hex32::from_bytes(first))
    }

    /// Writes a SubjectPublicKeyInfo in PEM.
    #[must_use]
    pub fn to_spki_pem(&self) -> String {
        // Encoding 44 bytes of a fixed form does not fail.
        PublicKeyBytes(self.raw())
            .to_public_key_pem(LineEnding::LF)
            .unwrap_or_default()
    }

    /// Tells whether `signature` is this key's over `message`. A signature has one spelling: a
    /// scalar that is not reduced, or a point of small order, is no signature.
    #[must_use]
    pub fn verify_strict(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

const IDENTITY: [u8; 32] = {
    let mut bytes = [0; 32];
    bytes[0] = 1;
    bytes
};

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.hex()).finish()
    }
}

#[cfg(test)]
mod tests;

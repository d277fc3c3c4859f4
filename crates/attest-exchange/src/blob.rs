//! Bytes inside JSON: base64 of the one spelling that there is, with their SHA-256 beside them.

use attest_receipt::encode::hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};
use strict_json::{FieldError, Fields};

/// Returns the SHA-256 hash, 64 hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Padding and unused bits have to be as the encoder leaves them.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, &'static str> {
    STANDARD.decode(text).map_err(|_| "is not base64")
}

/// A file that is carried along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blob {
    content: String,
    pub(crate) media_type: String,
    pub(crate) sha256: String,
}

impl Blob {
    pub(crate) fn new(bytes: &[u8], media_type: &str) -> Self {
        Self {
            content: encode(bytes),
            media_type: media_type.to_owned(),
            sha256: sha256_hex(bytes),
        }
    }

    pub(crate) fn take(mut fields: Fields) -> Result<Self, FieldError> {
        let blob = Self {
            content: fields.text("content")?,
            media_type: fields.text("mediaType")?,
            sha256: fields.text("sha256")?,
        };
        fields.end()?;
        Ok(blob)
    }

    /// Returns the bytes, which are those of the hash and no more than the limit.
    pub(crate) fn bytes(&self, limit: usize) -> Result<Vec<u8>, &'static str> {
        // Four characters stand for three bytes.
        if self.content.len() / 4 > limit / 3 + 1 {
            return Err("is too long");
        }
        let bytes = decode(&self.content)?;
        if bytes.len() > limit {
            return Err("is too long");
        }
        if sha256_hex(&bytes) != self.sha256 {
            return Err("has another SHA-256 than the one beside it");
        }
        Ok(bytes)
    }
}

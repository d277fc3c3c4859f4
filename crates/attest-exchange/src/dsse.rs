//! DSSE: an envelope whose signature covers the payload and its type.

use attest_verify::trust::KeyId;
use serde::Serialize;
use strict_json::{Element, FieldError, Json, JsonError, Layout, Limits};

use crate::blob;

/// The type of an in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The longest envelope in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

const MAX_DEPTH: usize = 16;

/// Returns what a signature covers. The type is inside: an envelope that says another one cannot
/// be verified with this signature.
#[must_use]
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

/// An envelope that was read. Nothing in it has been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// What the payload claims to be.
    pub payload_type: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// Who claims to have signed it.
    pub signatures: Vec<Signature>,
}

/// One signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Which key to try; the signature does not cover it.
    pub keyid: String,
    /// The signature, whatever its length.
    pub bytes: Vec<u8>,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// They are not JSON, or too many.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// They are JSON of another form.
    #[error("not a DSSE envelope: {0}")]
    Form(#[from] FieldError),
}

impl Envelope {
    /// Reads an envelope. Fields that are not known are passed over, as its specification asks for;
    /// the signature covers none of them, and nothing here looks at them.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let limits = Limits {
            bytes: MAX_BYTES,
            depth: MAX_DEPTH,
        };
        let object = match strict_json::parse_value(bytes, &limits, Layout::Spaced)? {
            Json::Object(object) => object,
            other => {
                let reason = format!("must be an object, not {}", other.kind());
                return Err(FieldError::invalid("envelope", reason).into());
            }
        };
        let mut fields = object.fields("");
        let payload = blob::decode(&fields.text("payload")?)
            .map_err(|reason| FieldError::invalid("payload", reason))?;
        let payload_type = fields.text("payloadType")?;
        let signatures = fields.array("signatures")?;
        let signatures = signatures.into_iter().map(signature);
        let signatures = signatures.collect::<Result<_, FieldError>>()?;
        fields.end_ignoring_unknown();
        Ok(Self {
            payload_type,
            payload,
            signatures,
        })
    }
}

fn signature(element: Element) -> Result<Signature, FieldError> {
    let mut fields = element.object()?;
    let path = fields.path_of("sig");
    let signature = Signature {
        keyid: fields.text("keyid")?,
        bytes: blob::decode(&fields.text("sig")?)
            .map_err(|reason| FieldError::invalid(path, reason))?,
    };
    fields.end_ignoring_unknown();
    Ok(signature)
}

/// Writes the envelope of a statement, with a line feed: compact, keys sorted.
#[must_use]
pub fn write(payload: &[u8], signature: Option<(KeyId, [u8; 64])>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Written {
        payload: String,
        #[serde(rename = "payloadType")]
        payload_type: &'static str,
        signatures: Vec<Signed>,
    }
    #[derive(Serialize)]
    struct Signed {
        keyid: String,
        sig: String,
    }
    let signature = signature.map(|(keyid, bytes)| Signed {
        keyid: keyid.to_string(),
        sig: blob::encode(&bytes),
    });
    let mut json = strict_json::to_line(&Written {
        payload: blob::encode(payload),
        payload_type: PAYLOAD_TYPE,
        signatures: signature.into_iter().collect(),
    });
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_inside_what_is_signed() {
        // The example of the specification.
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_ne!(pae("a", b"1 b"), pae("a 3 1", b"b"));
    }

    #[test]
    fn base64_has_one_spelling() {
        for (text, payload) in [("", Some("")), ("YQ==", Some("a")), ("YWI=", Some("ab"))] {
            assert_eq!(
                blob::decode(text).ok(),
                payload.map(|text| text.as_bytes().to_vec())
            );
        }
        for text in [
            "YQ", "YQ=", "YR==", "YQ==\n", " YQ==", "YQ==YQ==", "_w==", "Y",
        ] {
            assert!(blob::decode(text).is_err(), "{text:?}");
        }
    }
}

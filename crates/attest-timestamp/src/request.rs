//! What an authority is asked.

use der::Encode as _;
use der::asn1::{Int, OctetString};
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::algorithm::{self, Hash};
use crate::asn1::{MessageImprint, TimeStampReq};
use crate::error::TokenError;

/// A number that ties an answer to its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce([u8; 8]);

impl Nonce {
    /// Makes a nonce of random bytes: a positive number of 62 random bits and a fixed length.
    #[must_use]
    pub fn new(random: [u8; 8]) -> Self {
        let mut bytes = random;
        if let Some(first) = bytes.first_mut() {
            *first = (*first & 0x3f) | 0x40;
        }
        Self(bytes)
    }

    pub(crate) fn is(&self, other: Option<&Int>) -> bool {
        other.is_some_and(|other| other.as_bytes() == self.0)
    }
}

/// Makes a request in DER for a time stamp over a signature. It asks for the certificate too, since
/// a token is verified without a network later.
///
/// # Errors
/// The encoder's, which these few fields never meet.
pub fn request(signature: &[u8; 64], nonce: &Nonce) -> Result<Vec<u8>, TokenError> {
    encoded(signature, nonce).map_err(|error| TokenError::Encoding(error.to_string()))
}

fn encoded(signature: &[u8; 64], nonce: &Nonce) -> der::Result<Vec<u8>> {
    let request = TimeStampReq {
        version: 1,
        message_imprint: MessageImprint {
            hash_algorithm: AlgorithmIdentifierOwned {
                oid: algorithm::SHA_256,
                // Some authorities do not know the form without.
                parameters: Some(der::Any::null()),
            },
            hashed_message: OctetString::new(Hash::Sha256.digest(signature).as_ref())?,
        },
        req_policy: None,
        nonce: Some(Int::new(&nonce.0)?),
        cert_req: true,
        extensions: None,
    };
    request.to_der()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_these_bytes() {
        let nonce = Nonce::new([0xff, 1, 2, 3, 4, 5, 6, 7]);
        let request = request(&[7; 64], &nonce).unwrap();
        let digest = Hash::Sha256.digest(&[7; 64]);
        let head = [
            0x30, 67, 2, 1, 1, 0x30, 49, 0x30, 13, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5,
            0, 4, 32,
        ];
        let tail = [2, 8, 0x7f, 1, 2, 3, 4, 5, 6, 7, 1, 1, 0xff];
        assert_eq!(request, [&head[..], digest.as_ref(), &tail].concat());
    }

    #[test]
    fn a_nonce_is_positive_and_of_one_length() {
        for random in [[0; 8], [0xff; 8], [0x80; 8]] {
            let nonce = Nonce::new(random);
            let encoded = Int::new(&nonce.0).unwrap();
            assert_eq!(encoded.as_bytes(), nonce.0);
            assert!(nonce.0[0] & 0x80 == 0);
            assert!(nonce.is(Some(&encoded)) && !nonce.is(None));
        }
        assert_ne!(Nonce::new([1; 8]), Nonce::new([2; 8]));
    }
}

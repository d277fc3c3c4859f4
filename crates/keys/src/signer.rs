//! A private key in memory. It signs; its bytes are shown by nothing and wiped at the end.

use std::fmt;
use std::path::Path;

use attest_verify::trust::{KeyId, PublicKey};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use ed25519_dalek::{Signer as _, SigningKey};
use zeroize::Zeroizing;

use crate::error::KeysError;

/// The longest accepted private key file.
const FILE_BYTES: u64 = 16 * 1024;

/// A key to sign with.
pub struct Signer {
    key: SigningKey,
    public: PublicKey,
    id: KeyId,
    passed_over: usize,
}

impl Signer {
    /// Makes a new key.
    pub(crate) fn generate() -> Result<Self, KeysError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed)
            .map_err(|error| KeysError::io("get random bytes")(error.into()))?;
        Self::from_seed(&seed).map_err(|problem| KeysError::PrivateKey {
            file: "a new key".into(),
            problem,
        })
    }

    /// Reads a PKCS#8 file in PEM, with or without the public key in it.
    pub(crate) fn read_pem(path: &Path) -> Result<Self, KeysError> {
        let bytes = read_private(path)?;
        let refused = |problem: &str| KeysError::PrivateKey {
            file: path.to_owned(),
            problem: problem.to_owned(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| refused("is not PEM"))?;
        Self::from_pem(text).map_err(|problem| refused(&problem))
    }

    /// Reads the 32 bytes of the old layout.
    pub(crate) fn read_raw(path: &Path) -> Result<Self, KeysError> {
        let bytes = read_private(path)?;
        let refused = |problem: &str| KeysError::PrivateKey {
            file: path.to_owned(),
            problem: problem.to_owned(),
        };
        let seed: &[u8; 32] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| refused("does not have the 32 bytes of a private key"))?;
        Self::from_seed(seed).map_err(|problem| refused(&problem))
    }

    pub(crate) fn from_pem(text: &str) -> Result<Self, String> {
        let key = SigningKey::from_pkcs8_pem(text.trim_ascii())
            .map_err(|_| "is not one block of an Ed25519 private key in PEM".to_owned())?;
        Self::new(key)
    }

    fn from_seed(seed: &[u8; 32]) -> Result<Self, String> {
        Self::new(SigningKey::from_bytes(seed))
    }

    fn new(key: SigningKey) -> Result<Self, String> {
        let public = PublicKey::from_raw(key.verifying_key().to_bytes())
            .map_err(|error| format!("has a public key that is refused: {error}"))?;
        let id = public.key_id();
        Ok(Self {
            key,
            public,
            id,
            passed_over: 0,
        })
    }

    /// Writes PKCS#8 in PEM, with the public key in it.
    pub(crate) fn to_pem(&self) -> Result<Zeroizing<String>, KeysError> {
        self.key
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|_| KeysError::PrivateKey {
                file: "a new key".into(),
                problem: "cannot be encoded".to_owned(),
            })
    }

    /// Returns the key's id.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// Returns its public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns how many private keys were passed over because the policy does not trust them.
    #[must_use]
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    pub(crate) fn chosen_before(mut self, others: usize) -> Self {
        self.passed_over = others;
        self
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Reads a file that is private by every measure, and wipes it from memory after use.
fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    safe_fs::read_private_bounded(path, FILE_BYTES)
        .map(Zeroizing::new)
        .map_err(KeysError::files("read the private key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example key of RFC 8410, as version 1 of PKCS#8.
    const SHORT: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
    /// The same as version 2 with its public half, put together by hand after RFC 5958.
    const LONG: &str = "-----BEGIN PRIVATE KEY-----
MFECAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
gSEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
";

    #[test]
    fn the_written_form_is_that_of_a_fixed_vector() {
        for pem in [SHORT, LONG] {
            let signer = Signer::from_pem(pem).unwrap();
            assert_eq!(signer.to_pem().unwrap().as_str(), LONG);
        }
    }

    #[test]
    fn two_new_keys_differ() {
        let (one, other) = (Signer::generate().unwrap(), Signer::generate().unwrap());
        assert_ne!(one.key_id(), other.key_id());
    }
}

//! The closed list of algorithms, and the one place that verifies signatures.

use der::asn1::ObjectIdentifier;
use der::{Decode as _, Encode as _};
use ring::digest;
use ring::signature::{self as sig, UnparsedPublicKey, VerificationAlgorithm};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::asn1::RsaPublicKey;

macro_rules! oids {
    ($($name:ident = $text:literal;)+) => {
        $(pub(crate) const $name: ObjectIdentifier = ObjectIdentifier::new_unwrap($text);)+
    };
}

oids! {
    SHA_256 = "2.16.840.1.101.3.4.2.1";
    SHA_384 = "2.16.840.1.101.3.4.2.2";
    SHA_512 = "2.16.840.1.101.3.4.2.3";
    RSA = "1.2.840.113549.1.1.1";
    RSA_SHA_256 = "1.2.840.113549.1.1.11";
    RSA_SHA_384 = "1.2.840.113549.1.1.12";
    RSA_SHA_512 = "1.2.840.113549.1.1.13";
    EC = "1.2.840.10045.2.1";
    P_256 = "1.2.840.10045.3.1.7";
    P_384 = "1.3.132.0.34";
    ECDSA_SHA_256 = "1.2.840.10045.4.3.2";
    ECDSA_SHA_384 = "1.2.840.10045.4.3.3";
    ED_25519 = "1.3.101.112";
}

/// The length of RSA keys in bytes: 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// A hash that may be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// Reads the identifier of a hash; its parameters are absent or NULL.
    pub(crate) fn of(algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        if !is_plain(algorithm) {
            return None;
        }
        match algorithm.oid {
            SHA_256 => Some(Self::Sha256),
            SHA_384 => Some(Self::Sha384),
            SHA_512 => Some(Self::Sha512),
            _ => None,
        }
    }

    pub(crate) fn digest(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }
}

/// SHA-1, to compare the name of a certificate; nothing is signed with it.
pub(crate) fn sha_1(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

/// A way to sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Rsa(Hash),
    Ecdsa(Hash),
    Ed25519,
}

impl Scheme {
    /// Reads the identifier in a certificate, which names scheme and hash at once.
    pub(crate) fn of_certificate(algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        let (scheme, null_is_fine) = match algorithm.oid {
            RSA_SHA_256 => (Self::Rsa(Hash::Sha256), true),
            RSA_SHA_384 => (Self::Rsa(Hash::Sha384), true),
            RSA_SHA_512 => (Self::Rsa(Hash::Sha512), true),
            ECDSA_SHA_256 => (Self::Ecdsa(Hash::Sha256), false),
            ECDSA_SHA_384 => (Self::Ecdsa(Hash::Sha384), false),
            ED_25519 => (Self::Ed25519, false),
            _ => return None,
        };
        let fine = match algorithm.parameters {
            None => true,
            Some(_) => null_is_fine && is_plain(algorithm),
        };
        fine.then_some(scheme)
    }

    /// Reads the identifiers of a signer: its hash stands beside its scheme and must agree.
    pub(crate) fn of_signer(hash: Hash, algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        if algorithm.oid == RSA {
            return is_plain(algorithm).then_some(Self::Rsa(hash));
        }
        let scheme = Self::of_certificate(algorithm)?;
        let agrees = match scheme {
            Self::Rsa(own) | Self::Ecdsa(own) => own == hash,
            Self::Ed25519 => hash == Hash::Sha512,
        };
        agrees.then_some(scheme)
    }
}

/// What a key can verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// A public key of a kind on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Key {
    pub(crate) fn of(info: &SubjectPublicKeyInfoOwned) -> Result<Self, &'static str> {
        let not_listed = "has a key of a kind that is not RSA, P-256, P-384 or Ed25519";
        let bytes = info.subject_public_key.as_bytes();
        let bytes = bytes.ok_or("has a damaged key")?.to_vec();
        let kind = match info.algorithm.oid {
            RSA if is_plain(&info.algorithm) => Kind::Rsa,
            ED_25519 if info.algorithm.parameters.is_none() => Kind::Ed25519,
            EC => {
                let curve = info.algorithm.parameters.as_ref();
                match curve.and_then(|any| any.decode_as::<ObjectIdentifier>().ok()) {
                    Some(P_256) => Kind::P256,
                    Some(P_384) => Kind::P384,
                    _ => return Err(not_listed),
                }
            }
            _ => return Err(not_listed),
        };
        if kind == Kind::Rsa {
            let key = RsaPublicKey::from_der(&bytes).map_err(|_| "has a damaged key")?;
            if !RSA_BYTES.contains(&key.modulus.as_bytes().len()) {
                return Err("has an RSA key of less than 2048 or more than 8192 bits");
            }
        }
        Ok(Self { kind, bytes })
    }

    /// Verifies a signature; a scheme that is not the key's own never does.
    pub(crate) fn verifies(&self, scheme: Scheme, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match (self.kind, scheme) {
            (Kind::Rsa, Scheme::Rsa(Hash::Sha256)) => &sig::RSA_PKCS1_2048_8192_SHA256,
            (Kind::Rsa, Scheme::Rsa(Hash::Sha384)) => &sig::RSA_PKCS1_2048_8192_SHA384,
            (Kind::Rsa, Scheme::Rsa(Hash::Sha512)) => &sig::RSA_PKCS1_2048_8192_SHA512,
            (Kind::P256, Scheme::Ecdsa(Hash::Sha256)) => &sig::ECDSA_P256_SHA256_ASN1,
            (Kind::P256, Scheme::Ecdsa(Hash::Sha384)) => &sig::ECDSA_P256_SHA384_ASN1,
            (Kind::P384, Scheme::Ecdsa(Hash::Sha256)) => &sig::ECDSA_P384_SHA256_ASN1,
            (Kind::P384, Scheme::Ecdsa(Hash::Sha384)) => &sig::ECDSA_P384_SHA384_ASN1,
            (Kind::Ed25519, Scheme::Ed25519) => &sig::ED25519,
            _ => return false,
        };
        UnparsedPublicKey::new(algorithm, &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}

/// Tells whether the parameters are absent or NULL.
pub(crate) fn is_plain(algorithm: &AlgorithmIdentifierOwned) -> bool {
    match &algorithm.parameters {
        None => true,
        Some(any) => any.to_der().is_ok_and(|der| der == [5, 0]),
    }
}

//! Tokens: a statement, attributes about it, a signature over those, and the wrapping.

use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use der::asn1::{Int, ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Decode as _, Encode, Sequence, Tag};
use rcgen::SigningKey as _;
use ring::digest;
use x509_cert::Certificate;
use x509_cert::attr::Attribute;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::certificates::Identity;

/// A digest and what made it.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct MessageImprint {
    /// The algorithm.
    pub hash_algorithm: AlgorithmIdentifierOwned,
    /// The digest.
    pub hashed_message: OctetString,
}

/// How far a time may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Sequence)]
pub struct Accuracy {
    /// Seconds.
    pub seconds: Option<u32>,
    /// Thousandths.
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    pub millis: Option<u16>,
    /// Millionths.
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub micros: Option<u16>,
}

/// What is stated: TSTInfo.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct Statement {
    /// 1
    pub version: u8,
    /// Any number.
    pub policy: ObjectIdentifier,
    /// What is stamped.
    pub imprint: MessageImprint,
    /// The token's own number.
    pub serial: u64,
    /// The time.
    pub time: Any,
    /// How far it may be off.
    pub accuracy: Option<Accuracy>,
    /// Whether times of one authority are ordered.
    #[asn1(default = "Default::default")]
    pub ordering: bool,
    /// The request's.
    pub nonce: Option<Int>,
    /// Who states it.
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub tsa: Option<GeneralName>,
    /// More.
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

/// An issuer and a number.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct IssuerSerial {
    /// The issuer.
    pub issuer: Vec<GeneralName>,
    /// The number.
    pub serial: SerialNumber,
}

/// Names a certificate by SHA-1.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct EssCertId {
    /// SHA-1 of the certificate.
    pub hash: OctetString,
    /// Issuer and number.
    pub issuer_serial: Option<IssuerSerial>,
}

/// The old attribute that names the signer's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct SigningCertificate {
    /// The certificates, the signer's first.
    pub certs: Vec<EssCertId>,
}

/// Names a certificate by SHA-256 or another hash.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct EssCertIdV2 {
    /// The hash; absent, SHA-256.
    pub algorithm: Option<AlgorithmIdentifierOwned>,
    /// The hash of the certificate.
    pub hash: OctetString,
    /// Issuer and number.
    pub issuer_serial: Option<IssuerSerial>,
}

/// The new attribute that names the signer's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct SigningCertificateV2 {
    /// The certificates, the signer's first.
    pub certs: Vec<EssCertIdV2>,
}

/// Makes tokens.
#[derive(Debug)]
pub struct Stamper<'a> {
    /// Who signs.
    pub identity: &'a Identity,
    /// Certificates in the token.
    pub certificates: Vec<Vec<u8>>,
    /// The statement.
    pub statement: Statement,
    /// The signed attributes but for the digest of the statement, which goes in last.
    pub attributes: Vec<Attribute>,
    /// The digest of the statement, if it is to be another than the right one.
    pub digest: Option<Vec<u8>>,
    /// What kind of content it claims to be.
    pub content_type: ObjectIdentifier,
    /// The algorithm of the digest and of the signature.
    pub algorithms: (AlgorithmIdentifierOwned, AlgorithmIdentifierOwned),
}

impl<'a> Stamper<'a> {
    /// An honest statement over a message at a time such as `20261130120000Z`.
    #[must_use]
    pub fn new(identity: &'a Identity, message: &[u8], time: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, &identity.der);
        let named = SigningCertificateV2 {
            certs: vec![EssCertIdV2 {
                algorithm: None,
                hash: octets(hash.as_ref()),
                issuer_serial: None,
            }],
        };
        Self {
            identity,
            certificates: vec![identity.der.clone()],
            statement: Statement {
                version: 1,
                policy: oid("1.3.6.1.4.1.32473.1"),
                imprint: MessageImprint {
                    hash_algorithm: algorithm("2.16.840.1.101.3.4.2.1", true),
                    hashed_message: octets(digest::digest(&digest::SHA256, message).as_ref()),
                },
                serial: 42,
                time: shown_time(time),
                accuracy: Some(Accuracy {
                    seconds: Some(1),
                    millis: Some(500),
                    micros: None,
                }),
                ordering: false,
                nonce: None,
                tsa: None,
                extensions: None,
            },
            attributes: vec![
                attribute("1.2.840.113549.1.9.3", &oid("1.2.840.113549.1.9.16.1.4")),
                attribute("1.2.840.113549.1.9.16.2.47", &named),
            ],
            digest: None,
            content_type: oid("1.2.840.113549.1.9.16.1.4"),
            algorithms: (
                algorithm("2.16.840.1.101.3.4.2.1", false),
                algorithm("1.2.840.10045.4.3.2", false),
            ),
        }
    }

    /// An honest statement that answers a request.
    #[must_use]
    pub fn for_request(identity: &'a Identity, request: &[u8], time: &str) -> Self {
        let request = Request::read(request);
        let mut stamper = Self::new(identity, b"", time).answering(request.nonce);
        stamper.statement.imprint = request.imprint;
        stamper
    }

    /// Copies the nonce of a request.
    #[must_use]
    pub fn answering(mut self, nonce: Option<Int>) -> Self {
        self.statement.nonce = nonce;
        self
    }

    /// Signs and returns the token in its parts.
    #[must_use]
    pub fn signed(&self) -> SignedData {
        let content = self.statement.to_der().expect("a statement");
        let right = match self.algorithms.0.oid.to_string().as_str() {
            "2.16.840.1.101.3.4.2.2" => digest::digest(&digest::SHA384, &content),
            "2.16.840.1.101.3.4.2.3" => digest::digest(&digest::SHA512, &content),
            _ => digest::digest(&digest::SHA256, &content),
        };
        let digest = self
            .digest
            .clone()
            .unwrap_or_else(|| right.as_ref().to_vec());
        let mut attributes = self.attributes.clone();
        attributes.push(attribute("1.2.840.113549.1.9.4", &octets(&digest)));
        let attributes = SetOfVec::try_from(attributes).expect("attributes");
        let message = attributes.to_der().expect("attributes");
        let signature = self.identity.key.sign(&message).expect("a signature");
        let certificate = Certificate::from_der(&self.identity.der).expect("a certificate");
        let tbs = certificate.tbs_certificate();
        let signer = SignerInfo {
            version: CmsVersion::V1,
            sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
                issuer: tbs.issuer().clone(),
                serial_number: tbs.serial_number().clone(),
            }),
            digest_alg: self.algorithms.0.clone(),
            signed_attrs: Some(attributes),
            signature_algorithm: self.algorithms.1.clone(),
            signature: octets(&signature),
            unsigned_attrs: None,
        };
        let certificates = self.certificates.iter().map(|der| {
            CertificateChoices::Certificate(Certificate::from_der(der).expect("a certificate"))
        });
        let certificates = CertificateSet::try_from(certificates.collect::<Vec<_>>());
        SignedData {
            version: CmsVersion::V3,
            digest_algorithms: SetOfVec::try_from(vec![self.algorithms.0.clone()]).expect("one"),
            encap_content_info: EncapsulatedContentInfo {
                econtent_type: self.content_type,
                econtent: Some(Any::new(Tag::OctetString, content).expect("bytes")),
            },
            certificates: Some(certificates.expect("certificates")),
            crls: None,
            signer_infos: SignerInfos::try_from(vec![signer]).expect("one"),
        }
    }

    /// Signs and returns the token.
    #[must_use]
    pub fn token(&self) -> Vec<u8> {
        wrapped(&self.signed())
    }

    /// Signs, changes what is not signed, and returns the token.
    #[must_use]
    pub fn token_with(&self, change: impl FnOnce(&mut SignedData)) -> Vec<u8> {
        let mut signed = self.signed();
        change(&mut signed);
        wrapped(&signed)
    }
}

fn wrapped(signed: &SignedData) -> Vec<u8> {
    let content = signed.to_der().expect("signed data");
    let info = ContentInfo {
        content_type: oid("1.2.840.113549.1.7.2"),
        content: Any::from_der(&content).expect("a value"),
    };
    info.to_der().expect("a token")
}

/// An answer that grants a request.
#[must_use]
pub fn response(token: &[u8]) -> Vec<u8> {
    let body = [&[0x30, 3, 2, 1, 0], token].concat();
    let any = Any::new(Tag::Sequence, body).expect("an answer");
    any.to_der().expect("an answer")
}

/// An identifier.
#[must_use]
pub fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new(text).expect("an identifier")
}

/// An algorithm without parameters, or with NULL.
#[must_use]
pub fn algorithm(text: &str, null: bool) -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned {
        oid: oid(text),
        parameters: null.then(Any::null),
    }
}

/// An attribute with one value.
#[must_use]
pub fn attribute(kind: &str, value: &impl Encode) -> Attribute {
    let value = Any::from_der(&value.to_der().expect("a value")).expect("a value");
    Attribute {
        oid: oid(kind),
        values: SetOfVec::try_from(vec![value]).expect("one"),
    }
}

/// A GeneralizedTime of any text.
#[must_use]
pub fn shown_time(text: &str) -> Any {
    Any::new(Tag::GeneralizedTime, text.as_bytes()).expect("a time")
}

/// SHA-1, which the old attribute names a certificate by.
#[must_use]
pub fn sha_1(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
        .as_ref()
        .to_vec()
}

/// A string of bytes.
#[must_use]
pub fn octets(bytes: &[u8]) -> OctetString {
    OctetString::new(bytes).expect("bytes")
}

/// A request, as the authority reads it.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct Request {
    /// 1
    pub version: u8,
    /// What is to be stamped.
    pub imprint: MessageImprint,
    /// What the answer repeats.
    pub nonce: Option<Int>,
    /// Whether the answer is to have the certificate.
    #[asn1(default = "Default::default")]
    pub certificate: bool,
}

impl Request {
    /// Reads a request, and requires what every request of ours has.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let request = Self::from_der(bytes).expect("a request");
        assert_eq!(request.version, 1, "the version of the protocol");
        assert!(request.certificate, "the certificate is asked for");
        assert!(request.nonce.is_some(), "the answer is tied to the request");
        assert_eq!(request.imprint.hashed_message.as_bytes().len(), 32);
        request
    }
}

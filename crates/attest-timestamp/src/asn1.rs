//! The structures of RFC 3161 and of the attributes that name a signer's certificate.

use cms::cert::CertificateChoices;
use cms::content_info::CmsVersion;
use cms::revocation::RevocationInfoChoices;
use cms::signed_data::{EncapsulatedContentInfo, SignerInfos};
use der::asn1::{BitString, Int, ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Sequence};
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

pub(crate) const SIGNED_DATA: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
pub(crate) const TST_INFO: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
pub(crate) const CONTENT_TYPE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
pub(crate) const MESSAGE_DIGEST: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
pub(crate) const SIGNING_CERTIFICATE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");
pub(crate) const SIGNING_CERTIFICATE_V2: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");

/// What is stamped: a digest.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct MessageImprint {
    pub(crate) hash_algorithm: AlgorithmIdentifierOwned,
    pub(crate) hashed_message: OctetString,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct TimeStampReq {
    pub(crate) version: u8,
    pub(crate) message_imprint: MessageImprint,
    pub(crate) req_policy: Option<ObjectIdentifier>,
    pub(crate) nonce: Option<Int>,
    #[asn1(default = "Default::default")]
    pub(crate) cert_req: bool,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) extensions: Option<Extensions>,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct PkiStatusInfo {
    pub(crate) status: u32,
    pub(crate) status_string: Option<Vec<String>>,
    pub(crate) fail_info: Option<BitString>,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct TimeStampResp {
    pub(crate) status: PkiStatusInfo,
    pub(crate) token: Option<Any>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Sequence)]
pub(crate) struct Accuracy {
    pub(crate) seconds: Option<u32>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) millis: Option<u16>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) micros: Option<u16>,
}

/// What an authority states. The time is kept as it is: it may have a fraction, which is not DER's
/// own form of a time in certificates.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct TstInfo {
    pub(crate) version: u8,
    pub(crate) policy: ObjectIdentifier,
    pub(crate) message_imprint: MessageImprint,
    pub(crate) serial_number: Int,
    pub(crate) gen_time: Any,
    pub(crate) accuracy: Option<Accuracy>,
    #[asn1(default = "Default::default")]
    pub(crate) ordering: bool,
    pub(crate) nonce: Option<Int>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub(crate) tsa: Option<GeneralName>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) extensions: Option<Extensions>,
}

/// The signed data of CMS with its certificates in the order in which they are written: most
/// authorities do not sort them, and everything else is compared with its one encoding.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct SignedData {
    pub(crate) version: CmsVersion,
    pub(crate) digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    pub(crate) encap_content_info: EncapsulatedContentInfo,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) certificates: Option<Vec<CertificateChoices>>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub(crate) crls: Option<RevocationInfoChoices>,
    pub(crate) signer_infos: SignerInfos,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct IssuerSerial {
    pub(crate) issuer: Vec<GeneralName>,
    pub(crate) serial_number: SerialNumber,
}

/// Names a certificate by SHA-1, which only has to tell those of one authority apart: what makes
/// the certificate count is that authority's signature.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct EssCertId {
    pub(crate) cert_hash: OctetString,
    pub(crate) issuer_serial: Option<IssuerSerial>,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct SigningCertificate {
    pub(crate) certs: Vec<EssCertId>,
    pub(crate) policies: Option<Vec<Any>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct EssCertIdV2 {
    /// SHA-256 where it is absent.
    pub(crate) hash_algorithm: Option<AlgorithmIdentifierOwned>,
    pub(crate) cert_hash: OctetString,
    pub(crate) issuer_serial: Option<IssuerSerial>,
}

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct SigningCertificateV2 {
    pub(crate) certs: Vec<EssCertIdV2>,
    pub(crate) policies: Option<Vec<Any>>,
}

/// The form of an RSA key, to say that it is too short before anything is computed.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(crate) struct RsaPublicKey {
    pub(crate) modulus: der::asn1::Uint,
    pub(crate) exponent: der::asn1::Uint,
}

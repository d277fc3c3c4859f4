//! Which certificate of a token belongs to its signer: named twice, and both must agree.

use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::CmsVersion;
use cms::signed_data::{SignerIdentifier, SignerInfo};
use der::asn1::{ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Decode, Encode as _};
use x509_cert::Certificate;
use x509_cert::attr::Attribute;
use x509_cert::ext::pkix::SubjectKeyIdentifier;
use x509_cert::ext::pkix::name::GeneralName;

use crate::algorithm::{Hash, sha_1};
use crate::asn1::{
    IssuerSerial, SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2, SigningCertificate,
    SigningCertificateV2,
};
use crate::certificate::{Checked, shown};
use crate::error::TokenError;

/// Finds the certificate that the signer names.
pub(crate) fn find(
    signer: &SignerInfo,
    certificates: &[CertificateChoices],
) -> Result<Checked, TokenError> {
    let expected = match signer.sid {
        SignerIdentifier::IssuerAndSerialNumber(_) => CmsVersion::V1,
        SignerIdentifier::SubjectKeyIdentifier(_) => CmsVersion::V3,
    };
    if signer.version != expected {
        return Err(TokenError::Malformed("its signer has the wrong version"));
    }
    let mut found = certificates.iter().filter_map(|it| match it {
        CertificateChoices::Certificate(it) if is_named(it, &signer.sid) => Some(it),
        _ => None,
    });
    let certificate = found.next().ok_or(TokenError::Unsupported(
        "it does not carry its signer's certificate",
    ))?;
    if found.next().is_some() {
        return Err(TokenError::Malformed("two certificates fit its signer"));
    }
    let subject = shown(certificate.tbs_certificate().subject());
    Checked::new(certificate.clone())
        .map_err(|problem| TokenError::Certificate { subject, problem })
}

fn is_named(certificate: &Certificate, sid: &SignerIdentifier) -> bool {
    let tbs = certificate.tbs_certificate();
    match sid {
        SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer,
            serial_number,
        }) => tbs.issuer() == issuer && tbs.serial_number() == serial_number,
        SignerIdentifier::SubjectKeyIdentifier(id) => tbs
            .get_extension::<SubjectKeyIdentifier>()
            .is_ok_and(|found| found.is_some_and(|(_, own)| own == *id)),
    }
}

/// The single value of a signed attribute that is there once.
pub(crate) fn attribute(
    attributes: &SetOfVec<Attribute>,
    oid: ObjectIdentifier,
) -> Result<Option<&Any>, TokenError> {
    let mut found = attributes.iter().filter(|it| it.oid == oid);
    let Some(attribute) = found.next() else {
        return Ok(None);
    };
    let mut values = attribute.values.iter();
    match (values.next(), values.next(), found.next()) {
        (Some(value), None, None) => Ok(Some(value)),
        _ => Err(TokenError::Malformed(
            "a signed attribute is there twice or has not one value",
        )),
    }
}

/// RFC 3161 and RFC 5816: a signed attribute names the signer's certificate by its hash, so that no
/// other certificate for the same key takes its place.
pub(crate) fn check_named(
    attributes: &SetOfVec<Attribute>,
    certificate: &Checked,
) -> Result<(), TokenError> {
    let old = attribute(attributes, SIGNING_CERTIFICATE)?;
    let new = attribute(attributes, SIGNING_CERTIFICATE_V2)?;
    if old.is_none() && new.is_none() {
        return Err(TokenError::Malformed(
            "no signed attribute names its signer's certificate",
        ));
    }
    if let Some(old) = old {
        let named: SigningCertificate = decoded(old)?;
        let first = named.certs.first().ok_or(DAMAGED)?;
        let hash = sha_1(&certificate.der);
        agrees(
            certificate,
            hash.as_ref(),
            &first.cert_hash,
            first.issuer_serial.as_ref(),
        )?;
    }
    if let Some(new) = new {
        let named: SigningCertificateV2 = decoded(new)?;
        let first = named.certs.first().ok_or(DAMAGED)?;
        let hash = match &first.hash_algorithm {
            None => Hash::Sha256,
            Some(algorithm) => Hash::of(algorithm).ok_or(TokenError::Unsupported(
                "it names its signer's certificate by a hash that is not on the list",
            ))?,
        };
        let hash = hash.digest(&certificate.der);
        agrees(
            certificate,
            hash.as_ref(),
            &first.cert_hash,
            first.issuer_serial.as_ref(),
        )?;
    }
    Ok(())
}

const DAMAGED: TokenError =
    TokenError::Malformed("the attribute that names its signer's certificate is damaged");

fn decoded<T: for<'a> Decode<'a>>(any: &Any) -> Result<T, TokenError> {
    let der = any.to_der().map_err(|_| DAMAGED)?;
    T::from_der(&der).map_err(|_| DAMAGED)
}

fn agrees(
    certificate: &Checked,
    hash: &[u8],
    named: &OctetString,
    by_issuer: Option<&IssuerSerial>,
) -> Result<(), TokenError> {
    let other =
        TokenError::Malformed("a signed attribute names another certificate as its signer's");
    if named.as_bytes() != hash {
        return Err(other);
    }
    let Some(by_issuer) = by_issuer else {
        return Ok(());
    };
    let issuer = GeneralName::DirectoryName(certificate.issuer().clone());
    let serial = certificate.certificate.tbs_certificate().serial_number();
    if by_issuer.issuer == [issuer] && by_issuer.serial_number == *serial {
        Ok(())
    } else {
        Err(other)
    }
}

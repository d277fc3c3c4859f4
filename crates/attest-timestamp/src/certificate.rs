//! A certificate taken apart, and what it may be used for.

use bounded::text::visible;
use der::asn1::ObjectIdentifier;
use der::{Decode, Encode as _};
use jiff::Timestamp;
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames};
use x509_cert::ext::pkix::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectKeyIdentifier,
};
use x509_cert::name::Name;

use crate::algorithm::{Key, Scheme};
use crate::error::CertificateError;

macro_rules! oids {
    ($($name:ident = $text:literal;)+) => {
        $(const $name: ObjectIdentifier = ObjectIdentifier::new_unwrap($text);)+
    };
}

oids! {
    SUBJECT_KEY = "2.5.29.14";
    KEY_USAGE = "2.5.29.15";
    SUBJECT_NAMES = "2.5.29.17";
    BASIC_CONSTRAINTS = "2.5.29.19";
    POLICIES = "2.5.29.32";
    EXTENDED_KEY_USAGE = "2.5.29.37";
    TIME_STAMPING = "1.3.6.1.5.5.7.3.8";
    ANY_PURPOSE = "2.5.29.37.0";
}

/// The longest name that is shown.
const NAME: usize = 128;

/// A certificate whose extensions are understood as far as they must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) certificate: Certificate,
    pub(crate) der: Vec<u8>,
    pub(crate) key: Key,
    pub(crate) key_id: Option<SubjectKeyIdentifier>,
    names: Vec<GeneralName>,
    constraints: Option<BasicConstraints>,
    usage: Option<KeyUsage>,
    /// The purposes, and whether they bind.
    purposes: Option<(bool, Vec<ObjectIdentifier>)>,
}

impl Checked {
    pub(crate) fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let certificate = Certificate::from_der(der)
            .map_err(|error| CertificateError::Encoding(error.to_string()))?;
        let checked = Self::new(certificate)?;
        if checked.der == der {
            Ok(checked)
        } else {
            Err(CertificateError::Encoding(
                "it is not strict DER".to_owned(),
            ))
        }
    }

    pub(crate) fn new(certificate: Certificate) -> Result<Self, CertificateError> {
        let der = certificate
            .to_der()
            .map_err(|error| CertificateError::Encoding(error.to_string()))?;
        let tbs = certificate.tbs_certificate();
        if tbs.signature() != certificate.signature_algorithm() {
            let problem = "names two different algorithms for its signature";
            return Err(CertificateError::Algorithm(problem));
        }
        let key = Key::of(tbs.subject_public_key_info()).map_err(CertificateError::Algorithm)?;
        let extensions = tbs.extensions().map_or(&[][..], |all| all.as_slice());
        if !extensions.is_empty() && tbs.version() != Version::V3 {
            return Err(CertificateError::Extension("of another version than 3"));
        }
        refuse_unknown(extensions)?;
        Ok(Self {
            key,
            key_id: one(extensions, SUBJECT_KEY, "subjectKeyIdentifier")?.map(|it| it.1),
            names: one::<GeneralNames>(extensions, SUBJECT_NAMES, "subjectAltName")?
                .map_or_else(Vec::new, |it| it.1),
            constraints: one(extensions, BASIC_CONSTRAINTS, "basicConstraints")?.map(|it| it.1),
            usage: one(extensions, KEY_USAGE, "keyUsage")?.map(|it| it.1),
            purposes: one::<ExtendedKeyUsage>(extensions, EXTENDED_KEY_USAGE, "extendedKeyUsage")?
                .map(|(critical, purposes)| (critical, purposes.0)),
            der,
            certificate,
        })
    }

    /// RFC 3161 section 2.3: stamping is its only purpose, and says so bindingly.
    pub(crate) fn may_stamp(&self) -> Result<(), CertificateError> {
        let refused = |problem| Err(CertificateError::NotAStamper(problem));
        match &self.purposes {
            None => return refused("it has no extendedKeyUsage"),
            Some((false, _)) => return refused("its extendedKeyUsage is not critical"),
            Some((true, purposes)) if purposes.as_slice() != [TIME_STAMPING] => {
                return refused("timeStamping is not its only extendedKeyUsage");
            }
            Some(_) => {}
        }
        if self.constraints.as_ref().is_some_and(|it| it.ca) {
            return refused("it is the certificate of a certification authority");
        }
        let signs = |usage: &KeyUsage| {
            usage.0.contains(KeyUsages::DigitalSignature)
                || usage.0.contains(KeyUsages::NonRepudiation)
        };
        match &self.usage {
            Some(usage) if !signs(usage) => refused("its keyUsage is not to sign"),
            _ => Ok(()),
        }
    }

    /// Whether it can be the issuer of one that stamps.
    pub(crate) fn may_issue(&self) -> Result<(), CertificateError> {
        let refused = |problem| Err(CertificateError::NotAnIssuer(problem));
        match &self.constraints {
            Some(constraints) if constraints.ca => {}
            Some(_) => return refused("it is not that of a certification authority"),
            None => return refused("it has no basicConstraints"),
        }
        match &self.usage {
            Some(usage) if !usage.0.contains(KeyUsages::KeyCertSign) => {
                return refused("its keyUsage is not to sign certificates");
            }
            _ => {}
        }
        let allows = |purpose: &ObjectIdentifier| [TIME_STAMPING, ANY_PURPOSE].contains(purpose);
        match &self.purposes {
            Some((_, purposes)) if !purposes.iter().any(allows) => {
                refused("its extendedKeyUsage leaves out timeStamping")
            }
            _ => Ok(()),
        }
    }

    /// Whether this one's key signed another certificate.
    pub(crate) fn signed(&self, other: &Self) -> Result<bool, CertificateError> {
        let certificate = &other.certificate;
        let scheme = Scheme::of_certificate(certificate.signature_algorithm());
        let scheme = scheme.ok_or(CertificateError::Algorithm(
            "is signed with an algorithm that is not on the list",
        ))?;
        let message = certificate.tbs_certificate().to_der();
        let message = message.map_err(|error| CertificateError::Encoding(error.to_string()))?;
        let signature = certificate.signature().as_bytes();
        Ok(signature.is_some_and(|it| self.key.verifies(scheme, &message, it)))
    }

    /// Whether it counted at a time; its last second does.
    pub(crate) fn is_valid_at(&self, time: Timestamp) -> bool {
        let validity = self.certificate.tbs_certificate().validity();
        let second = u64::try_from(time.as_second());
        second.is_ok_and(|second| {
            let first = validity.not_before.to_unix_duration().as_secs();
            let last = validity.not_after.to_unix_duration().as_secs();
            (first..=last).contains(&second)
        })
    }

    /// Whether a name is one of its own.
    pub(crate) fn is_called(&self, name: &GeneralName) -> bool {
        let subject = GeneralName::DirectoryName(self.subject().clone());
        *name == subject || self.names.contains(name)
    }

    pub(crate) fn subject(&self) -> &Name {
        self.certificate.tbs_certificate().subject()
    }

    pub(crate) fn issuer(&self) -> &Name {
        self.certificate.tbs_certificate().issuer()
    }
}

/// The common name, else the whole name, safe to show and not long.
pub(crate) fn shown(name: &Name) -> String {
    let common = name.common_name().ok().flatten();
    let text = match &common {
        Some(common) => common.value().into_owned(),
        None => name.to_string(),
    };
    let text = visible(&text.chars().take(NAME).collect::<String>());
    if text.trim().is_empty() {
        "unnamed authority".to_owned()
    } else {
        text
    }
}

/// The whole name, safe to show and not long.
pub(crate) fn shown_whole(name: &Name) -> String {
    visible(&name.to_string().chars().take(4 * NAME).collect::<String>())
}

fn refuse_unknown(extensions: &[Extension]) -> Result<(), CertificateError> {
    let known = [
        SUBJECT_KEY,
        KEY_USAGE,
        SUBJECT_NAMES,
        BASIC_CONSTRAINTS,
        POLICIES,
        EXTENDED_KEY_USAGE,
    ];
    let unknown = |it: &&Extension| it.critical && !known.contains(&it.extn_id);
    match extensions.iter().find(unknown) {
        None => Ok(()),
        Some(it) => Err(CertificateError::CriticalExtension(it.extn_id.to_string())),
    }
}

/// The one extension of a kind, with whether it is critical.
fn one<T: for<'a> Decode<'a>>(
    extensions: &[Extension],
    oid: ObjectIdentifier,
    name: &'static str,
) -> Result<Option<(bool, T)>, CertificateError> {
    let mut found = extensions.iter().filter(|it| it.extn_id == oid);
    let Some(extension) = found.next() else {
        return Ok(None);
    };
    let value = T::from_der(extension.extn_value.as_bytes());
    match (value, found.next()) {
        (Ok(value), None) => Ok(Some((extension.critical, value))),
        _ => Err(CertificateError::Extension(name)),
    }
}

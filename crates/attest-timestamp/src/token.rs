//! A token, from its bytes to what it proves.

use std::time::Duration;

use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::SignerInfo;
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode as _, Encode as _, Tag, Tagged as _};
use jiff::Timestamp;

use crate::algorithm::{self, Hash, Scheme};
use crate::asn1::{
    Accuracy, CONTENT_TYPE, MESSAGE_DIGEST, SIGNED_DATA, SignedData, TST_INFO, TstInfo,
};
use crate::authority::Authority;
use crate::certificate::{Checked, shown};
use crate::error::TokenError;
use crate::moment;
use crate::request::Nonce;
use crate::signer::{self, attribute};

/// A token that has the right form; nothing is verified yet.
#[derive(Debug, Clone)]
pub struct Token {
    signed: SignedData,
    content: Vec<u8>,
    info: TstInfo,
    time: Timestamp,
}

/// A token whose own signature holds; by whose word, is not known yet.
#[derive(Debug, Clone)]
pub struct Examined<'a> {
    token: &'a Token,
    signer: Checked,
}

/// What a token proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// When the authority saw the signature.
    pub time: Timestamp,
    /// How far that may be off, if the authority says so.
    pub accuracy: Option<Duration>,
    /// The policy by which it works, as a dotted number.
    pub policy: String,
    /// The token's number at the authority, in hexadecimal.
    pub serial: String,
    /// The common name of the certificate that signed: for people, safe to show, proves nothing.
    pub signer: String,
    /// The name by which the issuer is pinned.
    pub authority: String,
}

impl Token {
    /// The greatest length of a token. Real ones have three to eight thousand bytes.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Takes a token apart.
    ///
    /// # Errors
    /// It is too long, not strict DER, or something else than a token with one signer.
    pub fn from_der(der: &[u8]) -> Result<Self, TokenError> {
        if der.len() > Self::MAX_BYTES {
            return Err(TokenError::TooLong {
                bytes: der.len(),
                limit: Self::MAX_BYTES,
            });
        }
        let outer = ContentInfo::from_der(der).map_err(encoding)?;
        if outer.content_type != SIGNED_DATA {
            return Err(TokenError::Malformed("it is not signed data"));
        }
        let inner = outer.content.to_der().map_err(encoding)?;
        let signed = SignedData::from_der(&inner).map_err(encoding)?;
        // The decoder sorts sets, and forgives some more; what is signed is one spelling alone.
        if signed.to_der().map_err(encoding)? != inner {
            return Err(TokenError::Encoding(
                "a value is not in its one form".to_owned(),
            ));
        }
        let content = content(&signed)?;
        let info = TstInfo::from_der(&content).map_err(encoding)?;
        if info.to_der().map_err(encoding)? != content {
            return Err(TokenError::Encoding(
                "a value is not in its one form".to_owned(),
            ));
        }
        let time = moment::read(&info.gen_time)?;
        check_form(&signed, &info)?;
        Ok(Self {
            signed,
            content,
            info,
            time,
        })
    }

    /// Verifies all that can be without knowing an authority: the token covers this signature (and
    /// answers this request), and its signer, whose certificate may stamp, signed it.
    ///
    /// # Errors
    /// What does not hold.
    pub fn examine(
        &self,
        signature: &[u8; 64],
        nonce: Option<&Nonce>,
    ) -> Result<Examined<'_>, TokenError> {
        let imprint = &self.info.message_imprint;
        if imprint.hash_algorithm.oid != algorithm::SHA_256
            || !algorithm::is_plain(&imprint.hash_algorithm)
        {
            return Err(TokenError::Unsupported(
                "it covers a digest that is not SHA-256",
            ));
        }
        if imprint.hashed_message.as_bytes() != Hash::Sha256.digest(signature).as_ref() {
            return Err(TokenError::Imprint);
        }
        if nonce.is_some_and(|nonce| !nonce.is(self.info.nonce.as_ref())) {
            return Err(TokenError::Nonce);
        }
        let signer = self.verify_signer()?;
        Ok(Examined {
            token: self,
            signer,
        })
    }

    fn verify_signer(&self) -> Result<Checked, TokenError> {
        let info = self.signer_info()?;
        let certificates = self.signed.certificates.as_deref().unwrap_or_default();
        let certificate = signer::find(info, certificates)?;
        let hash = Hash::of(&info.digest_alg).ok_or(TokenError::Unsupported(
            "its signer's digest algorithm is not SHA-256, SHA-384 or SHA-512",
        ))?;
        let declared = self.signed.digest_algorithms.as_slice();
        if declared != std::slice::from_ref(&info.digest_alg) {
            return Err(TokenError::Malformed(
                "it does not declare its signer's digest algorithm, and that alone",
            ));
        }
        let scheme = Scheme::of_signer(hash, &info.signature_algorithm).ok_or(
            TokenError::Unsupported("its signer's signature algorithm is not on the list"),
        )?;
        let attributes = info.signed_attrs.as_ref();
        let attributes = attributes.ok_or(TokenError::Malformed("it has no signed attributes"))?;
        let kind = attribute(attributes, CONTENT_TYPE)?;
        let kind = kind.and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
        if kind != Some(TST_INFO) {
            return Err(TokenError::Malformed(
                "no signed attribute says that it is a time stamp",
            ));
        }
        let digest = attribute(attributes, MESSAGE_DIGEST)?;
        let digest = digest.and_then(|any| any.decode_as::<OctetString>().ok());
        let expected = hash.digest(&self.content);
        if digest.is_none_or(|digest| digest.as_bytes() != expected.as_ref()) {
            return Err(TokenError::Malformed(
                "its signed attributes are about another statement",
            ));
        }
        // RFC 5652 section 5.4: what is signed is the attributes as a set.
        let message = attributes.to_der().map_err(encoding)?;
        if !certificate
            .key
            .verifies(scheme, &message, info.signature.as_bytes())
        {
            return Err(TokenError::Signature);
        }
        signer::check_named(attributes, &certificate)?;
        certificate
            .may_stamp()
            .map_err(|problem| refused(&certificate, problem))?;
        if let Some(name) = &self.info.tsa
            && !certificate.is_called(name)
        {
            return Err(TokenError::Malformed(
                "the authority that it names is not its signer",
            ));
        }
        Ok(certificate)
    }

    fn signer_info(&self) -> Result<&SignerInfo, TokenError> {
        match self.signed.signer_infos.0.as_slice() {
            [one] => Ok(one),
            _ => Err(TokenError::Malformed("it has not exactly one signer")),
        }
    }
}

impl Examined<'_> {
    /// Returns the stated time.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.token.time
    }

    /// Returns the common name of the certificate that signed, safe to show.
    #[must_use]
    pub fn signer(&self) -> String {
        shown(self.signer.subject())
    }

    /// Judges by whose word the token speaks.
    ///
    /// # Errors
    /// No pinned authority issued the signer's certificate, or one of the two certificates did not
    /// count at the stated time.
    pub fn issued_by(&self, authorities: &[Authority]) -> Result<Stamp, TokenError> {
        let authority = self.issuer(authorities)?;
        let time = self.token.time;
        let both = [
            ("the signing", &self.signer),
            ("the authority's", &authority.checked),
        ];
        for (whose, certificate) in both {
            if !certificate.is_valid_at(time) {
                return Err(TokenError::NotValidThen { whose, time });
            }
        }
        let info = &self.token.info;
        Ok(Stamp {
            time,
            accuracy: info.accuracy.as_ref().map(duration),
            policy: info.policy.to_string(),
            serial: hex(info.serial_number.as_bytes()),
            signer: self.signer(),
            authority: authority.name.clone(),
        })
    }

    /// Several may be pinned under one name in their certificates: an authority that changed its
    /// key.
    fn issuer<'b>(&self, authorities: &'b [Authority]) -> Result<&'b Authority, TokenError> {
        let subject = || shown(self.signer.subject());
        let mut named = None;
        for authority in authorities {
            if authority.checked.subject() != self.signer.issuer() {
                continue;
            }
            let signed = authority.checked.signed(&self.signer);
            if signed.map_err(|problem| refused(&self.signer, problem))? {
                return Ok(authority);
            }
            named = Some(authority);
        }
        Err(match named {
            Some(authority) => TokenError::NotIssued {
                subject: subject(),
                authority: authority.name.clone(),
            },
            None => TokenError::NotPinned {
                subject: subject(),
                issuer: shown(self.signer.issuer()),
            },
        })
    }
}

fn check_form(signed: &SignedData, info: &TstInfo) -> Result<(), TokenError> {
    let refused = |problem| Err(TokenError::Malformed(problem));
    if signed.version != CmsVersion::V3 {
        return refused("signed data of another version than 3");
    }
    if info.version != 1 {
        return Err(TokenError::Unsupported(
            "a statement of another version than 1",
        ));
    }
    if signed.crls.is_some() {
        return Err(TokenError::Unsupported("it carries revocation lists"));
    }
    let [signer] = signed.signer_infos.0.as_slice() else {
        return refused("it has not exactly one signer");
    };
    // Nobody vouches for them.
    if signer.unsigned_attrs.is_some() {
        return Err(TokenError::Unsupported("it has unsigned attributes"));
    }
    if let Some(Accuracy { millis, micros, .. }) = info.accuracy {
        let fits = |part: Option<u16>| part.is_none_or(|part| (1..1000).contains(&part));
        if !fits(millis) || !fits(micros) {
            return refused("its accuracy is not in seconds, milliseconds and microseconds");
        }
    }
    let mut extensions = info.extensions.iter().flatten();
    if extensions.any(|extension| extension.critical) {
        return Err(TokenError::Unsupported(
            "its statement has a critical extension",
        ));
    }
    Ok(())
}

/// The statement's bytes: what the digest is of.
fn content(signed: &SignedData) -> Result<Vec<u8>, TokenError> {
    let encapsulated = &signed.encap_content_info;
    if encapsulated.econtent_type != TST_INFO {
        return Err(TokenError::Malformed("what it carries is not a time stamp"));
    }
    match &encapsulated.econtent {
        Some(any) if any.tag() == Tag::OctetString => Ok(any.value().to_vec()),
        Some(_) => Err(TokenError::Malformed("its statement is no string of bytes")),
        None => Err(TokenError::Malformed("it carries no statement")),
    }
}

fn duration(accuracy: &Accuracy) -> Duration {
    let seconds = Duration::from_secs(accuracy.seconds.unwrap_or(0).into());
    let millis = Duration::from_millis(accuracy.millis.unwrap_or(0).into());
    let micros = Duration::from_micros(accuracy.micros.unwrap_or(0).into());
    seconds.saturating_add(millis).saturating_add(micros)
}

fn refused(certificate: &Checked, problem: crate::error::CertificateError) -> TokenError {
    TokenError::Certificate {
        subject: shown(certificate.subject()),
        problem,
    }
}

fn encoding(error: der::Error) -> TokenError {
    TokenError::Encoding(error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}

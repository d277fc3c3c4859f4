//! A timestamp authority for tests. It is honest by itself; a test changes one thing of a
//! certificate, of the statement, of the attributes or of the finished token, and what it changed
//! before the signature is signed.
//!
//! It shares no code with what verifies, so that both can be wrong only apart.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "only tests use this crate, and a failed step fails the test"
)]

mod certificates;
mod token;

pub use certificates::{Ca, Identity, TIME_STAMPING, Wanted};
pub use cms::cert::CertificateChoices;
pub use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
pub use token::{
    Accuracy, EssCertId, EssCertIdV2, IssuerSerial, MessageImprint, Request, SigningCertificate,
    SigningCertificateV2, Stamper, Statement, algorithm, attribute, octets, oid, response, sha_1,
    shown_time,
};
pub use {cms, der, rcgen, x509_cert};

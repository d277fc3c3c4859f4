//! What holds.

use std::time::Duration;

use attest_timestamp::{Nonce, Token, TokenError, request, token_of_response};
use stamp_authority::der::Decode as _;
use stamp_authority::der::asn1::Int;
use stamp_authority::rcgen::{PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use stamp_authority::x509_cert::Certificate;
use stamp_authority::x509_cert::ext::pkix::name::GeneralName;
use stamp_authority::{
    Ca, EssCertId, SigningCertificate, Stamper, Wanted, algorithm, attribute, octets, response,
    sha_1, shown_time,
};

use crate::common::{SIGNATURE, TIME, WORLD, judge, judge_by, pin};

#[test]
fn a_token_proves_a_time_by_a_pinned_authority() {
    let stamp = judge(&WORLD.stamper().token()).unwrap();
    assert_eq!(stamp.time, "2026-11-30T12:00:00Z".parse().unwrap());
    assert_eq!(stamp.accuracy, Some(Duration::from_millis(1500)));
    assert_eq!(stamp.policy, "1.3.6.1.4.1.32473.1");
    assert_eq!(stamp.serial, "2a");
    assert_eq!(stamp.signer, "Stamp Signer");
    assert_eq!(stamp.authority, "acme");
}

#[test]
fn before_an_authority_is_known_the_rest_is_verified() {
    let token = Token::from_der(&WORLD.stamper().token()).unwrap();
    let examined = token.examine(&SIGNATURE, None).unwrap();
    assert_eq!(examined.time(), "2026-11-30T12:00:00Z".parse().unwrap());
    assert_eq!(examined.signer(), "Stamp Signer");
    assert!(matches!(
        examined.issued_by(&[]),
        Err(TokenError::NotPinned { subject, issuer })
            if subject == "Stamp Signer" && issuer == "Stamp CA"
    ));
}

#[test]
fn optional_parts_do_not_matter() {
    let mut stamper = WORLD.stamper();
    stamper.statement.accuracy = None;
    stamper.statement.ordering = true;
    stamper.statement.time = shown_time("20261130120000.25Z");
    let certificate = Certificate::from_der(&WORLD.signer.der).unwrap();
    let subject = certificate.tbs_certificate().subject().clone();
    stamper.statement.tsa = Some(GeneralName::DirectoryName(subject));
    let stamp = judge(&stamper.token()).unwrap();
    assert_eq!(stamp.accuracy, None);
    assert_eq!(stamp.time, "2026-11-30T12:00:00.25Z".parse().unwrap());
}

#[test]
fn other_certificates_in_a_token_are_not_asked() {
    let mut stamper = WORLD.stamper();
    let stranger = Ca::honest("Stranger");
    stamper.certificates.push(stranger.identity.der.clone());
    stamper.certificates.push(WORLD.ca.identity.der.clone());
    assert_eq!(judge(&stamper.token()), judge(&WORLD.stamper().token()));
}

#[test]
fn the_old_attribute_names_the_certificate_as_well_as_the_new_one() {
    let mut stamper = WORLD.stamper();
    let named = SigningCertificate {
        certs: vec![EssCertId {
            hash: octets(&sha_1(&WORLD.signer.der)),
            issuer_serial: None,
        }],
    };
    let old = attribute("1.2.840.113549.1.9.16.2.12", &named);
    stamper.attributes.push(old.clone());
    judge(&stamper.token()).unwrap();
    stamper
        .attributes
        .retain(|it| it.oid.to_string() != "1.2.840.113549.1.9.16.2.47");
    judge(&stamper.token()).unwrap();
}

#[test]
fn keys_of_every_kind_that_is_listed() {
    for (key, hash, scheme) in [
        (
            &PKCS_ECDSA_P384_SHA384,
            "2.16.840.1.101.3.4.2.2",
            "1.2.840.10045.4.3.3",
        ),
        (&PKCS_ED25519, "2.16.840.1.101.3.4.2.3", "1.3.101.112"),
    ] {
        let ca = Ca::new(&Wanted {
            key,
            ..Wanted::authority("CA")
        });
        let signer = ca.issue(&Wanted {
            key,
            ..Wanted::stamper("S")
        });
        let mut stamper = Stamper::new(&signer, &SIGNATURE, TIME);
        stamper.algorithms = (algorithm(hash, false), algorithm(scheme, false));
        judge_by(&stamper.token(), &[pin("a", &ca.identity)]).unwrap();
        // The hash that is beside the scheme is part of what is signed.
        let other = algorithm("2.16.840.1.101.3.4.2.1", false);
        stamper.algorithms.0 = other;
        let error = judge_by(&stamper.token(), &[pin("a", &ca.identity)]).unwrap_err();
        assert!(matches!(error, TokenError::Unsupported(_)), "{error}");
    }
}

#[test]
fn of_two_authorities_with_one_name_the_one_that_signed_counts() {
    let other = Ca::honest("Stamp CA");
    let pinned = [pin("old", &other.identity), pin("new", &WORLD.ca.identity)];
    let stamp = judge_by(&WORLD.stamper().token(), &pinned).unwrap();
    assert_eq!(stamp.authority, "new");
}

#[test]
fn a_fetched_token_answers_its_request() {
    let nonce = Nonce::new([9; 8]);
    let asked = request(&SIGNATURE, &nonce).unwrap();
    // What the authority reads: the last fields are the nonce (2, 8, eight bytes) and certReq.
    let read = Int::new(&asked[asked.len() - 11..asked.len() - 3]).unwrap();
    let answer = response(&WORLD.stamper().answering(Some(read)).token());
    let token = Token::from_der(&token_of_response(&answer).unwrap()).unwrap();
    assert!(token.examine(&SIGNATURE, Some(&nonce)).is_ok());
    assert!(token.examine(&SIGNATURE, None).is_ok());
    let other = Nonce::new([8; 8]);
    let without = Token::from_der(&WORLD.stamper().token()).unwrap();
    for (token, nonce) in [(&token, &other), (&without, &nonce)] {
        let error = token.examine(&SIGNATURE, Some(nonce)).unwrap_err();
        assert_eq!(error, TokenError::Nonce);
    }
}

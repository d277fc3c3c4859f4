//! Tokens that are well signed and state, claim or carry the wrong thing.

use attest_timestamp::TokenError;
use stamp_authority::cms::content_info::CmsVersion;
use stamp_authority::cms::revocation::RevocationInfoChoices;
use stamp_authority::der::asn1::{ObjectIdentifier, SetOfVec};
use stamp_authority::der::{Any, Decode as _, Encode as _, Tag};
use stamp_authority::x509_cert::Certificate;
use stamp_authority::x509_cert::ext::Extension;
use stamp_authority::x509_cert::ext::pkix::name::GeneralName;
use stamp_authority::x509_cert::serial_number::SerialNumber;
use stamp_authority::{
    Accuracy, EssCertId, EssCertIdV2, IssuerSerial, SignedData, SignerIdentifier, SignerInfo,
    SigningCertificate, SigningCertificateV2, Stamper, algorithm, attribute, octets, oid, sha_1,
    shown_time,
};

use crate::common::{SIGNATURE, TIME, WORLD, judge, refused};

const OLD: &str = "1.2.840.113549.1.9.16.2.12";
const NEW: &str = "1.2.840.113549.1.9.16.2.47";

fn with(change: impl FnOnce(&mut Stamper<'_>)) -> Vec<u8> {
    let mut stamper = WORLD.stamper();
    change(&mut stamper);
    stamper.token()
}

/// Changes what the signature does not cover.
fn bent(change: impl FnOnce(&mut SignedData)) -> Vec<u8> {
    WORLD.stamper().token_with(change)
}

fn bent_signer(change: impl FnOnce(&mut SignerInfo)) -> Vec<u8> {
    bent(|signed| {
        let mut signer = signed.signer_infos.0.as_slice()[0].clone();
        change(&mut signer);
        signed.signer_infos.0 = SetOfVec::try_from(vec![signer]).unwrap();
    })
}

#[test]
fn a_token_over_something_else() {
    let token = Stamper::new(&WORLD.signer, &[8; 64], TIME).token();
    assert_eq!(judge(&token), Err(TokenError::Imprint));
    let token = Stamper::new(&WORLD.signer, b"", TIME).token();
    assert_eq!(judge(&token), Err(TokenError::Imprint));
}

#[test]
fn a_digest_by_another_hash() {
    for (hash, digest) in [
        ("1.3.14.3.2.26", sha_1(&SIGNATURE)),
        ("2.16.840.1.101.3.4.2.3", vec![0; 64]),
        ("2.16.840.1.101.3.4.2.2", vec![0; 48]),
        ("2.16.840.1.101.3.4.2.1", vec![0; 31]),
        ("2.16.840.1.101.3.4.2.1", Vec::new()),
    ] {
        let token = with(|it| {
            it.statement.imprint.hash_algorithm = algorithm(hash, true);
            it.statement.imprint.hashed_message = octets(&digest);
        });
        assert!(matches!(
            judge(&token),
            Err(TokenError::Unsupported(_) | TokenError::Imprint)
        ));
    }
    // A name for the right hash that says something more.
    refused(
        &with(|it| {
            it.statement.imprint.hash_algorithm.parameters =
                Some(Any::new(Tag::OctetString, *b"x").unwrap());
        }),
        "not SHA-256",
    );
}

#[test]
fn times_of_another_form() {
    for text in [
        "261130120000Z",
        "20261130120000",
        "20261130120060Z",
        "20261130120000.0Z",
        "x",
    ] {
        refused(
            &with(|it| it.statement.time = shown_time(text)),
            "not a time",
        );
    }
    let other_type = Any::new(Tag::UtcTime, *b"20261130120000Z").unwrap();
    refused(&with(|it| it.statement.time = other_type), "not a time");
}

#[test]
fn statements_that_are_not_understood() {
    refused(
        &with(|it| it.statement.version = 2),
        "another version than 1",
    );
    let extension = |critical| Extension {
        extn_id: oid("1.3.6.1.4.1.32473.9"),
        critical,
        extn_value: octets(b"\x05\x00"),
    };
    refused(
        &with(|it| it.statement.extensions = Some(vec![extension(true)])),
        "critical extension",
    );
    judge(&with(|it| {
        it.statement.extensions = Some(vec![extension(false)])
    }))
    .unwrap();
    let accuracy = |millis| Accuracy {
        seconds: None,
        millis,
        micros: None,
    };
    refused(
        &with(|it| it.statement.accuracy = Some(accuracy(Some(1000)))),
        "accuracy",
    );
    refused(
        &with(|it| it.statement.accuracy = Some(accuracy(Some(0)))),
        "accuracy",
    );
    let name = GeneralName::DnsName("else.example".to_owned().try_into().unwrap());
    refused(&with(|it| it.statement.tsa = Some(name)), "not its signer");
}

#[test]
fn another_kind_of_content() {
    let data = oid("1.2.840.113549.1.7.1");
    refused(&with(|it| it.content_type = data), "not a time stamp");
    refused(
        &with(|it| it.attributes[0] = attribute("1.2.840.113549.1.9.3", &data)),
        "no signed attribute says",
    );
    refused(
        &bent(|it| it.encap_content_info.econtent = None),
        "carries no statement",
    );
    refused(
        &bent(|it| it.encap_content_info.econtent = Some(Any::null())),
        "no string of bytes",
    );
    // The outer type.
    let mut token = WORLD.stamper().token();
    let at = token.windows(9).position(|it| it == data_der(2)).unwrap();
    token[at + 8] = 1;
    refused(&token, "not signed data");
}

fn data_der(last: u8) -> [u8; 9] {
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, last]
}

#[test]
fn signed_attributes_that_are_missing_wrong_or_there_twice() {
    refused(
        &with(|it| drop(it.attributes.remove(0))),
        "no signed attribute says",
    );
    refused(
        &with(|it| it.digest = Some(vec![0; 32])),
        "another statement",
    );
    refused(
        &with(|it| it.digest = Some(Vec::new())),
        "another statement",
    );
    let twice = attribute("1.2.840.113549.1.9.4", &octets(&[0; 32]));
    refused(&with(|it| it.attributes.push(twice)), "twice");
    let again = |it: &mut Stamper<'_>| {
        let mut both = it.attributes[0].clone();
        let other: ObjectIdentifier = oid("1.2.840.113549.1.7.1");
        both.values = SetOfVec::try_from(vec![
            Any::encode_from(&other).unwrap(),
            Any::encode_from(&oid("1.2.840.113549.1.9.16.1.4")).unwrap(),
        ])
        .unwrap();
        it.attributes[0] = both;
    };
    refused(&with(again), "not one value");
    refused(
        &bent_signer(|it| it.signed_attrs = None),
        "no signed attributes",
    );
}

#[test]
fn a_signature_of_nobody() {
    refused(
        &bent_signer(|it| it.signature = octets(&[1; 70])),
        "own signature is not valid",
    );
    let stranger = stamp_authority::rcgen::KeyPair::generate().unwrap();
    let identity = stamp_authority::Identity {
        der: WORLD.signer.der.clone(),
        pem: String::new(),
        key: stranger,
    };
    let token = Stamper::new(&identity, &SIGNATURE, TIME).token();
    assert_eq!(judge(&token), Err(TokenError::Signature));
}

#[test]
fn algorithms_that_are_not_listed_or_do_not_agree() {
    let sha_1 = algorithm("1.3.14.3.2.26", false);
    refused(
        &with(|it| it.algorithms.0 = sha_1),
        "digest algorithm is not",
    );
    for scheme in [
        "1.2.840.10045.4.1",     // ECDSA with SHA-1
        "1.2.840.10045.4.3.4",   // ECDSA with SHA-512
        "1.2.840.10045.4.3.3",   // the hash beside it is SHA-256
        "1.2.840.113549.1.1.5",  // RSA with SHA-1
        "1.2.840.113549.1.1.10", // RSA-PSS
        "1.2.840.10045.2.1",     // a kind of key
    ] {
        let token = with(|it| it.algorithms.1 = algorithm(scheme, false));
        refused(&token, "signature algorithm is not on the list");
    }
    // On the list, and not what the key does.
    for scheme in ["1.2.840.113549.1.1.11", "1.2.840.113549.1.1.1"] {
        let token = with(|it| it.algorithms.1 = algorithm(scheme, true));
        assert_eq!(judge(&token), Err(TokenError::Signature));
    }
    let null = algorithm("1.2.840.10045.4.3.2", true);
    refused(&with(|it| it.algorithms.1 = null), "not on the list");
    let sha_256 = algorithm("2.16.840.1.101.3.4.2.1", false);
    let sha_512 = algorithm("2.16.840.1.101.3.4.2.3", false);
    for declared in [vec![], vec![sha_512.clone()], vec![sha_256, sha_512]] {
        let set = SetOfVec::try_from(declared).unwrap();
        refused(&bent(|it| it.digest_algorithms = set), "does not declare");
    }
}

#[test]
fn no_signer_two_signers_or_another_version() {
    refused(
        &bent(|it| it.signer_infos.0 = SetOfVec::default()),
        "exactly one signer",
    );
    refused(
        &bent(|it| {
            let one = it.signer_infos.0.as_slice()[0].clone();
            let mut two = one.clone();
            two.signature = octets(b"x");
            it.signer_infos.0 = SetOfVec::try_from(vec![one, two]).unwrap();
        }),
        "exactly one signer",
    );
    refused(&bent(|it| it.version = CmsVersion::V1), "version than 3");
    refused(
        &bent_signer(|it| it.version = CmsVersion::V3),
        "wrong version",
    );
}

#[test]
fn what_nobody_vouches_for() {
    let more = attribute("1.2.840.113549.1.9.16.2.14", &octets(b"x"));
    refused(
        &bent_signer(|it| it.unsigned_attrs = Some(SetOfVec::try_from(vec![more]).unwrap())),
        "unsigned attributes",
    );
    refused(
        &bent(|it| it.crls = Some(RevocationInfoChoices(SetOfVec::default()))),
        "revocation lists",
    );
}

#[test]
fn a_signer_whose_certificate_is_not_there() {
    refused(&bent(|it| it.certificates = None), "does not carry");
    refused(
        &with(|it| it.certificates = vec![WORLD.ca.identity.der.clone()]),
        "does not carry",
    );
    refused(
        &bent_signer(|it| {
            if let SignerIdentifier::IssuerAndSerialNumber(id) = &mut it.sid {
                id.serial_number = SerialNumber::new(&[1]).unwrap();
            }
        }),
        "does not carry",
    );
    refused(
        &with(|it| it.certificates = vec![WORLD.signer.der.clone(), WORLD.signer.der.clone()]),
        "two certificates",
    );
}

#[test]
fn the_signers_certificate_is_named_by_a_signed_attribute() {
    refused(
        &with(|it| it.attributes.retain(|one| one.oid.to_string() != NEW)),
        "no signed attribute names",
    );
    let named = |hash: &[u8], algorithm, issuer_serial| SigningCertificateV2 {
        certs: vec![EssCertIdV2 {
            algorithm,
            hash: octets(hash),
            issuer_serial,
        }],
    };
    let other = named(&[0; 32], None, None);
    refused(
        &with(|it| it.attributes[1] = attribute(NEW, &other)),
        "another certificate",
    );
    let sha_1_v2 = named(
        &sha_1(&WORLD.signer.der),
        Some(algorithm("1.3.14.3.2.26", true)),
        None,
    );
    refused(
        &with(|it| it.attributes[1] = attribute(NEW, &sha_1_v2)),
        "not on the list",
    );
    let none = SigningCertificateV2 { certs: Vec::new() };
    refused(
        &with(|it| it.attributes[1] = attribute(NEW, &none)),
        "damaged",
    );
    refused(
        &with(|it| it.attributes[1] = attribute(NEW, &octets(b"x"))),
        "damaged",
    );
    // Both are there, and one is about another certificate.
    let old = SigningCertificate {
        certs: vec![EssCertId {
            hash: octets(&[0; 20]),
            issuer_serial: None,
        }],
    };
    refused(
        &with(|it| it.attributes.push(attribute(OLD, &old))),
        "another certificate",
    );
}

#[test]
fn issuer_and_number_beside_the_hash_must_agree() {
    let certificate = Certificate::from_der(&WORLD.signer.der).unwrap();
    let tbs = certificate.tbs_certificate();
    let named = |issuer: &_, serial: &SerialNumber| {
        let issuer_serial = IssuerSerial {
            issuer: vec![GeneralName::DirectoryName(Clone::clone(issuer))],
            serial: serial.clone(),
        };
        let old = SigningCertificate {
            certs: vec![EssCertId {
                hash: octets(&sha_1(&WORLD.signer.der)),
                issuer_serial: Some(issuer_serial),
            }],
        };
        with(|it| it.attributes.push(attribute(OLD, &old)))
    };
    judge(&named(tbs.issuer(), tbs.serial_number())).unwrap();
    refused(
        &named(tbs.subject(), tbs.serial_number()),
        "another certificate",
    );
    let one = SerialNumber::new(&[1]).unwrap();
    refused(&named(tbs.issuer(), &one), "another certificate");
}

#[test]
fn one_form_of_each_value() {
    let token = WORLD.stamper().token();
    // A length in more bytes than it needs.
    let mut long = vec![0x30, 0x83, 0];
    long.extend_from_slice(&token[2..]);
    refused(&long, "not strict DER");
    // Indefinite length, as BER has it.
    let mut endless = vec![0x30, 0x80];
    endless.extend_from_slice(&token[4..]);
    endless.extend_from_slice(&[0, 0]);
    refused(&endless, "not strict DER");
    refused(&[token.as_slice(), &[0]].concat(), "not strict DER");
    refused(&token[..token.len() - 1], "not strict DER");
    refused(&[], "not strict DER");
    // Signed attributes that are not sorted.
    let set = WORLD.stamper().signed().signer_infos.0.as_slice()[0].clone();
    let attributes = set.signed_attrs.unwrap();
    let parts: Vec<Vec<u8>> = attributes.iter().map(|it| it.to_der().unwrap()).collect();
    let sorted = parts.concat();
    let turned: Vec<u8> = parts.iter().rev().flatten().copied().collect();
    let token = with(|_| {});
    let at = token.windows(sorted.len()).position(|it| it == sorted);
    // The signature is another each time, so the attributes are found by their own bytes.
    let at = at.unwrap();
    let mut unsorted = token.clone();
    unsorted[at..at + turned.len()].copy_from_slice(&turned);
    refused(&unsorted, "not strict DER");
}

#[test]
fn a_token_of_more_bytes_than_are_looked_at() {
    let mut stamper = WORLD.stamper();
    for _ in 0..200 {
        stamper.certificates.push(WORLD.ca.identity.der.clone());
    }
    refused(&stamper.token(), "none may have more than 65536");
}

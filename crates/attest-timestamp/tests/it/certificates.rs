//! Certificates that do not count: the signer's, and those that are to be pinned.

use attest_timestamp::{Authority, CertificateError, TokenError};
use stamp_authority::rcgen::{CustomExtension, KeyPair, KeyUsagePurpose};
use stamp_authority::{Ca, Stamper, TIME_STAMPING, Wanted};

use crate::common::{SIGNATURE, TIME, WORLD, judge_by, pin};

const SERVER: &[u8] = &[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];

/// A token of an otherwise honest signer.
fn signed_by(change: impl FnOnce(&mut Wanted)) -> Result<(), TokenError> {
    at(TIME, change)
}

fn at(time: &str, change: impl FnOnce(&mut Wanted)) -> Result<(), TokenError> {
    let mut wanted = Wanted::stamper("S");
    change(&mut wanted);
    let signer = WORLD.ca.issue(&wanted);
    let token = Stamper::new(&signer, &SIGNATURE, time).token();
    judge_by(&token, &WORLD.pinned()).map(drop)
}

#[track_caller]
fn says(result: Result<(), TokenError>, text: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(text), "`{text}` in `{error}`");
}

#[test]
fn stamping_is_the_only_purpose_of_a_signer_and_binds() {
    signed_by(|_| {}).unwrap();
    says(signed_by(|it| it.purposes = None), "no extendedKeyUsage");
    let stamping = TIME_STAMPING.to_vec();
    says(
        signed_by(|it| it.purposes = Some((false, stamping.clone()))),
        "not critical",
    );
    says(
        signed_by(|it| it.purposes = Some((true, SERVER.to_vec()))),
        "not its only",
    );
    for both in [
        [TIME_STAMPING, SERVER].concat(),
        [SERVER, TIME_STAMPING].concat(),
    ] {
        says(
            signed_by(|it| it.purposes = Some((true, both))),
            "not its only",
        );
    }
    let twice = [TIME_STAMPING, TIME_STAMPING].concat();
    says(
        signed_by(|it| it.purposes = Some((true, twice))),
        "not its only",
    );
    says(signed_by(|it| it.purposes = Some((true, Vec::new()))), "");
}

#[test]
fn a_signer_signs_and_does_not_issue() {
    says(
        signed_by(|it| it.ca = Some(true)),
        "certification authority",
    );
    signed_by(|it| it.ca = Some(false)).unwrap();
    says(
        signed_by(|it| it.usage = vec![KeyUsagePurpose::KeyEncipherment]),
        "keyUsage is not to sign",
    );
    signed_by(|it| it.usage = vec![KeyUsagePurpose::ContentCommitment]).unwrap();
    signed_by(|it| it.usage = Vec::new()).unwrap();
}

#[test]
fn critical_extensions_are_understood_or_refused() {
    let extension = |critical| {
        let mut one = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 32473, 7], vec![5, 0]);
        one.set_criticality(critical);
        one
    };
    says(
        signed_by(|it| it.more.push(extension(true))),
        "not understood: 1.3.6.1.4.1.32473.7",
    );
    signed_by(|it| it.more.push(extension(false))).unwrap();
    let wanted = |critical| Wanted {
        more: vec![extension(critical)],
        ..Wanted::authority("CA")
    };
    let error = Authority::new("a", &Ca::new(&wanted(true)).identity.der).unwrap_err();
    assert!(
        matches!(error, CertificateError::CriticalExtension(_)),
        "{error}"
    );
    assert!(Authority::new("a", &Ca::new(&wanted(false)).identity.der).is_ok());
    // One that is known, there twice.
    let twice =
        CustomExtension::from_oid_content(&[2, 5, 29, 37], [&[0x30, 10], TIME_STAMPING].concat());
    says(signed_by(|it| it.more.push(twice)), "repeated extension");
    let broken = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![1]);
    says(signed_by(|it| it.more.push(broken)), "damaged or repeated");
}

#[test]
fn a_time_outside_the_validity_of_signer_or_authority() {
    for time in ["20231231235959Z", "20340101000001Z"] {
        says(
            at(time, |_| {}),
            "the signing certificate was not valid at the stated time",
        );
    }
    for time in ["20240101000000Z", "20340101000000Z", "20340101000000.5Z"] {
        at(time, |_| {}).unwrap();
    }
    let long = |it: &mut Wanted| {
        it.from = (2010, 1, 1);
        it.to = (2049, 1, 1);
    };
    for time in ["20191231235959Z", "20400101000001Z"] {
        says(at(time, long), "the authority's certificate was not valid");
    }
    says(at("19690101000000Z", long), "not valid");
}

#[test]
fn an_authority_that_is_not_pinned_or_only_has_the_name() {
    let stranger = Ca::honest("Stranger");
    let token = WORLD.stamper().token();
    let result = judge_by(&token, &[pin("stranger", &stranger.identity)]);
    says(
        result.map(drop),
        "is not issued by a pinned authority but by `Stamp CA`",
    );
    let namesake = Ca::honest("Stamp CA");
    let result = judge_by(&token, &[pin("namesake", &namesake.identity)]);
    says(
        result.map(drop),
        "names pinned authority 'namesake' as its issuer, whose key did not",
    );
}

#[test]
fn a_signer_two_steps_below_a_pinned_authority() {
    let root = Ca::honest("Root");
    let issued = root.issue(&Wanted::authority("Middle"));
    let key = KeyPair::from_pem(&issued.key.serialize_pem()).unwrap();
    let middle = Ca::with_key(&Wanted::authority("Middle"), key);
    let signer = middle.issue(&Wanted::stamper("S"));
    let mut stamper = Stamper::new(&signer, &SIGNATURE, TIME);
    stamper.certificates.push(issued.der.clone());
    let token = stamper.token();
    says(
        judge_by(&token, &[pin("root", &root.identity)]).map(drop),
        "by `Middle`",
    );
    let middle = Authority::new("middle", &issued.der).unwrap();
    assert_eq!(judge_by(&token, &[middle]).unwrap().authority, "middle");
}

#[test]
fn only_what_can_issue_is_pinned() {
    let pin = |change: fn(&mut Wanted)| {
        let mut wanted = Wanted::authority("CA");
        change(&mut wanted);
        Authority::new("a", &Ca::new(&wanted).identity.der).map(|it| it.subject())
    };
    assert_eq!(pin(|_| {}).unwrap(), "CN=CA,O=Throwaway");
    assert!(pin(|it| it.usage = Vec::new()).is_ok());
    assert!(pin(|it| it.purposes = Some((false, TIME_STAMPING.to_vec()))).is_ok());
    for (change, says) in [
        (
            (|it| it.ca = None) as fn(&mut Wanted),
            "no basicConstraints",
        ),
        (
            |it| it.ca = Some(false),
            "not that of a certification authority",
        ),
        (
            |it| it.usage = vec![KeyUsagePurpose::DigitalSignature],
            "not to sign certificates",
        ),
        (
            |it| it.purposes = Some((false, SERVER.to_vec())),
            "leaves out timeStamping",
        ),
    ] {
        let error = pin(change).unwrap_err().to_string();
        assert!(error.contains(says), "`{says}` in `{error}`");
    }
    let signer = Authority::new("a", &WORLD.signer.der).unwrap_err();
    assert!(
        matches!(signer, CertificateError::NotAnIssuer(_)),
        "{signer}"
    );
    for bytes in [&b""[..], b"x", &[0x30, 0], &WORLD.ca.identity.der[1..]] {
        let error = Authority::new("a", bytes).unwrap_err();
        assert!(matches!(error, CertificateError::Encoding(_)), "{error}");
    }
}

#[test]
fn foreign_names_are_safe_to_show_and_not_long() {
    let ca = Ca::new(&Wanted::authority("C\u{202e}A\u{1b}[2J"));
    let authority = pin("a", &ca.identity);
    assert!(
        authority.subject().contains("\\u{202e}"),
        "{}",
        authority.subject()
    );
    let signer = ca.issue(&Wanted::stamper(&format!("x\n{}", "y".repeat(5000))));
    let token = Stamper::new(&signer, &SIGNATURE, TIME).token();
    let stamp = judge_by(&token, &[authority]).unwrap();
    assert!(stamp.signer.starts_with("x\\u{a}yyy"), "{}", stamp.signer);
    assert!(stamp.signer.len() < 200);
}

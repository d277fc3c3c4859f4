//! Real tokens: over the signature, by an authority that the trust store pins.

use attest_receipt::receipt::Receipt;
use attest_verify::timestamp::encoded;
use attest_verify::trust::{AUTHORITIES, Trust, TrustStore};
use attest_verify::{CheckName, Outcome, Requirement, Status, verify};
use stamp_authority::{Ca, Identity, Stamper, Wanted};

use crate::common::{check, fails, judge, key, options, passes, public, receipt, signed, time};

struct Acme {
    ca: Ca,
    signer: Identity,
}

impl Acme {
    fn new() -> Self {
        let ca = Ca::honest("Acme CA");
        let signer = ca.issue(&Wanted::stamper("Acme Stamps"));
        Self { ca, signer }
    }

    fn stamped(&self, at: &str) -> Receipt {
        let mut receipt = signed(receipt());
        let signature = signature(&receipt);
        let token = Stamper::new(&self.signer, &signature, at).token();
        receipt.timestamp_token = Some(encoded(&token));
        receipt
    }
}

fn signature(receipt: &Receipt) -> Vec<u8> {
    let text = receipt.signature.as_ref().unwrap();
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A store that knows the usual key with this status, and these files of authorities.
fn store(status: &str, authorities: &[(&str, &[u8])]) -> Trust {
    let public = public(&key());
    let id = public.key_id();
    let toml = format!("version = 1\n\n[[key]]\nid = \"{id}\"\nname = \"k\"\n{status}\n");
    let mut files = vec![
        ("trust.toml".to_owned(), toml.into_bytes()),
        (format!("{id}.pub"), public.to_spki_pem().into_bytes()),
    ];
    for (name, bytes) in authorities {
        files.push((format!("{AUTHORITIES}{name}"), bytes.to_vec()));
    }
    let store = TrustStore::from_files(files).unwrap();
    Trust::Store(store.at("/w/.attest/trust".to_owned()).into())
}

fn trusting(authorities: &[(&str, &[u8])]) -> Trust {
    store("status = \"trusted\"", authorities)
}

fn detail(outcome: &Outcome) -> &str {
    &check(outcome, CheckName::Timestamp).detail
}

#[test]
fn a_token_of_a_pinned_authority_passes_and_says_when_and_who() {
    let acme = Acme::new();
    let receipt = acme.stamped("20261130120001Z");
    for file in [
        acme.ca.identity.der.as_slice(),
        acme.ca.identity.pem.as_bytes(),
    ] {
        let outcome = judge(&receipt, &trusting(&[("acme.crt", file)]), &options());
        assert!(outcome.passed(), "{outcome:?}");
        assert_eq!(
            detail(&outcome),
            "signature timestamped 2026-11-30T12:00:01Z by Acme Stamps"
        );
    }
    let mut options = options();
    options.require = vec![Requirement::Timestamp];
    let trust = trusting(&[("acme.crt", &acme.ca.identity.der)]);
    assert!(judge(&receipt, &trust, &options).passed());
    assert!(!judge(&signed(crate::common::receipt()), &trust, &options).passed());
}

#[test]
fn a_store_without_an_authority_says_where_one_belongs() {
    let receipt = Acme::new().stamped("20261130120001Z");
    let tail = "; add the issuing CA certificate to verify this token";
    let outcome = judge(&receipt, &trusting(&[]), &options());
    let expected = format!("no pinned timestamp authority in /w/.attest/trust/tsa{tail}");
    assert_eq!(detail(&outcome), expected);
    assert_eq!(check(&outcome, CheckName::Signature).status, Status::Pass);
    assert!(!outcome.passed());
    let absent = Trust::Absent {
        looked_in: "/x/trust".to_owned(),
    };
    let outcome = judge(&receipt, &absent, &options());
    assert_eq!(
        detail(&outcome),
        format!("no pinned timestamp authority in /x/trust/tsa{tail}")
    );
    let unreadable = Trust::Unreadable("why".to_owned());
    let outcome = judge(&receipt, &unreadable, &options());
    assert_eq!(detail(&outcome), "cannot load trust store: why");
}

#[test]
fn another_authority_or_a_file_that_is_none_does_not_help() {
    let acme = Acme::new();
    let receipt = acme.stamped("20261130120001Z");
    let other = Ca::honest("Other CA");
    let trust = trusting(&[("other.crt", &other.identity.der)]);
    fails(
        &judge(&receipt, &trust, &options()),
        CheckName::Timestamp,
        "not issued by a pinned",
    );
    // The signer's own certificate, which cannot be an authority, and a broken file.
    let trust = trusting(&[("leaf.crt", &acme.signer.der), ("zero.crt", b"\0")]);
    let outcome = judge(&receipt, &trust, &options());
    fails(
        &outcome,
        CheckName::Timestamp,
        "of the pinned certificates `leaf.crt` cannot issue",
    );
    // What is broken does not stand in the way of what is not.
    let trust = trusting(&[("a.crt", b"\0"), ("acme.crt", &acme.ca.identity.der)]);
    passes(&judge(&receipt, &trust, &options()));
}

#[test]
fn a_token_is_about_this_signature_and_is_base64() {
    let acme = Acme::new();
    let trust = trusting(&[("acme.crt", &acme.ca.identity.der)]);
    let mut receipt = acme.stamped("20261130120001Z");
    let token = Stamper::new(&acme.signer, &[7; 64], "20261130120001Z").token();
    receipt.timestamp_token = Some(encoded(&token));
    let outcome = judge(&receipt, &trust, &options());
    fails(
        &outcome,
        CheckName::Timestamp,
        "timestamp token does not cover this signature",
    );
    let good = acme.stamped("20261130120001Z").timestamp_token.unwrap();
    for text in [
        "!".to_owned(),
        format!("{good}A"),
        format!(" {good}"),
        format!("{good}\n"),
        good.replace('+', "-").replace('/', "_"),
    ] {
        if text == good {
            continue;
        }
        receipt.timestamp_token = Some(text);
        let outcome = judge(&receipt, &trust, &options());
        assert_eq!(detail(&outcome), "timestamp token is not valid base64");
    }
    receipt.timestamp_token = Some("A".repeat(100_000));
    let outcome = judge(&receipt, &trust, &options());
    fails(
        &outcome,
        CheckName::Timestamp,
        "none may have more than 65536",
    );
    for empty in ["", "AAAA"] {
        receipt.timestamp_token = Some(empty.to_owned());
        let outcome = judge(&receipt, &trust, &options());
        fails(&outcome, CheckName::Timestamp, "strict DER");
    }
}

#[test]
fn a29_a_tokens_time_decides_whether_a_revoked_key_counted() {
    let acme = Acme::new();
    let authority: &[(&str, &[u8])] = &[("acme.crt", &acme.ca.identity.der)];
    let since = "status = \"revoked\"\nrevoked_at = \"2026-11-30T12:30:00Z\"";
    let revoked = store(since, authority);
    let outcome = judge(&acme.stamped("20261130122959Z"), &revoked, &options());
    passes(&outcome);
    assert_eq!(
        check(&outcome, CheckName::Signature).detail,
        "valid signature; signed by key revoked later"
    );
    // The receipt's own time is before the revocation in each; the authority's is not.
    let outcome = judge(&acme.stamped("20261130123001Z"), &revoked, &options());
    fails(
        &outcome,
        CheckName::Signature,
        "after its revocation at 2026-11-30T12:30:00Z",
    );
    assert_eq!(check(&outcome, CheckName::Timestamp).status, Status::Pass);
    // A token by nobody who is pinned saves nothing.
    let other = Ca::honest("Other CA");
    let revoked = store(since, &[("other.crt", &other.identity.der)]);
    let outcome = judge(&acme.stamped("20261130122959Z"), &revoked, &options());
    fails(&outcome, CheckName::Signature, "signed by revoked key");
}

#[test]
fn a29_a_token_from_the_future_is_refused_beyond_what_clocks_differ() {
    let acme = Acme::new();
    let trust = trusting(&[("acme.crt", &acme.ca.identity.der)]);
    let mut options = options();
    options.now = time("2026-11-30T12:00:00Z");
    passes(&judge(&acme.stamped("20261201120000Z"), &trust, &options));
    let outcome = judge(&acme.stamped("20261201120001Z"), &trust, &options);
    fails(&outcome, CheckName::Timestamp, "more than a day ahead");
}

/// The stamped receipt of the original, and the store that it counts by.
fn vector() -> (String, Trust) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/stamped");
    let trust = folder.join("trust");
    let mut files = Vec::new();
    for (folder, prefix) in [(trust.clone(), ""), (trust.join("tsa"), AUTHORITIES)] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
                files.push((name, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    let store = TrustStore::from_files(files).unwrap();
    let receipt = std::fs::read_to_string(folder.join("receipt.yaml")).unwrap();
    (receipt, Trust::Store(store.into()))
}

#[test]
fn a_receipt_of_the_original_with_an_openssl_token_passes() {
    let (text, trust) = vector();
    let mut options = options();
    options.require = vec![Requirement::Timestamp, Requirement::Signature];
    let outcome = verify(text.as_bytes(), &trust, &options, None).unwrap();
    assert!(outcome.passed(), "{outcome:?}");
    assert_eq!(
        detail(&outcome),
        "signature timestamped 2026-11-30T21:32:25Z by Stamp Signer rsa2048"
    );
}

#[test]
fn a_change_of_any_character_of_a_token_is_refused() {
    let (text, trust) = vector();
    let at = text.find("timestamp_token: ").unwrap() + "timestamp_token: ".len();
    let length = text[at..].find('\n').unwrap();
    for position in at..at + length {
        let old = text.as_bytes()[position];
        let mut changed = text.clone().into_bytes();
        changed[position] = if old == b'A' { b'B' } else { b'A' };
        let outcome = verify(&changed, &trust, &options(), None).unwrap();
        assert_eq!(
            check(&outcome, CheckName::Timestamp).status,
            Status::Fail,
            "character {}",
            position - at
        );
        assert!(!outcome.passed());
    }
}

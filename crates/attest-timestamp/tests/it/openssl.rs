//! Tokens and answers that OpenSSL made; `tests/vectors/README.md` says how.

use std::path::Path;

use attest_timestamp::{Authority, CertificateError, Stamp, Token, TokenError, token_of_response};

use crate::common::{SIGNATURE, judge_by};

pub(crate) fn vector(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    std::fs::read(folder.join(name)).unwrap()
}

fn pinned(name: &str) -> Authority {
    Authority::new(name, &vector(&format!("{name}-ca.der"))).unwrap()
}

#[test]
fn tokens_of_openssl_verify() {
    for name in ["rsa2048", "rsa3072", "p256", "p384"] {
        let token = vector(&format!("{name}.tst"));
        let stamp: Stamp = judge_by(&token, &[pinned(name)]).unwrap();
        assert_eq!(stamp.signer, format!("Stamp Signer {name}"));
        assert_eq!(stamp.authority, name);
        assert_eq!(stamp.policy, "1.3.6.1.4.1.32473.1");
        assert_eq!(stamp.accuracy.unwrap().as_micros(), 1_500_100);
        assert!(stamp.time.to_string().starts_with("2026-11-30T"));
        assert_eq!(
            pinned(name).subject(),
            format!("CN=Stamp CA {name},O=Throwaway,C=ZZ")
        );
        // The answer around it.
        assert_eq!(
            token_of_response(&vector(&format!("{name}.tsr"))).unwrap(),
            token
        );
    }
}

#[test]
fn a_token_of_openssl_counts_by_its_own_authority_alone() {
    let token = vector("p384.tst");
    let others = ["rsa2048", "rsa3072", "p256"].map(pinned);
    let error = judge_by(&token, &others).unwrap_err();
    assert!(matches!(error, TokenError::NotPinned { .. }), "{error}");
    let token = Token::from_der(&token).unwrap();
    let error = token.examine(&[8; 64], None).unwrap_err();
    assert_eq!(error, TokenError::Imprint);
    token.examine(&SIGNATURE, None).unwrap();
}

#[test]
fn weak_tokens_of_openssl_are_refused() {
    let refused = |name: &str, authority: &str| {
        let error = judge_by(&vector(name), &[pinned(authority)]).unwrap_err();
        error.to_string()
    };
    assert!(refused("sha1-imprint.tst", "p256").contains("not SHA-256"));
    assert!(refused("sha1-signed.tst", "rsa2048").contains("digest algorithm"));
    assert!(refused("no-certificate.tst", "p256").contains("does not carry"));
    let short = judge_by(&vector("rsa1024.tst"), &[]).unwrap_err();
    assert!(short.to_string().contains("less than 2048"), "{short}");
    let short = Authority::new("a", &vector("rsa1024-ca.der")).unwrap_err();
    assert!(matches!(short, CertificateError::Algorithm(_)), "{short}");
}

#[test]
fn a_rejection_of_openssl_says_why() {
    let error = token_of_response(&vector("rejected.tsr"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the authority rejected the request: rejection: "),
        "{error}"
    );
    assert!(error.contains("the algorithm is not supported"), "{error}");
}

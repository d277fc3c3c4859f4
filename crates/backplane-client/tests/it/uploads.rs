//! What is published: artifacts and receipts go out as bytes, and come back as bytes.

use backplane_client::{AnswerError, ClientError, MAX_RECEIPT_BYTES, Method, Never};
use digest_text::Sha256Text;
use plugin_archive::Limits;

use crate::support::{Fixed, client, pair};

const DIGEST: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const PREFIX: &str = "https://backplane.example/plugin-protocol/v1";

fn confirmed(digest: &str) -> Vec<u8> {
    format!(r#"{{"artifact_digest":"{digest}","more":1}}"#).into_bytes()
}

#[test]
fn an_artifact_is_put_under_its_own_digest() {
    assert_eq!(Sha256Text::of(b"hello").to_string(), DIGEST);
    let client = client(Fixed::bytes(201, &confirmed(DIGEST)));
    let object = client.upload(b"hello".to_vec(), &Never).unwrap();
    assert!(object.get("more").is_some());
    let sent = client.transport().last();
    assert_eq!(sent.method, Method::Put);
    assert_eq!(sent.url, format!("{PREFIX}/artifacts/{DIGEST}"));
    assert_eq!(sent.body.unwrap(), b"hello");
    assert_eq!(
        sent.headers,
        [
            pair("accept", "application/json"),
            pair("content-type", "application/x-tar+gzip"),
        ]
    );
}

#[test]
fn an_answer_about_another_artifact_confirms_nothing() {
    let other = DIGEST.replace("2cf2", "0000");
    for answer in [confirmed(&other), b"{}".to_vec(), confirmed("")] {
        let client = client(Fixed::bytes(200, &answer));
        let error = client.upload(b"hello".to_vec(), &Never).unwrap_err();
        let other = matches!(error, ClientError::Answer(AnswerError::OtherArtifact));
        assert!(other, "{error}");
    }
}

#[test]
fn what_is_longer_than_allowed_is_not_sent() {
    let limits = Limits {
        archive_bytes: 4,
        ..Limits::default()
    };
    let long = client(Fixed::bytes(201, b"{}")).with_limits(limits);
    let error = long.upload(b"hello".to_vec(), &Never).unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::BodyTooLong {
                limit: 4,
                actual: 5
            }
        ),
        "{error}"
    );
    let receipt = vec![b' '; MAX_RECEIPT_BYTES + 1];
    let error = long.put_receipt(DIGEST, receipt, &Never).unwrap_err();
    assert!(matches!(error, ClientError::BodyTooLong { .. }), "{error}");
    assert_eq!(long.transport().count(), 0);
    let whole = vec![b' '; MAX_RECEIPT_BYTES];
    long.put_receipt(DIGEST, whole, &Never).unwrap();
}

#[test]
fn a_receipt_stands_beside_its_artifact_and_comes_back_as_it_is() {
    let put = client(Fixed::bytes(201, b"{}"));
    put.put_receipt(DIGEST, b"a: 1\n".to_vec(), &Never).unwrap();
    let sent = put.transport().last();
    assert_eq!(sent.method, Method::Put);
    assert_eq!(sent.url, format!("{PREFIX}/artifacts/{DIGEST}/receipt"));
    assert!(
        sent.headers
            .contains(&pair("content-type", "application/yaml"))
    );
    let got = client(Fixed::bytes(200, b"\xff a: 1\n"));
    assert_eq!(got.receipt(DIGEST, &Never).unwrap(), b"\xff a: 1\n");
    let sent = got.transport().last();
    assert_eq!(sent.method, Method::Get);
    assert!(sent.headers.contains(&pair(
        "accept",
        "application/yaml, application/octet-stream"
    )));
}

#[test]
fn a_receipt_beyond_its_limit_or_with_another_status_is_none() {
    let long = client(Fixed::bytes(200, &vec![b' '; MAX_RECEIPT_BYTES + 1]));
    let error = long.receipt(DIGEST, &Never).unwrap_err();
    assert!(matches!(
        error,
        ClientError::Answer(AnswerError::TooLong {
            limit: MAX_RECEIPT_BYTES
        })
    ));
    for status in [204, 206, 304, 404, 500] {
        let other = client(Fixed::bytes(status, b"a: 1"));
        let error = other.receipt(DIGEST, &Never).unwrap_err();
        assert!(matches!(error, ClientError::HttpStatus { .. }), "{status}");
    }
    let nowhere = client(Fixed::bytes(200, b""));
    let error = nowhere.receipt("sha256:0", &Never).unwrap_err();
    assert!(matches!(error, ClientError::Digest(_)), "{error}");
    assert_eq!(nowhere.transport().count(), 0);
}
